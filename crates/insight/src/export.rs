//! Export of figures in the formats of monitoring systems.

pub mod exposition;
mod log_buckets;
mod metrics;
pub mod otlp;

pub use metrics::{events, metrics, ways};
