//! tests/rig
