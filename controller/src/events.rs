//! Kubernetes events, published beside the work: they inform people and decide nothing.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::sentence;
use crate::metrics::Metrics;

/// Events that wait to be published; more are dropped and counted.
const WAITING: usize = 1024;
/// The API server's limit of a note, in bytes.
const NOTE_BYTES: usize = 1000;
/// The name in `reportingController`, also our field manager.
pub const CONTROLLER: &str = "rollback-controller";

/// The way to publish events. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events {
    sender: mpsc::Sender<(Event, ObjectReference)>,
    metrics: Metrics,
}

/// Publishes what is sent.
pub struct Publisher {
    recorder: Recorder,
    receiver: mpsc::Receiver<(Event, ObjectReference)>,
    metrics: Metrics,
}

impl Events {
    /// The way in and the publisher, which somebody has to run.
    pub fn new(client: Client, metrics: Metrics) -> (Self, Publisher) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let reporter = Reporter { controller: CONTROLLER.to_owned(), instance: None };
        let publisher =
            Publisher { recorder: Recorder::new(client, reporter), receiver, metrics: metrics.clone() };
        (Self { sender, metrics }, publisher)
    }

    /// Something went as it should. `action` is what we did, in `PascalCase`.
    pub fn normal<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, action: &str, note: &str) {
        self.send(EventType::Normal, object.object_ref(&()), reason, action, note);
    }

    /// Somebody may want to look at something.
    pub fn warning<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, action: &str, note: &str) {
        self.send(EventType::Warning, object.object_ref(&()), reason, action, note);
    }

    /// The same about an object of which only the reference is known.
    pub fn warning_about(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        self.send(EventType::Warning, object, reason, action, note);
    }

    fn send(&self, type_: EventType, object: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(cut(note)),
            action: action.to_owned(),
            secondary: None,
        };
        if self.sender.try_send((event, object)).is_err() {
            self.metrics.event_dropped();
        }
    }
}

impl Publisher {
    /// Publishes until `stop`, then what is waiting.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let next = tokio::select! {
                next = self.receiver.recv() => next,
                () = stop.cancelled() => self.receiver.try_recv().ok(),
            };
            let Some((event, object)) = next else { return };
            if let Err(error) = self.recorder.publish(&event, &object).await {
                self.metrics.event_dropped();
                tracing::debug!(
                    reason = event.reason,
                    object = object.name.as_deref().unwrap_or_default(),
                    "the event was not published: {}",
                    sentence(&error)
                );
            }
        }
    }
}

/// As much of the note as the API server takes.
fn cut(note: &str) -> String {
    let ends = note.char_indices().map(|(start, character)| start + character.len_utf8());
    let end = ends.take_while(|end| *end <= NOTE_BYTES).last().unwrap_or(0);
    note[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(""), "");
        assert_eq!(cut(&"ä".repeat(501)), "ä".repeat(500));
        assert_eq!(cut(&format!("a{}", "ä".repeat(500))), format!("a{}", "ä".repeat(499)));
    }
}
