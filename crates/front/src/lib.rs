//! client → front → ring → front → client: HTTP in, ring out. Knows neither PHP nor processes.
//!
//! One thread, one `tokio` runtime. The life of a request gives the modules their names:
//!
//! | step | module |
//! |---|---|
//! | accept | `accept`: listeners, the cap on connections |
//! | parse | `connection`: hyper, and the deadlines hyper does not keep |
//! | (the story) | `request`: what happens to one request, stage by stage |
//! | route | [`route`]: path → file or script, a pure function |
//! | | `static_files`, [`range`], [`validate`]: files |
//! | head | `head`: what PHP is told; `forwarded`: whom to believe |
//! | submit | `upload`: the body; `submit`: into a slot, run again if its worker died |
//! | take … finish | `exchange`: the table of slots in flight (the worker's side is another crate) |
//! | deliver | `deliver`: answer head and body for hyper; `error_page`: the front's own answers |
//! | record | `record`: access log; `counters` |
//!
//! `front` wires them up, `shared` is what they share, and `scheduling` lets its thread give way to workers. Everything is bounded by a named limit.

mod accept;
mod bell;
mod connection;
mod counters;
mod deliver;
mod error_page;
mod exchange;
mod forwarded;
mod front;
mod head;
mod interim;
mod link;
mod options;
pub mod range;
mod record;
mod request;
mod request_id;
pub mod route;
mod route_cache;
mod scheduling;
mod shared;
mod static_files;
mod submit;
mod throttle;
mod upload;
pub mod validate;

#[cfg(test)]
mod tests;

pub use counters::CountersSnapshot;
pub use front::{Front, FrontHandle, SWEEP, StartError, ValidOptions};
pub use link::{FrontEvent, KillReason, SupervisorLink};
pub use options::{AccessLog, AccessLogFormat, EarlyHints, FrontOptions, Limits, Timeouts};
