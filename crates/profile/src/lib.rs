//! profile: what workers were seen at, added up by minute and route, kept for a while, and asked for.
//!
//! Samples come from the supervisor's sampler, by way of whoever connects the two; routes come from crates/insight, which
//! learns them when requests end. In reading order:
//!
//! | file | |
//! |---|---|
//! | `sample.rs` | one look at a worker |
//! | `running.rs` | this minute, and the requests that still run |
//! | `store.rs` | minutes that are over, in memory or on disk, bounded |
//! | `question.rs` | what is asked, answered from both |
//! | `profiles.rs` | the thread that keeps minutes and answers |
//! | `push.rs` | minutes that are sent to Pyroscope |
//! | `calls.rs` | call graphs of traced requests, by day and route |
//! | `loads.rs` | boots explained, and what requests still load |
//! | `sealed.rs` | how graphs and loads come |

pub mod calls;
mod fields;
pub mod loads;
mod profiles;
mod push;
mod question;
mod running;
mod sample;
mod sealed;
mod store;

pub use profiles::{Options, Profiles, Trouble};
pub use push::{PushOptions, Pusher};
pub use question::{Answer, Side};
pub use running::{BETWEEN, BOOT};
pub use sample::{At, Sample};

/// Seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    samovar_insight::now()
}
