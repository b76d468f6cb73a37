//! Requests as OpenTelemetry spans, in the Protocol Buffers that collectors accept over HTTP (OTLP
//! 1.x).
//!
//! A sampled request is a server span. It has a child for its time in the queue, one for PHP, and
//! one for a boot or rollback that its worker did meanwhile. PHP's span has a child for the
//! script's own boot, for each peer that it waited for, and for each timer. Waits and timers are
//! sums: their spans begin with PHP's span, last for the total time, and have the number of times
//! as an attribute (`samovar.times`). Names follow the semantic conventions for HTTP server spans.
//!
//! A batch of jobs is a consumer span. The spans that pushed its jobs are its parent or its links.

mod attributes;
mod exporter;
mod identity;
mod job_spans;
mod measures;
mod message;
mod outbox;
mod queue;
mod reply;
mod spans;

pub use exporter::{Exporter, OtlpOptions};
pub use identity::Identity;
pub use job_spans::{JobBatch, JobSpans};
pub use measures::{HistogramForm, Measures};
pub use samovar_outbound::Unusable;
pub use spans::Spans;

#[cfg(test)]
mod tests;
