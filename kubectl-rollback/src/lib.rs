//! kubectl-rollback
