//! Data that wait to be sent, and the choice of the next request to the collector.

use super::message::Span;
use super::queue::Queue;
use samovar_outbound::{Desk, Next, Outbox};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Queued data.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) queue: Queue,
    /// Time for which spans are collected.
    every: Duration,
    /// Time when the oldest queued span arrived.
    since: Option<Instant>,
    /// The latest figures, encoded. They replace older ones.
    pub(super) figures: Option<Vec<u8>>,
}

/// Data of one request.
pub(super) enum Parcel {
    /// By release.
    Spans(Vec<(Arc<str>, Vec<Span>)>),
    Figures(Vec<u8>),
}

impl Waiting {
    /// Nothing is queued yet.
    pub(super) fn new(queue: Queue, every: Duration) -> Waiting {
        Waiting { queue, every, since: None, figures: None }
    }
}

impl Outbox for Waiting {
    type Parcel = Parcel;

    fn next(&mut self, now: Instant, is_ending: bool) -> Next<Parcel> {
        let due = self.since.map(|since| since + self.every);
        let is_due = is_ending || self.queue.is_full() || due.is_some_and(|due| now >= due);
        if is_due && !self.queue.is_empty() {
            let batch = self.queue.batch();
            self.since = (!self.queue.is_empty()).then_some(now);
            return Next::Now(Parcel::Spans(batch));
        }
        match self.figures.take() {
            Some(figures) => Next::Now(Parcel::Figures(figures)),
            None => Next::In(due.map_or(self.every, |due| due.saturating_duration_since(now))),
        }
    }
}

/// Queues spans of a release. Returns the number of spans dropped for them.
pub(super) fn queue(desk: &Desk<Waiting>, release: Arc<str>, spans: Vec<Span>) -> u64 {
    let dropped = desk.queue(|waiting| {
        let was_empty = waiting.queue.is_empty();
        if was_empty {
            waiting.since = Some(Instant::now());
        }
        let dropped = waiting.queue.put(release, spans);
        (dropped, was_empty || waiting.queue.is_full())
    });
    dropped as u64
}
