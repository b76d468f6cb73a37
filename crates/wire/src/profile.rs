//! Request and response of `samovar profile`: samples of the workers.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Selects a part of the samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileQuestion {
    /// Route; `None`: all routes.
    pub route: Option<String>,
    /// Start in seconds since 1970; 0: ten minutes ago.
    pub from: u64,
    /// End in seconds since 1970; 0: now.
    pub to: u64,
    /// Pool; `None`: all pools. If the request selects generations, `None` is the route's pool,
    /// otherwise the default pool.
    pub pool: Option<String>,
    /// Generation of the workers, in the pool's own count, of the running server.
    pub generation: Option<u64>,
    /// Period to compare with.
    pub against: Option<Against>,
}

/// Period to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// A period of the same length, this much earlier.
    Earlier {
        /// Distance between the two periods.
        seconds: u64,
    },
    /// A period of the same length at the end of the previous generation.
    Reload,
    /// A period of the same length at the end of this generation.
    Generation {
        /// Number of the generation, in the pool's own count.
        number: u64,
    },
}

impl Against {
    /// Returns whether the question is about generations, which each pool counts on its own.
    #[must_use]
    pub fn is_of_generations(self) -> bool {
        matches!(self, Against::Reload | Against::Generation { .. })
    }
}

impl ProfileQuestion {
    /// Parses `profile` or `profile {"route": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<ProfileQuestion>, Misunderstood> {
        let text = line.strip_prefix("profile").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Profile)
    }
}

/// The requested profile, or the reason why there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileResponse {
    /// Reason why no data is available.
    pub error: Option<String>,
    /// The requested pool; empty if the request named none.
    pub pool: String,
    /// Samples per second of each busy worker.
    pub hertz: u32,
    /// The requested profile.
    pub now: ProfileSide,
    /// The profile to compare with.
    pub before: Option<ProfileSide>,
    /// Routes of that period with their number of samples, largest number first.
    pub routes: Vec<(String, u64)>,
}

/// Profile of one period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileSide {
    /// Start in seconds since 1970.
    pub from: u64,
    /// End in seconds since 1970.
    pub to: u64,
    /// Generations whose workers were sampled.
    pub generations: Vec<u64>,
    /// Requests that ended in this period; 0 if requests are not counted.
    pub requests: u64,
    /// The stacks, in the format of crates/spy.
    pub profile: Value,
    /// Whether the data exceeded the limit of one response. The oldest part is then missing.
    pub is_cut: bool,
}
