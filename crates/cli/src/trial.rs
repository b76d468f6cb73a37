//! Servers that a command starts for itself, and requests to them: common code of `compare`,
//! `leaks`, `preload` and `try`.

pub(crate) mod cost;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod progress;
pub(crate) mod response;
pub(crate) mod server;
pub(crate) mod targets;
pub(crate) mod visitor;
