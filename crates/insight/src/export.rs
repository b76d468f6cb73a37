//! Figures on their way out, in the formats that others collect.

pub mod exposition;
mod metrics;
pub mod otlp;

pub use metrics::{events, metrics, ways};
