//! The plugin against the real system, run by kubectl, as somebody who has the role for incidents and no other right.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rollback_api::Backend;
use rollback_e2e::objects::{World, rollback};
use rollback_e2e::scripted::ScriptedBackend;
use rollback_e2e::service::kubectl;
use rollback_e2e::soon;
use rollback_e2e::system::with_system;
use rollback_rig::{ControlPlane, TestNamespace, namespace, workspace_binary};
use serde_json::Value;

/// A namespace with a target whose active release is bad, and somebody on call.
struct Scene {
    _ns: TestNamespace,
    cp: &'static ControlPlane,
    world: World,
    oncall: PathBuf,
    good: String,
    bad: String,
}

async fn scene() -> Scene {
    let (cp, _) = with_system().await;
    let ns = namespace(cp).await.unwrap();
    let world = World::new(cp.client().unwrap(), ns.name());
    let oncall = somebody(cp, ns.name(), "oncall", Some("rollback-responder")).await;
    let good = world.deploy("payments", "good", "True").await;
    let bad = world.deploy("payments", "bad", "False").await;
    Scene { _ns: ns, cp, world, oncall, good, bad }
}

/// A kubeconfig of somebody new, with one role or none.
async fn somebody(cp: &ControlPlane, ns: &str, name: &str, role: Option<&str>) -> PathBuf {
    kubectl(cp, &["create", "serviceaccount", name, "-n", ns]);
    if let Some(role) = role {
        let (role, account) = (format!("--clusterrole={role}"), format!("--serviceaccount={ns}:{name}"));
        kubectl(cp, &["create", "rolebinding", name, "-n", ns, &role, &account]);
    }
    cp.kubeconfig_for_service_account(ns, name).await.unwrap()
}

/// What a run of the plugin gave.
#[derive(Debug)]
struct Ran {
    out: String,
    err: String,
    code: i32,
}

impl Scene {
    /// `kubectl rollback …` as somebody.
    fn command(&self, kubeconfig: &Path, arguments: &[&str]) -> Command {
        let plugin = workspace_binary("kubectl-rollback").unwrap();
        let folders = std::iter::once(plugin.parent().unwrap().to_path_buf());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
        let mut command = self.cp.kubectl_as(kubeconfig);
        command.arg("rollback").args(arguments).env("PATH", path).env("TZ", "UTC").stdin(Stdio::null());
        command
    }

    fn run_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        ran(self.command(kubeconfig, arguments).output().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_as(&self.oncall, arguments)
    }

    /// Starts a rollback by the scripted backend, which does not finish by itself.
    async fn start_slow(&self) -> (Child, String) {
        ScriptedBackend::shared().outcome(&self.world.namespace, "inProgress");
        let mut command =
            self.command(&self.oncall, &["payments", "--reason", "slow", "--yes", "--backend=github"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let name = soon("the rollback to run", || async {
            let all = self.world.rollbacks.list(&kube::api::ListParams::default()).await?.items;
            let running = all
                .into_iter()
                .find(|one| one.status.as_ref().is_some_and(|status| status.deployment_id.is_some()));
            running.and_then(|one| one.metadata.name).ok_or_else(|| anyhow::anyhow!("none runs"))
        })
        .await;
        (child, name)
    }
}

fn ran(output: std::process::Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
}

fn lines_with(text: &str, word: &str) -> usize {
    text.lines().filter(|line| line.contains(word)).count()
}

#[tokio::test]
async fn one_command_rolls_back_and_history_tells_it() {
    let s = scene().await;
    let Scene { good, bad, .. } = &s;
    let ns = &s.world.namespace;
    let ran = s.run(&["payments", "--reason", "5xx since 14:02, INC-311", "--yes", "--backend=noop"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let name = ran
        .out
        .strip_prefix("rollback/")
        .and_then(|text| text.strip_suffix(" created\n"))
        .unwrap()
        .to_owned();
    for expected in [
        &format!("namespace {ns}\n") as &str,
        &format!("    {bad}"),
        &format!("  → {good}"),
        "    application   bad → good\n",
        &format!("Deployer noop. You are system:serviceaccount:{ns}:oncall.\n"),
        "Warning: the noop backend deploys nothing: the release is only recorded as active\n",
        &format!("{good} is active and was deployed in "),
    ] {
        assert!(ran.err.contains(expected), "{expected:?} is missing in:\n{}", ran.err);
    }
    s.world.only_active("payments", good).await;

    s.world.condition(bad, "Active", "False").await;
    let history = s.run(&["history", "payments"]);
    assert_eq!((history.code, history.err.as_str()), (0, ""));
    let by = format!("back by rollback/{name} (system:serviceaccount:{ns}:oncall): 5xx since 14:02, INC-311");
    assert!(
        history.out.lines().nth(1).unwrap().starts_with(good) && history.out.contains(&by),
        "{}",
        history.out
    );
    assert!(history.out.lines().nth(2).unwrap().contains("Rolled back"), "{}", history.out);
    let list = s.run(&["list"]);
    assert!(
        list.out.lines().nth(1).unwrap().starts_with(&format!("payments   {good}   Healthy")),
        "{}",
        list.out
    );
    let status = s.run(&["status", "payments"]);
    assert!(
        status.out.starts_with(&format!("rollback/{name}   payments: {bad} → {good}\n")),
        "{}",
        status.out
    );
    assert!(status.out.contains(&format!("{good} is active and was deployed in ")), "{}", status.out);

    // Twice in a row: there is nothing else that was healthy.
    let again = s.run(&["payments", "--reason", "x", "--yes"]);
    assert_eq!(again.code, 2);
    let refused = "Refused: no healthy release of payments to go back to.\n";
    assert!(again.err.starts_with(refused), "{}", again.err);
    assert!(again.err.contains(&format!("{bad}   rolled back from by rollback/{name}")), "{}", again.err);
    assert_eq!(s.run(&["cancel", &name]).code, 2, "it has ended");
}

#[tokio::test]
async fn a_dry_run_stores_nothing_and_its_manifest_is_safe_to_commit() {
    let s = scene().await;
    let ran = s.run(&["payments", "--reason", "INC-311", "--backend=noop", "--dry-run=server", "-o", "yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let stored = s.world.rollbacks.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(stored.items.len(), 0);
    let again =
        s.run(&["payments", "--reason", "INC-311", "--backend=noop", "--dry-run=server", "-o", "yaml"]);
    assert_eq!(ran.out, again.out, "the same manifest every time");

    // Rule 7: applied twice, by two people, both ways; then there is nothing left to change.
    let file = s.cp.dir().join(format!("{}.yaml", s.world.namespace));
    std::fs::write(&file, &ran.out).unwrap();
    let file = file.to_str().unwrap();
    let other = somebody(s.cp, &s.world.namespace, "gitops", Some("rollback-responder")).await;
    for (who, how) in [
        (&s.oncall, "--server-side=false"),
        (&other, "--server-side=false"),
        (&other, "--server-side=true"),
        (&s.oncall, "--server-side=true"),
    ] {
        let mut apply = s.cp.kubectl_as(who);
        let output = apply.args(
            ["apply", how, "--force-conflicts", "-f", file]
                .into_iter()
                .filter(|argument| how == "--server-side=true" || *argument != "--force-conflicts"),
        );
        let output = self::ran(output.output().unwrap());
        assert_eq!(output.code, 0, "{how}: {}", output.err);
    }
    let diff = self::ran(s.cp.kubectl_as(&other).args(["diff", "-f", file]).output().unwrap());
    assert_eq!((diff.code, diff.out.as_str()), (0, ""), "{}", diff.err);
    let all = s.world.rollbacks.list(&kube::api::ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 1);
    assert_eq!(s.world.ended(all[0].metadata.name.as_deref().unwrap()).await.0, Ok(()));
    s.world.only_active("payments", &s.good).await;
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let s = scene().await;
    let ns = &s.world.namespace;
    let nobody = somebody(s.cp, ns, "nobody", None).await;
    let viewer = somebody(s.cp, ns, "viewer", Some("rollback-viewer")).await;
    let start = ["payments", "--reason", "x", "--yes"];
    for (who, arguments, expected) in [
        (
            &nobody,
            &["list"] as &[&str],
            format!(
                "system:serviceaccount:{ns}:nobody may not list releases in namespace {ns}. Ask for the ClusterRole rollback-viewer."
            ),
        ),
        (
            &viewer,
            &start,
            format!(
                "system:serviceaccount:{ns}:viewer may not create rollbacks in namespace {ns}. Ask for the ClusterRole rollback-responder."
            ),
        ),
        (
            &s.oncall,
            &["list", "-A"],
            format!(
                "system:serviceaccount:{ns}:oncall may not list releases in all namespaces. Ask for the ClusterRole rollback-viewer."
            ),
        ),
        (
            &s.oncall,
            &["payment", "--reason", "x"],
            format!(
                "no releases of \"payment\" in namespace {ns}. Did you mean payments? Targets here: payments."
            ),
        ),
        (
            &s.oncall,
            &["payments", "--reason", "x"],
            format!(
                "not a terminal, and --yes was not given. Add --yes to roll payments back from {} to {} on ",
                s.bad, s.good
            ),
        ),
        (
            &s.oncall,
            &["payments", "--reason", "x", "--to", "payments-0000000", "--yes"],
            format!("Release payments-0000000 does not exist in namespace {ns}.\n"),
        ),
        (
            &s.oncall,
            &["histroy", "payments"],
            "histroy looks like a mistyped history: kubectl rollback history\n".to_owned(),
        ),
    ] {
        let ran = s.run_as(who, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(&format!("Refused: {expected}")), "{arguments:?}: {}", ran.err);
    }
    let active = s.run(&["payments", "--reason", "x", "--to", &s.bad, "--yes"]);
    assert_eq!(active.code, 5, "{}", active.err);
    assert!(
        active.err.starts_with(&format!("Not needed: {} is already active. Nothing was created.", s.bad)),
        "{}",
        active.err
    );
    let stored = s.world.rollbacks.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(stored.items.len(), 0);
}

#[tokio::test]
async fn a_running_rollback_is_in_the_way_and_can_be_cancelled() {
    let s = scene().await;
    let (child, name) = s.start_slow().await;
    let second = s.run(&["payments", "--reason", "me too", "--yes"]);
    assert_eq!(second.code, 2);
    let begin = format!("Refused: rollback/{name} (system:serviceaccount:{}:oncall, ", s.world.namespace);
    assert!(second.err.starts_with(&begin), "{}", second.err);
    let follow =
        format!("Follow: kubectl rollback status {name} --watch    Cancel: kubectl rollback cancel {name}\n");
    assert!(second.err.ends_with(&follow), "{}", second.err);
    let list = s.run(&["list"]);
    assert!(
        list.out.contains(&format!("rollback/{name} to {} (attempt 1 of 3, deadline in ", s.good)),
        "{}",
        list.out
    );

    let cancelled = s.run(&["cancel", "payments", "--reason", "wrong target"]);
    assert_eq!(cancelled.code, 0, "{}", cancelled.err);
    assert_eq!(cancelled.out, format!("rollback/{name} is asked to stop\n"));
    assert!(
        cancelled.err.contains("Cancelled: ") && cancelled.err.contains("wrong target"),
        "{}",
        cancelled.err
    );
    let first = ran(child.wait_with_output().unwrap());
    assert_eq!(first.code, 5, "{}", first.err);
    assert!(first.err.contains("attempt 1 of 3   deployment "), "{}", first.err);
    assert!(first.err.contains("\nCancelled: "), "{}", first.err);
    s.world.only_active("payments", &s.bad).await;
}

#[tokio::test]
async fn a_failed_rollback_says_so_with_its_exit_code() {
    let s = scene().await;
    ScriptedBackend::shared().outcome(&s.world.namespace, "failed");
    let ran = s.run(&["payments", "--reason", "x", "--yes", "--backend=github", "--max-attempts=2"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert_eq!(lines_with(&ran.err, "attempt 1 of 2   failed"), 1, "{}", ran.err);
    let last = ran.err.lines().last().unwrap();
    assert!(
        last.starts_with("Failed: attempt 2 of 2: ")
            && last.ends_with(&format!("{} is still active.", s.bad)),
        "{last}"
    );
    let watched = s.run(&["status", "payments", "--watch"]);
    assert_eq!(watched.code, 3, "{}", watched.err);
}

#[tokio::test]
async fn stopping_to_watch_leaves_the_rollback_alone() {
    let s = scene().await;
    let (child, name) = s.start_slow().await;
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let stopped = ran(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, 4, "{}", stopped.err);
    assert!(
        stopped
            .err
            .contains(&format!("Stopped watching. rollback/{name} goes on (attempt 1 of 3, deadline in ")),
        "{}",
        stopped.err
    );
    let waited = s.run(&["status", &name, "--watch", "--timeout=1s"]);
    assert_eq!(waited.code, 4, "{}", waited.err);
    ScriptedBackend::shared().finish(&s.world.namespace, "succeeded");
    let watched = s.run(&["status", &name, "--watch"]);
    assert_eq!(watched.code, 0, "{}", watched.err);
    assert!(watched.out.contains(&format!("{} is active and was deployed in ", s.good)), "{}", watched.out);
    s.world.only_active("payments", &s.good).await;
}

/// Theatre's way: whoever made the Rollback, the plugin follows and cancels it like its own.
#[tokio::test]
async fn rollbacks_of_others_are_shown_too() {
    let s = scene().await;
    let name = s.world.roll_back(&rollback("payments", Backend::Noop)).await.unwrap();
    let watched = s.run(&["status", &name, "--watch"]);
    assert_eq!(watched.code, 0, "{}", watched.err);
    let json = s.run(&["status", &name, "-o", "json"]);
    let object: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(object["kind"], "Rollback");
    assert_eq!(object["metadata"].get("managedFields"), None);
}

#[tokio::test]
async fn kubectl_completes_the_plugin() {
    let s = scene().await;
    let folder = s.cp.dir().join(format!("completion-{}", s.world.namespace));
    std::fs::create_dir_all(&folder).unwrap();
    let installed = s.run(&["completion", "--install", "--dir", folder.to_str().unwrap()]);
    assert_eq!(installed.code, 0, "{}", installed.err);
    let complete = |words: &[&str]| {
        let mut command = s.command(&s.oncall, &[]);
        let plugins =
            command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap();
        let path =
            std::env::join_paths(std::iter::once(folder.clone()).chain(std::env::split_paths(plugins)))
                .unwrap();
        command = s.cp.kubectl_as(&s.oncall);
        ran(command.env("PATH", path).args(["__complete", "rollback"]).args(words).output().unwrap()).out
    };
    assert!(complete(&["his"]).starts_with("history\t"), "{}", complete(&["his"]));
    assert!(complete(&["history", "pay"]).starts_with("payments\n"), "{}", complete(&["history", "pay"]));
    let to = complete(&["payments", "--to", "payments-"]);
    assert!(to.contains(&s.good) && to.contains(&s.bad), "{to}");
}
