//! Spans on their way to the collector: a queue with limits, whose oldest make room.
//!
//! What was dropped while a collector was away is gone either way; when it is back, the latest requests are those that
//! somebody looks for.

use super::message::Span;
use prost::Message as _;
use std::collections::VecDeque;

/// Spans that wait at most.
pub(super) const SPANS_MAX: usize = 20_000;
/// Their bytes at most, as they are sent.
pub(in crate::export) const BYTES_MAX: usize = 16 << 20;
/// Spans at which a batch is sent before its time, and bytes.
pub(super) const BATCH_SPANS_MAX: usize = 2_000;
pub(super) const BATCH_BYTES_MAX: usize = 2 << 20;

/// The spans of one request.
#[derive(Debug)]
struct Waiting {
    spans: Vec<Span>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Queue {
    requests: VecDeque<Waiting>,
    spans: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::new(BYTES_MAX)
    }
}

impl Queue {
    /// An empty one for spans of so many bytes.
    pub(super) fn new(bytes_max: usize) -> Queue {
        Queue { requests: VecDeque::new(), spans: 0, bytes: 0, bytes_max }
    }

    /// Adds a request's spans; how many had to go for them.
    pub(super) fn put(&mut self, spans: Vec<Span>) -> usize {
        let bytes = spans.iter().map(Span::encoded_len).sum();
        self.spans += spans.len();
        self.bytes += bytes;
        self.requests.push_back(Waiting { spans, bytes });
        let mut dropped = 0;
        while self.spans > SPANS_MAX || self.bytes > self.bytes_max {
            dropped += self.pop().map_or(0, |spans| spans.len());
        }
        dropped
    }

    fn pop(&mut self) -> Option<Vec<Span>> {
        let first = self.requests.pop_front()?;
        self.spans -= first.spans.len();
        self.bytes -= first.bytes;
        Some(first.spans)
    }

    /// Whether a batch is worth sending before its time.
    pub(super) fn is_full(&self) -> bool {
        self.spans >= BATCH_SPANS_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.spans
    }

    /// The oldest of them, a batch full, in whole requests: one more than the limits where the last goes beyond.
    pub(super) fn batch(&mut self) -> Vec<Span> {
        let mut batch = Vec::new();
        let begin = self.bytes;
        while batch.len() < BATCH_SPANS_MAX && begin - self.bytes < BATCH_BYTES_MAX {
            let Some(spans) = self.pop() else { break };
            batch.extend(spans);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_SPANS_MAX, BYTES_MAX, Queue, SPANS_MAX};
    use crate::export::otlp::message::Span;

    fn spans(n: usize, name: &str) -> Vec<Span> {
        vec![Span { name: name.to_owned(), ..Span::default() }; n]
    }

    #[test]
    fn the_oldest_make_room() {
        let mut queue = Queue::default();
        assert_eq!(queue.put(spans(5, "first")), 0);
        assert_eq!(queue.put(spans(SPANS_MAX - 5, "second")), 0);
        assert_eq!(queue.put(spans(3, "third")), 5);
        assert_eq!(queue.len(), SPANS_MAX - 2);
        assert_eq!(queue.batch()[0].name, "second");
    }

    #[test]
    fn bytes_have_a_limit_too() {
        let mut queue = Queue::default();
        let long = "x".repeat(1 << 20);
        let dropped: usize = (0..40).map(|_| queue.put(spans(1, &long))).sum();
        assert_eq!(dropped + queue.len(), 40);
        assert!(queue.len() <= BYTES_MAX >> 20, "{}", queue.len());
        assert!(queue.is_full());
        assert_eq!(queue.batch().len(), 2);
        let mut small = Queue::new(3 << 20);
        let dropped: usize = (0..40).map(|_| small.put(spans(1, &long))).sum();
        assert_eq!((dropped, small.len()), (38, 2));
    }

    #[test]
    fn a_batch_has_whole_requests_and_a_limit() {
        let mut queue = Queue::default();
        for _ in 0..BATCH_SPANS_MAX {
            queue.put(spans(3, "x"));
        }
        let batch = queue.batch();
        assert!((BATCH_SPANS_MAX..BATCH_SPANS_MAX + 3).contains(&batch.len()));
        assert_eq!(batch.len() % 3, 0);
        while !queue.is_empty() {
            queue.batch();
        }
        assert_eq!(queue.len(), 0);
    }
}
