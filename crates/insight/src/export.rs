//! Figures on their way out, in the formats that others collect.

pub mod exposition;
mod metrics;
pub mod otlp;
pub mod post;
pub mod waits;

pub use metrics::{events, metrics, ways};
