//! A pretend deployment system: deployments by key, and what the next calls are to answer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{BackendError, Cancellation, Deployment, DeploymentState, ErrorClass};

use crate::deployers::{Answer, DeployTarget, Deployer, whole_release};

#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) log: Vec<String>,
    pub(super) deployments: BTreeMap<String, DeploymentState>,
    /// Faults of the next triggers; the deployment is created all the same when `true`.
    pub(super) triggers: VecDeque<(BackendError, bool)>,
    /// Answers of the next polls in place of the deployment's state.
    pub(super) polls: VecDeque<BackendError>,
    /// The next call never answers.
    pub(super) hang: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FakeBackend(pub(super) Arc<Mutex<Calls>>);

impl FakeBackend {
    fn begin(&self, call: &str, key: &str) -> (bool, std::sync::MutexGuard<'_, Calls>) {
        let mut calls = self.0.lock().unwrap();
        calls.log.push(format!("{call} {key}"));
        (std::mem::take(&mut calls.hang), calls)
    }

    pub(super) fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.0.lock().unwrap()
    }

    /// The calls since the last time.
    pub(super) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.calls().log)
    }

    /// All deployments become that.
    pub(super) fn all_become(&self, state: &DeploymentState) {
        self.calls().deployments.values_mut().for_each(|one| *one = state.clone());
    }
}

fn deployment(key: &str, state: &DeploymentState) -> Deployment {
    Deployment { id: format!("id-{key}"), url: None, state: state.clone(), message: String::new() }
}

impl Deployer for FakeBackend {
    fn plan<'a>(
        &'a self,
        _: &'a DeployTarget,
        release: &'a Release,
        options: &'a DeploymentOptions,
    ) -> Answer<'a, Plan> {
        async move { Ok(whole_release(Backend::Github, release, options)) }.boxed()
    }

    fn find<'a>(&'a self, _: &'a DeployTarget, key: &'a str, _: &'a Plan) -> Answer<'a, Option<Deployment>> {
        let (_, calls) = self.begin("find", key);
        let found = calls.deployments.get(key).map(|state| deployment(key, state));
        async move { Ok(found) }.boxed()
    }

    fn trigger<'a>(&'a self, _: &'a DeployTarget, key: &'a str, _: &'a Plan) -> Answer<'a, Deployment> {
        let (hangs, mut calls) = self.begin("trigger", key);
        let fault = calls.triggers.pop_front();
        if fault.as_ref().is_none_or(|(_, created)| *created) {
            calls.deployments.entry(key.to_owned()).or_insert(DeploymentState::InProgress);
        }
        let answer = match fault {
            Some((error, _)) => Err(error),
            None => Ok(deployment(key, &calls.deployments[key])),
        };
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            answer
        }
        .boxed()
    }

    fn poll<'a>(
        &'a self,
        _: &'a DeployTarget,
        key: &'a str,
        id: &'a str,
        _: Option<&'a Plan>,
    ) -> Answer<'a, Deployment> {
        let (hangs, mut calls) = self.begin("poll", key);
        assert_eq!(id, format!("id-{key}"));
        let answer = match calls.polls.pop_front() {
            Some(error) => Err(error),
            None => calls
                .deployments
                .get(key)
                .map(|state| deployment(key, state))
                .ok_or_else(|| BackendError::new(ErrorClass::NotFound, format!("no deployment {id}"))),
        };
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            answer
        }
        .boxed()
    }

    fn cancel<'a>(&'a self, _: &'a DeployTarget, key: &'a str, _: &'a str) -> Answer<'a, Cancellation> {
        let (_, mut calls) = self.begin("cancel", key);
        calls.deployments.insert(key.to_owned(), DeploymentState::Failed);
        async { Ok(Cancellation::Stopped) }.boxed()
    }
}
