//! Queue of spans for the collector, with limits; the oldest are dropped first.
//!
//! After a collector was away, the latest requests are the ones that operators look for.

use super::message::Span;
use prost::Message as _;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of queued spans.
pub(super) const SPANS_MAX: usize = 20_000;
/// Maximum bytes of queued spans, in encoded form.
pub(super) const BYTES_MAX: usize = 16 << 20;
/// Number of spans, and of bytes, at which a batch is sent early.
pub(super) const BATCH_SPANS_MAX: usize = 2_000;
pub(super) const BATCH_BYTES_MAX: usize = 2 << 20;

/// Spans of one request.
#[derive(Debug)]
struct Waiting {
    release: Arc<str>,
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
    /// Creates an empty queue with this limit in bytes.
    pub(super) fn new(bytes_max: usize) -> Queue {
        Queue { requests: VecDeque::new(), spans: 0, bytes: 0, bytes_max }
    }

    /// Adds the spans of a request that this release served. Returns the number of spans dropped
    /// for them.
    pub(super) fn put(&mut self, release: Arc<str>, spans: Vec<Span>) -> usize {
        let bytes = spans.iter().map(Span::encoded_len).sum();
        self.spans += spans.len();
        self.bytes += bytes;
        self.requests.push_back(Waiting { release, spans, bytes });
        let mut dropped = 0;
        while self.spans > SPANS_MAX || self.bytes > self.bytes_max {
            dropped += self.pop().map_or(0, |(_, spans)| spans.len());
        }
        dropped
    }

    fn pop(&mut self) -> Option<(Arc<str>, Vec<Span>)> {
        let first = self.requests.pop_front()?;
        self.spans -= first.spans.len();
        self.bytes -= first.bytes;
        Some((first.release, first.spans))
    }

    /// Returns whether a batch should be sent early.
    pub(super) fn is_full(&self) -> bool {
        self.spans >= BATCH_SPANS_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.spans
    }

    /// Removes and returns the oldest spans as one batch, by release, in whole requests. The last
    /// request may exceed the limits.
    pub(super) fn batch(&mut self) -> Vec<(Arc<str>, Vec<Span>)> {
        let mut batch: Vec<(Arc<str>, Vec<Span>)> = Vec::new();
        let (begin, mut count) = (self.bytes, 0);
        while count < BATCH_SPANS_MAX && begin - self.bytes < BATCH_BYTES_MAX {
            let Some((release, spans)) = self.pop() else { break };
            count += spans.len();
            match batch.iter_mut().find(|(known, _)| *known == release) {
                Some((_, all)) => all.extend(spans),
                None => batch.push((release, spans)),
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH_SPANS_MAX, BYTES_MAX, Queue, SPANS_MAX};
    use crate::export::otlp::message::Span;
    use std::sync::Arc;

    fn label() -> Arc<str> {
        Arc::default()
    }

    fn spans(n: usize, name: &str) -> Vec<Span> {
        vec![Span { name: name.to_owned(), ..Span::default() }; n]
    }

    #[test]
    fn queue_beyond_span_limit_drops_oldest() {
        let mut queue = Queue::default();
        assert_eq!(queue.put(label(), spans(5, "first")), 0);
        assert_eq!(queue.put(label(), spans(SPANS_MAX - 5, "second")), 0);
        assert_eq!(queue.put(label(), spans(3, "third")), 5);
        assert_eq!(queue.len(), SPANS_MAX - 2);
        assert_eq!(queue.batch()[0].1[0].name, "second");
    }

    #[test]
    fn queue_beyond_byte_limit_drops_oldest() {
        let mut queue = Queue::default();
        let long = "x".repeat(1 << 20);
        let dropped: usize = (0..40).map(|_| queue.put(label(), spans(1, &long))).sum();
        assert_eq!(dropped + queue.len(), 40);
        assert!(queue.len() <= BYTES_MAX >> 20, "{}", queue.len());
        assert!(queue.is_full());
        assert_eq!(queue.batch()[0].1.len(), 2);
        let mut small = Queue::new(3 << 20);
        let dropped: usize = (0..40).map(|_| small.put(label(), spans(1, &long))).sum();
        assert_eq!((dropped, small.len()), (38, 2));
    }

    #[test]
    fn batch_has_whole_requests_and_a_limit() {
        let mut queue = Queue::default();
        for _ in 0..BATCH_SPANS_MAX {
            queue.put(label(), spans(3, "x"));
        }
        let batch = &queue.batch()[0].1;
        assert!((BATCH_SPANS_MAX..BATCH_SPANS_MAX + 3).contains(&batch.len()));
        assert_eq!(batch.len() % 3, 0);
        while !queue.is_empty() {
            queue.batch();
        }
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn batch_separates_releases() {
        let mut queue = Queue::default();
        for (release, name) in [("1", "a"), ("1", "b"), ("2", "c"), ("1", "d")] {
            queue.put(release.into(), spans(1, name));
        }
        let batch = queue.batch();
        let names = |spans: &[Span]| spans.iter().map(|span| &*span.name).collect::<String>();
        let found: Vec<_> = batch.iter().map(|(label, all)| (&**label, names(all))).collect();
        assert_eq!(found, [("1", "abd".to_owned()), ("2", "c".to_owned())]);
    }
}
