//! Stands in for a backend that a Rollback began with and that is not enabled any more.

use futures::FutureExt as _;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{BackendError, Cancellation, Deployment, ErrorClass};

use super::{Answer, DeployTarget, Deployer};

/// Every call fails like one in an outage: it succeeds as soon as the backend is enabled again.
#[derive(Debug)]
pub(super) struct Missing(pub(super) Backend);

impl Missing {
    fn answer<T: Send>(&self) -> Answer<'_, T> {
        let message =
            format!("backend {} is not enabled in the controller; add it to --cicd-backend", self.0);
        async move { Err(BackendError::new(ErrorClass::Unavailable(None), message)) }.boxed()
    }
}

impl Deployer for Missing {
    fn plan<'a>(&'a self, _: &'a DeployTarget, _: &'a Release, _: &'a DeploymentOptions) -> Answer<'a, Plan> {
        self.answer()
    }

    fn find<'a>(&'a self, _: &'a DeployTarget, _: &'a str, _: &'a Plan) -> Answer<'a, Option<Deployment>> {
        self.answer()
    }

    fn trigger<'a>(&'a self, _: &'a DeployTarget, _: &'a str, _: &'a Plan) -> Answer<'a, Deployment> {
        self.answer()
    }

    fn poll<'a>(
        &'a self,
        _: &'a DeployTarget,
        _: &'a str,
        _: &'a str,
        _: Option<&'a Plan>,
    ) -> Answer<'a, Deployment> {
        self.answer()
    }

    fn cancel<'a>(&'a self, _: &'a DeployTarget, _: &'a str, _: &'a str) -> Answer<'a, Cancellation> {
        self.answer()
    }
}
