//! The life of the controller process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::runtime::watcher;
use prometheus_client::registry::Registry;
use rollback_api::labels;
use rollback_runtime::admin::Admin;
use rollback_runtime::client::Retry;
use rollback_runtime::lease::{Elector, Leadership};
use rollback_runtime::readiness::Readiness;
use rollback_runtime::shutdown::Shutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Controller};
use crate::context::{AllRequests, Context, Queues, Stores};
use crate::deployers::Deployers;
use crate::events::Events;
use crate::fence::Fence;
use crate::metrics::Metrics;
use crate::queue::{self, Broken, Running};
use crate::recording::Recording;
use crate::rollback::Pacing;
use crate::watch::{Watches, without_managed_fields};
use crate::{release, rollback};

/// The program's name; also that of its Lease unless the arguments say otherwise.
const PROGRAM: &str = "rollback-controller";
/// How long the last events may take to be published.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// Runs the controller until `shutdown`. Fails when it cannot start, and when it lost its leadership.
pub async fn run(args: Args, shutdown: Shutdown) -> anyhow::Result<()> {
    let settings = args.settings()?;
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let client = args.client.client(Retry::Bounded).await?;
    // Renewing the Lease must not wait behind retries.
    let elector = Elector::start(args.client.client(Retry::Off).await?, &args.lease, PROGRAM)?;
    let leadership = elector.leadership();
    let fence = Fence::new(leadership.clone(), shutdown.stop());
    let deployers = Deployers::enable(&settings.rollback.backends, &client, &fence)?;

    let readiness = Readiness::new();
    let address = args.admin.address();
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for probes and metrics; see --admin-address"))?;
    let admin_stop = CancellationToken::new();
    let admin = Admin { registry, readiness: readiness.clone(), draining: shutdown.draining() };
    let admin = tokio::spawn(admin.serve(listener, admin_stop.clone()));

    let (queues, requests) = Queues::new();
    let (events, publisher) = Events::new(client.clone(), metrics.clone());
    let events_stop = CancellationToken::new();
    let publisher = tokio::spawn(publisher.run(events_stop.clone()));
    let mut watches = Watches::new(client.clone(), readiness, shutdown.stop());
    let ctx = Arc::new(Context {
        client,
        stores: Stores::default(),
        settings,
        fence,
        events,
        metrics,
        queues,
        deployers,
        pacing: Pacing::default(),
    });
    let work = Work { args: &args, ctx: &ctx, leadership: &leadership, shutdown: &shutdown };
    let worked = work.run(&mut watches, requests).await;

    events_stop.cancel();
    let _ = tokio::time::timeout(LAST_EVENTS, publisher).await;
    elector.release().await;
    admin_stop.cancel();
    let _ = admin.await;
    worked
}

struct Work<'a> {
    args: &'a Args,
    ctx: &'a Arc<Context>,
    leadership: &'a Leadership,
    shutdown: &'a Shutdown,
}

impl Work<'_> {
    /// Watches from the beginning, so that a new leader need not wait; works only as the leader.
    async fn run(&self, watches: &mut Watches, requests: AllRequests) -> anyhow::Result<()> {
        watch_our_kinds(self.ctx, watches);
        let recording = self
            .args
            .controllers
            .contains(&Controller::Recording)
            .then(|| Recording::start(Arc::clone(self.ctx), watches));
        let stop = self.shutdown.stop();
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = async { watches.synced().await; self.leadership.wait_acquired().await } => {}
        }
        tracing::info!(controllers = ?self.args.controllers, backends = ?self.args.backends(), "leading");
        let mut queues = self.queues(requests, recording);
        loop {
            tokio::select! {
                lost = self.leadership.lost() => {
                    // Whatever is under way is cut off with the process: another one may act already.
                    anyhow::bail!(lost);
                }
                ended = queues.join_next() => match ended {
                    Some(Ok(Ok(()))) => {}
                    Some(Ok(Err(broken))) => anyhow::bail!(broken),
                    Some(Err(error)) => anyhow::bail!("a queue broke off: {error}"),
                    None => return Ok(()),
                },
            }
        }
    }

    fn queues(
        &self,
        requests: AllRequests,
        recording: Option<Arc<Recording>>,
    ) -> JoinSet<Result<(), Broken>> {
        let mut queues = JoinSet::new();
        let AllRequests { release, rollback, recording: recording_requests } = requests;
        let runs = |controller: Controller| self.args.controllers.contains(&controller);
        if runs(Controller::Release) {
            let ctx = Arc::clone(self.ctx);
            queues.spawn(queue::run(self.running("release"), release, move |key| {
                release::pass(Arc::clone(&ctx), key)
            }));
        }
        if runs(Controller::Rollback) {
            let ctx = Arc::clone(self.ctx);
            queues.spawn(queue::run(self.running("rollback"), rollback, move |key| {
                rollback::pass(Arc::clone(&ctx), key)
            }));
        }
        if let Some(recording) = recording {
            queues.spawn(queue::run(self.running("recording"), recording_requests, move |key| {
                Arc::clone(&recording).pass(key)
            }));
        }
        queues
    }

    fn running(&self, name: &'static str) -> Running {
        Running {
            name,
            workers: usize::from(self.args.workers),
            stop: self.shutdown.stop(),
            drain: self.args.shutdown.drain_timeout,
            metrics: self.ctx.metrics.clone(),
        }
    }
}

/// Every change of one of our own objects concerns all controllers.
fn watch_our_kinds(ctx: &Arc<Context>, watches: &mut Watches) {
    let wake = || {
        let queues = ctx.queues.clone();
        move |key: &crate::target::TargetKey| queues.all_now(key)
    };
    let all = watcher::Config::default;
    watches.add("releases", all(), Arc::clone(&ctx.stores.releases), without_managed_fields, wake());
    watches.add("rollbacks", all(), Arc::clone(&ctx.stores.rollbacks), without_managed_fields, wake());
    let pointers = all().labels(&format!("{}={}", labels::COMPONENT, labels::COMPONENT_POINTER));
    watches.add("pointers", pointers, Arc::clone(&ctx.stores.pointers), without_managed_fields, wake());
}
