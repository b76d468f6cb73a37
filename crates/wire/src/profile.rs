//! What workers did: the question of `samovar profile`, and its answer.

use crate::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which of what the sampler has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileQuestion {
    /// Of this route; `None`: of all.
    pub route: Option<String>,
    /// From this second since 1970 on; 0: the last ten minutes.
    pub from: u64,
    /// Up to this one; 0: until now.
    pub to: u64,
    /// Of this pool; `None`: of all, and where generations are asked for of the route's, or else of the default one.
    pub pool: Option<String>,
    /// Of workers of this generation, as the pool counts them, of the running server.
    pub generation: Option<u64>,
    /// What it is compared with.
    pub against: Option<Against>,
}

/// Another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// As long, so much earlier.
    Earlier {
        /// How much.
        seconds: u64,
    },
    /// As long, of the generation before, up to its end.
    Reload,
}

impl ProfileQuestion {
    /// `profile`, or `profile {"route": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<ProfileQuestion>, Misunderstood> {
        let text = line.strip_prefix("profile").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Profile)
    }
}

/// What was asked for, or why there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileAnswer {
    /// Why there is nothing to be shown.
    pub error: Option<String>,
    /// The pool that was asked for; empty: none was.
    pub pool: String,
    /// Looks per second at each busy worker.
    pub hertz: u32,
    /// What was asked for.
    pub now: ProfileSide,
    /// What it is compared with.
    pub before: Option<ProfileSide>,
    /// (name, samples) of the routes of that time, the most samples first.
    pub routes: Vec<(String, u64)>,
}

/// What workers did in some time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileSide {
    /// When it began, seconds since 1970.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// Whose workers were seen.
    pub generations: Vec<u64>,
    /// Requests that ended meanwhile; 0: nobody counts them.
    pub requests: u64,
    /// The stacks, as crates/spy packs them.
    pub profile: Value,
    /// There was more than one answer takes: the oldest is left out.
    pub is_cut: bool,
}
