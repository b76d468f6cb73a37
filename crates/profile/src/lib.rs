//! profile: samples of workers, added up by minute and route, stored for a limited time, and
//! queried.
//!
//! Samples come from the supervisor's sampler; the binary connects the two. Routes come from
//! crates/insight, which learns them when requests end. In reading order:
//!
//! | file | content |
//! |---|---|
//! | `sample.rs` | one sample of a worker |
//! | `current_minute.rs` | the current minute, and the requests that still run |
//! | `store.rs` | completed minutes, in memory or on disk, bounded |
//! | `query.rs` | queries, answered from both |
//! | `profiles.rs` | thread that stores minutes and answers queries |
//! | `push.rs` | push of minutes to Pyroscope |
//! | `calls.rs` | call graphs of traced requests, by day and route |
//! | `loads.rs` | cost of boots, and files that requests still load |
//! | `memory_file.rs` | transport of graphs and load reports |

pub mod calls;
mod current_minute;
mod fields;
pub mod loads;
mod memory_file;
mod profiles;
mod push;
mod query;
mod sample;
mod store;

pub use current_minute::{BETWEEN, BOOT};
pub use profiles::{Options, Profiles};
pub use push::{PushOptions, Pusher};
pub use query::{ProfileResult, Side};
pub use samovar_insight::now;
pub use samovar_outbound::ProblemSink;
pub use sample::{At, Sample};
