//! Servers that a command starts for itself, and how it asks them: what `compare` and `leaks` have in common.

pub(crate) mod answer;
pub(crate) mod model;
pub(crate) mod progress;
pub(crate) mod server;
pub(crate) mod targets;
pub(crate) mod visitor;
