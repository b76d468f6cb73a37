//! Traces of jobs (W3C Trace Context): which span pushed a job, and the span of the batch that runs
//! it.
//!
//! A batch of one job continues the trace of its push. A batch of several begins a trace, and links
//! to the spans that pushed its jobs.

use samovar_channel::TraceContext;
use samovar_wire::{TraceFlags, Traceparent};

/// Maximum length of a `tracestate`. The recommendation requires as many.
const TRACESTATE_BYTES_MAX: usize = 512;
/// Maximum number of links of a batch: the limit of OpenTelemetry's SDKs.
const LINKS_MAX: usize = 128;
/// Returns the context in the form in which it is stored: without parts that are not valid.
pub(crate) fn checked(trace: &TraceContext) -> TraceContext {
    let Some(parent) = parsed(trace) else { return TraceContext::default() };
    let state = &trace.tracestate;
    let is_valid = state.len() <= TRACESTATE_BYTES_MAX
        && state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    TraceContext {
        traceparent: parent.text(),
        tracestate: if is_valid { state.clone() } else { String::new() },
    }
}

fn parsed(trace: &TraceContext) -> Option<Traceparent> {
    Traceparent::parse(trace.traceparent.as_bytes())
}

/// Bytes that a checked context takes in a batch at most: each quote is escaped.
pub(crate) fn bytes(trace: &TraceContext) -> usize {
    trace.traceparent.len() + 2 * trace.tracestate.len()
}

/// The span of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchTrace {
    own: Traceparent,
    /// Id of the span that pushed its only job; zero if the trace begins with the batch.
    pub parent_id: [u8; 8],
    /// The spans that pushed its jobs, if there are several jobs.
    pub links: Vec<Traceparent>,
}

impl BatchTrace {
    /// Returns the span of a batch whose jobs have these contexts. `share_ppm` of the traces that
    /// begin with a batch are sampled.
    #[must_use]
    pub fn begin(jobs: &[TraceContext], share_ppm: u32) -> BatchTrace {
        let span_id = fastrand::u64(1..).to_be_bytes();
        if let [job] = jobs
            && let Some(parent) = parsed(job)
        {
            let own = Traceparent { span_id, ..parent };
            return BatchTrace { own, parent_id: parent.span_id, links: Vec::new() };
        }
        let low = fastrand::u64(1..);
        let mut trace_id = [0; 16];
        trace_id[..8].copy_from_slice(&fastrand::u64(..).to_be_bytes());
        trace_id[8..].copy_from_slice(&low.to_be_bytes());
        let flags = TraceFlags::of_new_trace(low, share_ppm);
        let mut links: Vec<Traceparent> = Vec::new();
        for link in jobs.iter().filter_map(parsed) {
            // Jobs of one push have the same span.
            if links.last() != Some(&link) && links.len() < LINKS_MAX {
                links.push(link);
            }
        }
        let own = Traceparent { trace_id, span_id, flags };
        BatchTrace { own, parent_id: [0; 8], links }
    }

    /// Id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.own.trace_id
    }

    /// Id of the batch's span.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.own.span_id
    }

    /// Whether the span is sent to the collector.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.own.flags.is_sampled()
    }

    /// Returns the `traceparent` for requests and jobs that the batch causes.
    #[must_use]
    pub fn traceparent(&self) -> String {
        self.own.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn context(traceparent: &str) -> TraceContext {
        TraceContext { traceparent: traceparent.to_owned(), tracestate: "a=b".to_owned() }
    }

    #[test]
    fn invalid_contexts_are_dropped() {
        assert_eq!(checked(&context(PARENT)), context(PARENT));
        let later = PARENT.replacen("00", "cc", 1) + "-more";
        assert_eq!(checked(&context(&later)), context(PARENT));
        for wrong in [
            String::new(),
            PARENT[1..].to_owned(),
            format!("{PARENT}-"),
            PARENT.replacen("00", "ff", 1),
            PARENT.to_uppercase(),
            PARENT.replace("00f067aa0ba902b7", "0000000000000000"),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "é".repeat(16).as_str()),
        ] {
            assert_eq!(checked(&context(&wrong)), TraceContext::default(), "{wrong}");
        }
        for state in ["a\nb".to_owned(), "ä".to_owned(), "x".repeat(513)] {
            let wrong = TraceContext { tracestate: state, ..context(PARENT) };
            assert_eq!(checked(&wrong).tracestate, "");
        }
    }

    #[test]
    fn one_job_continues_its_trace_and_several_are_linked() {
        let one = BatchTrace::begin(&[context(PARENT)], 0);
        assert!(one.is_sampled() && one.links.is_empty());
        let own = Traceparent::parse(one.traceparent().as_bytes()).expect("valid");
        let parent = Traceparent::parse(PARENT.as_bytes()).expect("valid");
        assert_eq!((own.trace_id, one.parent_id), (parent.trace_id, parent.span_id));
        assert_ne!(one.span_id(), parent.span_id);

        let other = PARENT.replace("00f067", "11f067");
        let several = [context(PARENT), context(PARENT), context(&other), TraceContext::default()];
        let batch = BatchTrace::begin(&several, 1_000_000);
        assert!(batch.is_sampled() && batch.parent_id == [0; 8]);
        assert_ne!(batch.trace_id(), parent.trace_id);
        assert_eq!(batch.links, [parent, Traceparent::parse(other.as_bytes()).expect("valid")]);
        assert!(!BatchTrace::begin(&[TraceContext::default()], 0).is_sampled());

        let many: Vec<_> =
            (0..1_000).map(|n| context(&PARENT.replace("00f067", &format!("{n:06x}")))).collect();
        assert_eq!(BatchTrace::begin(&many, 0).links.len(), LINKS_MAX);
    }
}
