//! Deploys nothing and always succeeds: to try the system out, and for targets that something else deploys.

use futures::FutureExt as _;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{Cancellation, Deployment, DeploymentState};

use super::{Answer, DeployTarget, Deployer, whole_release};

const MESSAGE: &str = "noop deployer always succeeds";

/// See the module.
#[derive(Debug)]
pub(super) struct Noop;

fn deployment(target: &DeployTarget) -> Deployment {
    Deployment {
        id: format!("noop-{}-{}", target.namespace, target.rollback),
        url: None,
        state: DeploymentState::Succeeded(None),
        message: MESSAGE.to_owned(),
    }
}

impl Deployer for Noop {
    fn plan<'a>(
        &'a self,
        _: &'a DeployTarget,
        release: &'a Release,
        options: &'a DeploymentOptions,
    ) -> Answer<'a, Plan> {
        async move { Ok(whole_release(Backend::Noop, release, options)) }.boxed()
    }

    fn find<'a>(&'a self, _: &'a DeployTarget, _: &'a str, _: &'a Plan) -> Answer<'a, Option<Deployment>> {
        async { Ok(None) }.boxed()
    }

    fn trigger<'a>(&'a self, target: &'a DeployTarget, key: &'a str, _: &'a Plan) -> Answer<'a, Deployment> {
        async move {
            tracing::warn!(
                namespace = target.namespace,
                rollback = target.rollback,
                key,
                "the noop backend deploys nothing: {} will be called active although nothing was changed",
                target.to
            );
            Ok(deployment(target))
        }
        .boxed()
    }

    fn poll<'a>(
        &'a self,
        target: &'a DeployTarget,
        _: &'a str,
        _: &'a str,
        _: Option<&'a Plan>,
    ) -> Answer<'a, Deployment> {
        async move { Ok(deployment(target)) }.boxed()
    }

    fn cancel<'a>(&'a self, _: &'a DeployTarget, _: &'a str, _: &'a str) -> Answer<'a, Cancellation> {
        async { Ok(Cancellation::Stopped) }.boxed()
    }
}
