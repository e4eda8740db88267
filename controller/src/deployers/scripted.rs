//! Stands in for an external deployment system in tests. Debug builds only; enabled in place of `github` when
//! `ROLLBACK_SCRIPTED_BACKEND` holds the URL of an HTTP server that the test runs.
//!
//! Each call but `plan` (which deploys the whole release) is a POST of
//! `{"op": "find"|"trigger"|"poll"|"cancel", "key", "id", "plan", "target": {"namespace", "target", "rollback", "from", "to"}}`,
//! and the answer is one of
//! - `{"ok": {"id", "url", "state": "pending"|"inProgress"|"succeeded"|"failed"|"superseded", "finished", "message"}}`
//!   (find: `{"ok": null}` when nothing carries the key; `finished` is RFC 3339; all but `id` and `state` may be absent),
//! - to cancel: `{"ok": {"stopped": true}}` or `{"ok": {"stopped": false, "message"}}`,
//! - `{"error": {"class": "unavailable"|"busy"|"failed"|"notPermitted"|"invalid"|"notFound", "retryAfterSeconds", "message"}}`.
//!
//! An answer with another HTTP status, none, or one that cannot be read, is an outage.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use rollback_api::rollback::DeploymentOptions;
use rollback_api::{Backend, Plan, Release};
use rollback_core::backend::{BackendError, Cancellation, Deployment, DeploymentState, ErrorClass};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, DeployTarget, Deployer, whole_release};
use crate::error::sentence;

const URL: &str = "ROLLBACK_SCRIPTED_BACKEND";

/// See the module.
#[derive(Clone)]
pub struct Scripted {
    client: Client,
    url: String,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripted").field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Said<T> {
    Ok(T),
    Error(SaidError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SaidError {
    class: Class,
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Class {
    Unavailable,
    Busy,
    Failed,
    NotPermitted,
    Invalid,
    NotFound,
}

#[derive(Deserialize)]
struct SaidDeployment {
    id: String,
    url: Option<String>,
    state: State,
    finished: Option<Timestamp>,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Pending,
    InProgress,
    Succeeded,
    Failed,
    Superseded,
}

#[derive(Deserialize)]
struct SaidCancelled {
    stopped: bool,
    #[serde(default)]
    message: String,
}

impl From<SaidError> for BackendError {
    fn from(said: SaidError) -> Self {
        let class = match said.class {
            Class::Unavailable => ErrorClass::Unavailable(said.retry_after_seconds.map(Duration::from_secs)),
            Class::Busy => ErrorClass::Busy,
            Class::Failed => ErrorClass::Failed,
            Class::NotPermitted => ErrorClass::NotPermitted,
            Class::Invalid => ErrorClass::Invalid,
            Class::NotFound => ErrorClass::NotFound,
        };
        Self::new(class, said.message)
    }
}

impl From<SaidDeployment> for Deployment {
    fn from(said: SaidDeployment) -> Self {
        let state = match said.state {
            State::Pending => DeploymentState::Pending,
            State::InProgress => DeploymentState::InProgress,
            State::Succeeded => DeploymentState::Succeeded(said.finished),
            State::Failed => DeploymentState::Failed,
            State::Superseded => DeploymentState::Superseded,
        };
        Self { id: said.id, url: said.url, state, message: said.message }
    }
}

impl Scripted {
    /// The one that the environment asks for.
    pub fn from_environment() -> Option<Self> {
        Self::at(&std::env::var(URL).ok()?)
    }

    /// One that asks the server at that URL; `None` if it is not one.
    pub fn at(url: &str) -> Option<Self> {
        let mut config = kube::Config::new(url.parse().ok()?);
        config.default_retry = false;
        // The caller's deadline is what is tested; none of the client's is in its way.
        config.read_timeout = None;
        Some(Self { client: Client::try_from(config).ok()?, url: url.to_owned() })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        op: &str,
        target: &DeployTarget,
        key: &str,
        id: Option<&str>,
        plan: Option<&Plan>,
    ) -> Result<T, BackendError> {
        let outage = |why: String| BackendError::new(ErrorClass::Unavailable(None), why);
        let body: Value = json!({
            "op": op, "key": key, "id": id, "plan": plan,
            "target": {
                "namespace": target.namespace, "target": target.target, "rollback": target.rollback,
                "from": target.from, "to": target.to,
            },
        });
        let request = http::Request::post("/")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| outage(error.to_string()))?;
        let said: Said<T> = self.client.request(request).await.map_err(|error| outage(sentence(&error)))?;
        match said {
            Said::Ok(answer) => Ok(answer),
            Said::Error(error) => Err(error.into()),
        }
    }
}

impl Deployer for Scripted {
    fn plan<'a>(
        &'a self,
        _: &'a DeployTarget,
        release: &'a Release,
        options: &'a DeploymentOptions,
    ) -> Answer<'a, Plan> {
        async move { Ok(whole_release(Backend::Github, release, options)) }.boxed()
    }

    fn find<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Option<Deployment>> {
        async move {
            let found: Option<SaidDeployment> = self.ask("find", target, key, None, Some(plan)).await?;
            Ok(found.map(Deployment::from))
        }
        .boxed()
    }

    fn trigger<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        plan: &'a Plan,
    ) -> Answer<'a, Deployment> {
        async move {
            self.ask::<SaidDeployment>("trigger", target, key, None, Some(plan)).await.map(Deployment::from)
        }
        .boxed()
    }

    fn poll<'a>(
        &'a self,
        target: &'a DeployTarget,
        key: &'a str,
        id: &'a str,
        plan: Option<&'a Plan>,
    ) -> Answer<'a, Deployment> {
        async move {
            self.ask::<SaidDeployment>("poll", target, key, Some(id), plan).await.map(Deployment::from)
        }
        .boxed()
    }

    fn cancel<'a>(&'a self, target: &'a DeployTarget, key: &'a str, id: &'a str) -> Answer<'a, Cancellation> {
        async move {
            let said: SaidCancelled = self.ask("cancel", target, key, Some(id), None).await?;
            Ok(if said.stopped { Cancellation::Stopped } else { Cancellation::NotStopped(said.message) })
        }
        .boxed()
    }
}
