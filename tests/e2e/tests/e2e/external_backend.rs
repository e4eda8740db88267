//! Rollbacks through an external deployment system that fails in every way it can: what the reference got wrong
//! (H-1, H-3 to H-11, H-15) must not happen here.

use std::collections::BTreeSet;

use futures::future::join_all;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use rollback_api::conditions::SucceededReason;
use rollback_api::{AttemptState, Backend, Rollback, annotations};
use rollback_core::rollback::Phase;
use rollback_e2e::objects::{World, named, rollback};
use rollback_e2e::scripted::{Reply, ScriptedBackend};
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{TestNamespace, namespace};
use serde_json::json;

struct Scene {
    _ns: TestNamespace,
    world: World,
    backend: &'static ScriptedBackend,
    ns: String,
    good: String,
}

/// A target with a good release and a bad, active one.
async fn scene() -> Scene {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    let good = world.deploy("payments", "good", "True").await;
    world.deploy("payments", "bad", "False").await;
    Scene { ns: ns.name().to_owned(), _ns: ns, world, backend: ScriptedBackend::shared(), good }
}

impl Scene {
    async fn roll_back(&self) -> String {
        self.world.roll_back(&named("r", rollback("payments", Backend::Github))).await.unwrap()
    }

    async fn phase(&self, name: &str, wanted: Phase) -> Rollback {
        soon(&format!("Rollback {name} to be {wanted:?}"), || async {
            let rollback = self.world.rollbacks.get(name).await?;
            anyhow::ensure!(Phase::of(&rollback) == wanted, "{:?}", rollback.status);
            Ok(rollback)
        })
        .await
    }

    /// One deployment for each key, and nothing that a backend must not be asked for.
    fn check(&self, deployments: usize) {
        self.backend.check();
        let all = self.backend.deployments(&self.ns);
        let keys: BTreeSet<_> = all.iter().map(|deployment| &deployment.key).collect();
        assert_eq!((all.len(), keys.len()), (deployments, deployments), "{all:?}");
    }
}

fn attempts(rollback: &Rollback) -> Vec<AttemptState> {
    rollback.status.as_ref().unwrap().attempts.iter().map(|attempt| attempt.state).collect()
}

fn message(rollback: &Rollback) -> String {
    rollback.status.as_ref().and_then(|status| status.message.clone()).unwrap_or_default()
}

/// H-1, H-3: the answer to the trigger is lost; the deployment is found by its key, not made again.
#[tokio::test]
async fn a_lost_answer_makes_no_second_deployment() {
    let s = scene().await;
    s.backend.script(&s.ns, "trigger", [Reply::LoseAnswer]);
    s.backend.outcome(&s.ns, "succeeded");
    let name = s.roll_back().await;
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    assert_eq!(attempts(&ended), [AttemptState::Succeeded]);
    s.check(1);
    s.world.only_active("payments", &s.good).await;
}

/// H-4, H-5, invariant 6: outages, rate limits and a busy system spend no attempt, and are not hammered.
#[tokio::test]
async fn an_outage_spends_no_attempt() {
    let s = scene().await;
    s.backend.script(
        &s.ns,
        "trigger",
        [
            Reply::Error("unavailable", Some(1)),
            Reply::Broken(502),
            Reply::Error("busy", None),
            Reply::Error("unavailable", None),
        ],
    );
    s.backend.outcome(&s.ns, "succeeded");
    let name = s.roll_back().await;
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    assert_eq!(attempts(&ended), [AttemptState::Succeeded]);
    assert_eq!(s.backend.calls(&s.ns, "trigger"), 5);
    s.check(1);
}

/// H-9: a failed deployment spends an attempt; each has its own id and message, and a back-off between them.
#[tokio::test]
async fn each_attempt_has_its_own_record() {
    let s = scene().await;
    let name = s.roll_back().await;
    s.phase(&name, Phase::Running).await;
    s.backend.finish(&s.ns, "failed");
    soon("the first attempt to be recorded as failed", || async {
        let rollback = s.world.rollbacks.get(&name).await?;
        anyhow::ensure!(attempts(&rollback)[0] == AttemptState::Failed, "{:?}", rollback.status);
        Ok(())
    })
    .await;
    s.backend.outcome(&s.ns, "succeeded");
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Ok(()), "{:?}", ended.status);
    let records = ended.status.unwrap().attempts;
    assert_eq!(records.len(), 2);
    let ids: BTreeSet<_> = records.iter().map(|attempt| attempt.deployment_id.clone()).collect();
    assert_eq!(ids.len(), 2, "{records:?}");
    assert!(records.iter().all(|attempt| attempt.deployment_url.is_some()));
    s.check(2);
}

#[tokio::test]
async fn the_last_failed_attempt_is_the_end() {
    let s = scene().await;
    s.backend.outcome(&s.ns, "failed");
    let mut wanted = named("r", rollback("payments", Backend::Github));
    wanted.spec.max_attempts = Some(2);
    let name = s.world.roll_back(&wanted).await.unwrap();
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::DeploymentFailed));
    assert_eq!(attempts(&ended), [AttemptState::Failed, AttemptState::Failed]);
    assert!(message(&ended).starts_with("attempt 2 of 2"), "{}", message(&ended));
    s.check(2);
}

/// Errors that trying again cannot mend end at once, with the system's own words.
#[tokio::test]
async fn a_refusal_is_the_end() {
    for class in ["notPermitted", "invalid", "notFound"] {
        let s = scene().await;
        s.backend.script(&s.ns, "trigger", [Reply::Error(class, None)]);
        let name = s.roll_back().await;
        let (outcome, ended) = s.world.ended(&name).await;
        assert_eq!(outcome, Err(SucceededReason::DeploymentFailed), "{class}");
        assert!(message(&ended).contains(&format!("scripted: {class}")), "{}", message(&ended));
        s.check(0);
    }
}

/// H-6: a connection that hangs is cut off, and holds up nobody else.
#[tokio::test]
async fn a_hanging_backend_holds_up_nobody_else() {
    let (hung, other) = tokio::join!(scene(), scene());
    hung.backend.script(&hung.ns, "trigger", [Reply::Hang]);
    hung.backend.script(&hung.ns, "find", [Reply::Hang]);
    let stuck = hung.roll_back().await;
    hung.phase(&stuck, Phase::Triggering).await;
    other.backend.outcome(&other.ns, "succeeded");
    let quick = other.roll_back().await;
    assert_eq!(other.world.ended(&quick).await.0, Ok(()));
    hung.backend.outcome(&hung.ns, "succeeded");
    assert_eq!(hung.world.ended(&stuck).await.0, Ok(()));
    hung.check(1);
}

/// H-7, invariant 4: a deployment that nobody finishes ends at the deadline, and is stopped.
#[tokio::test]
async fn a_deadline_ends_it() {
    let s = scene().await;
    let mut wanted = named("r", rollback("payments", Backend::Github));
    wanted.spec.progress_deadline_seconds = Some(30);
    let name = s.world.roll_back(&wanted).await.unwrap();
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::DeadlineExceeded));
    assert_eq!(attempts(&ended), [AttemptState::Cancelled]);
    assert_eq!(s.backend.calls(&s.ns, "cancel"), 1);
    s.check(1);
}

/// H-8: polls that can never succeed end too, and what was said last is shown meanwhile.
#[tokio::test]
async fn hopeless_polls_end() {
    let s = scene().await;
    s.backend.script(&s.ns, "poll", (0..50).map(|_| Reply::Error("notPermitted", None)));
    let name = s.roll_back().await;
    soon("the poll's error in the status", || async {
        let rollback = s.world.rollbacks.get(&name).await?;
        anyhow::ensure!(message(&rollback).contains("scripted: notPermitted"), "{}", message(&rollback));
        Ok(())
    })
    .await;
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::DeploymentFailed));
    // Not proven stopped: the next rollback has to deal with it (rule 5).
    assert_eq!(attempts(&ended), [AttemptState::Abandoned]);
    s.check(1);
}

#[tokio::test]
async fn another_deployment_takes_over() {
    let s = scene().await;
    let name = s.roll_back().await;
    s.phase(&name, Phase::Running).await;
    s.backend.outcome(&s.ns, "superseded");
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::DeploymentSuperseded));
    assert_eq!(attempts(&ended), [AttemptState::Superseded]);
}

/// A person cancels; who it was is stamped by the webhook, whatever the client says.
#[tokio::test]
async fn cancelling_stops_the_deployment() {
    let s = scene().await;
    let name = s.roll_back().await;
    s.phase(&name, Phase::Running).await;
    let patch = json!({"metadata": {"annotations": {annotations::CANCEL: "wrong service", annotations::CANCELLED_BY: "the pope"}}});
    s.world.rollbacks.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let (outcome, ended) = s.world.ended(&name).await;
    assert_eq!(outcome, Err(SucceededReason::Cancelled));
    assert!(
        message(&ended).contains("wrong service") && !message(&ended).contains("pope"),
        "{}",
        message(&ended)
    );
    assert_eq!(s.backend.calls(&s.ns, "cancel"), 1);
}

/// H-15: deleting a running rollback stops its deployment first; the target is free afterwards.
#[tokio::test]
async fn deleting_a_running_rollback_stops_it() {
    let s = scene().await;
    let name = s.roll_back().await;
    s.phase(&name, Phase::Running).await;
    s.world.rollbacks.delete(&name, &DeleteParams::default()).await.unwrap();
    soon("the object to go", || async {
        anyhow::ensure!(s.world.rollbacks.get_opt(&name).await?.is_none());
        Ok(())
    })
    .await;
    assert_eq!(s.backend.calls(&s.ns, "cancel"), 1);
    s.backend.outcome(&s.ns, "succeeded");
    let next = s.world.roll_back(&named("next", rollback("payments", Backend::Github))).await.unwrap();
    assert_eq!(s.world.ended(&next).await.0, Ok(()));
    s.check(2);
}

/// H-10: what is deployed was copied at the start.
#[tokio::test]
async fn the_plan_is_copied_at_the_start() {
    let s = scene().await;
    let name = s.roll_back().await;
    let running = s.phase(&name, Phase::Running).await;
    let plan = running.status.unwrap().plan.unwrap();
    assert_eq!((plan.backend, plan.revisions[0].id.as_str()), (Backend::Github, "good"));
}

/// H-11: fifty at once for one target: one runs, every other one is refused or waits with a sentence.
#[tokio::test]
async fn fifty_at_once_are_one() {
    let s = scene().await;
    let answers = join_all((0..50).map(|n| {
        let wanted = named(&format!("r{n}"), rollback("payments", Backend::Github));
        let world = s.world.clone();
        async move { world.roll_back(&wanted).await }
    }))
    .await;
    let refused: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert!(refused.iter().all(|text| text.contains("rollback/")), "{refused:?}");
    let settled = soon("one to run, the others to have their sentence", || async {
        let all = s.world.rollbacks.list(&ListParams::default()).await?.items;
        let past_queued = all.iter().filter(|rollback| Phase::of(rollback).holds_lock()).count();
        assert!(past_queued <= 1, "{past_queued} are past Queued");
        let undecided = all.iter().filter(|rollback| rollback.status.is_none()).count();
        anyhow::ensure!(past_queued == 1 && undecided == 0, "{past_queued} run, {undecided} undecided");
        Ok(all)
    })
    .await;
    for rollback in &settled {
        let phase = Phase::of(rollback);
        assert!(phase.holds_lock() || phase == Phase::Queued || phase.is_ended(), "{:?}", rollback.status);
        assert!(!message(rollback).is_empty());
    }
    assert_eq!(settled.len() + refused.len(), 50);
    s.backend.outcome(&s.ns, "succeeded");
    for rollback in &settled {
        let (outcome, ended) = s.world.ended(rollback.metadata.name.as_deref().unwrap()).await;
        assert!(outcome == Ok(()) || outcome == Err(SucceededReason::NotNeeded), "{:?}", ended.status);
    }
    s.check(1);
    s.world.only_active("payments", &s.good).await;
}
