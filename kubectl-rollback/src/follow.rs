//! Following a Rollback to its end: by watch, and by looking every few seconds in case the watch has gone silent.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use rollback_api::Rollback;

use crate::clock::{Clock, span};
use crate::failure::{Failure, Kind};
use crate::printer::{Printer, Sink};
use crate::progress::{self, End};
use crate::session::Session;

/// How often to look beside watching.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How often the line that counts seconds is redrawn.
const REDRAW_EVERY: Duration = Duration::from_secs(1);
/// After how long without any status to wonder whether a controller runs, in seconds.
const PATIENCE: i64 = 20;

/// How to follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Longest time; `None`: to the end.
    pub(crate) timeout: Option<Duration>,
    /// Where the lines go.
    pub(crate) sink: Sink,
}

/// Follows until the Rollback has ended: the object then, and how it ended.
///
/// Fails when the time is over, when the person stops watching, and when the object is gone; the Rollback goes on then.
pub(crate) async fn follow(
    session: &Session,
    printer: &mut Printer,
    clock: &Clock,
    first: Rollback,
    options: Options,
) -> Result<(Rollback, End), Failure> {
    // Registered before the first line is shown: from then on Ctrl-C means to stop watching.
    Box::pin(follow_until(session, printer, clock, first, options, async {
        // Without a handler the signal ends the process; there is nothing better to wait for then.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }))
    .await
}

/// The same, until `interrupted` is ready.
pub(crate) async fn follow_until(
    session: &Session,
    printer: &mut Printer,
    clock: &Clock,
    first: Rollback,
    options: Options,
    interrupted: impl Future<Output = ()>,
) -> Result<(Rollback, End), Failure> {
    let name = first.metadata.name.clone().unwrap_or_default();
    let mut view = Follower::new(first, printer, options);
    let mut interrupted = pin!(interrupted);
    let mut time_over = pin!(sleep(options.timeout));
    let mut watch = pin!(watch_object(session.rollbacks_api(), &name).default_backoff());
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick is at once, and what it would read is known.
    look.tick().await;
    let mut redraw = tokio::time::interval(REDRAW_EVERY);
    redraw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        if let Some(end) = view.show(printer, &clock.tick())? {
            view.clear();
            return Ok((view.rollback, end));
        }
        let seen = tokio::select! {
            () = &mut interrupted => {
                view.clear();
                return Err(stopped(&name, &view.rollback, &clock.tick()));
            }
            () = &mut time_over => {
                view.clear();
                return Err(timed_out(&name, &view.rollback, options.timeout, &clock.tick()));
            }
            event = watch.next() => match event {
                Some(Ok(Some(rollback))) => Some(rollback),
                // Gone, or the watch is in trouble: look.
                Some(Ok(None) | Err(_)) | None => view.look(session, printer, &name).await?,
            },
            _ = redraw.tick(), if printer.is_interactive() => None,
            _ = look.tick() => view.look(session, printer, &name).await?,
        };
        if let Some(seen) = seen {
            view.saw(seen)?;
        }
    }
}

async fn sleep(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// What was seen and shown so far.
struct Follower {
    rollback: Rollback,
    shown: Vec<String>,
    sink: Sink,
    bar: Option<ProgressBar>,
    lost: bool,
}

impl Follower {
    fn new(rollback: Rollback, printer: &Printer, options: Options) -> Self {
        let bar = printer.is_interactive().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { rollback, shown: Vec::new(), sink: options.sink, bar, lost: false }
    }

    /// Shows what is new; the end, if it has come.
    fn show(&mut self, printer: &mut Printer, clock: &Clock) -> Result<Option<End>, Failure> {
        let end = progress::end(&self.rollback);
        let mut events = progress::events(&self.rollback, clock);
        events.extend(end.as_ref().filter(|end| end.kind.is_none()).map(End::event));
        for event in events {
            if !self.shown.contains(&event.text) {
                let line = event.line(clock);
                let sink = self.sink;
                self.above_bar(|| printer.progress(sink, &line))?;
                self.shown.push(event.text);
            }
        }
        if self.is_ignored(clock) {
            self.say_once(
                printer,
                "no controller has looked at it yet. Is one running? kubectl -n rollback-system get pods",
            )?;
        }
        if let Some(bar) = &self.bar {
            bar.set_message(progress::live(&self.rollback, clock));
        }
        Ok(end)
    }

    fn is_ignored(&self, clock: &Clock) -> bool {
        let created = self.rollback.metadata.creation_timestamp.as_ref().map(|time| time.0.as_second());
        self.rollback.status.is_none()
            && created.is_some_and(|created| clock.now.as_second() - created > PATIENCE)
    }

    fn say_once(&mut self, printer: &mut Printer, text: &str) -> Result<(), Failure> {
        if self.shown.iter().any(|shown| shown == text) {
            return Ok(());
        }
        self.shown.push(text.to_owned());
        self.above_bar(|| printer.note(text))
    }

    /// Writes lines without the redrawn one getting into them.
    fn above_bar(&self, write: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Reads the object. An error is shown once and does not stop us, unless it says that we may not look.
    async fn look(
        &mut self,
        session: &Session,
        printer: &mut Printer,
        name: &str,
    ) -> Result<Option<Rollback>, Failure> {
        match session.rollback(name).await {
            Ok(Some(rollback)) => {
                if std::mem::take(&mut self.lost) {
                    self.above_bar(|| printer.note("connected again"))?;
                }
                Ok(Some(rollback))
            }
            Ok(None) => Err(self.gone()),
            Err(failure) if failure.kind == Kind::Refused => Err(failure),
            Err(failure) => {
                if !std::mem::replace(&mut self.lost, true) {
                    self.above_bar(|| {
                        printer
                            .note(&format!("{} Trying again; the rollback goes on meanwhile.", failure.text))
                    })?;
                }
                Ok(None)
            }
        }
    }

    fn saw(&mut self, seen: Rollback) -> Result<(), Failure> {
        if seen.metadata.uid != self.rollback.metadata.uid {
            return Err(self.gone());
        }
        self.rollback = seen;
        Ok(())
    }

    fn gone(&self) -> Failure {
        self.clear();
        let name = self.rollback.metadata.name.as_deref().unwrap_or_default();
        let target = &self.rollback.spec.to_release_ref.target;
        Failure::new(
            Kind::Cancelled,
            format!(
                "rollback/{name} was deleted while it was running. See what is active: kubectl rollback history {target}"
            ),
        )
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn commands(name: &str) -> String {
    format!("Follow: kubectl rollback status {name} --watch    Cancel: kubectl rollback cancel {name}")
}

fn stopped(name: &str, rollback: &Rollback, clock: &Clock) -> Failure {
    let standing = progress::standing_with_deadline(rollback, clock);
    Failure::new(Kind::StoppedWatching, format!("rollback/{name} goes on ({standing}).\n{}", commands(name)))
}

fn timed_out(name: &str, rollback: &Rollback, timeout: Option<Duration>, clock: &Clock) -> Failure {
    let waited = span(timeout.unwrap_or_default().as_secs().try_into().unwrap_or(i64::MAX));
    let left = match progress::deadline_in(rollback, clock) {
        Some(left) => format!("has {left} left"),
        None => "goes on".to_owned(),
    };
    Failure::new(
        Kind::StillRunning,
        format!("waited {waited} as asked (--timeout). rollback/{name} {left}.\n{}", commands(name)),
    )
}

#[cfg(test)]
mod tests;
