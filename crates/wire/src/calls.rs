//! What requests have called: the question of `samovar calls`, and its answer.

use crate::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallsQuestion {
    /// Of this pool; `None`: of the one that the route names, as `export: /a`, or else of the default one.
    pub pool: Option<String>,
    /// Of this route; `None`: of the one that was traced most.
    pub route: Option<String>,
    /// Of this day, counted since 1970; `None`: the latest.
    pub day: Option<u64>,
    /// Instead: a signature by which a request asks to be traced, and that holds for so many seconds.
    pub sign_s: Option<u64>,
}

impl CallsQuestion {
    /// `calls`, or `calls {"route": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<CallsQuestion>, Misunderstood> {
        let text = line.strip_prefix("calls").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Calls)
    }
}

/// What was asked for, or why there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallsAnswer {
    /// Why there is nothing to be shown.
    pub error: Option<String>,
    /// The signature that was asked for.
    pub signature: Option<String>,
    /// Whose they are; empty where there is one pool.
    pub pool: String,
    /// Days that there is something of, the latest first.
    pub days: Vec<u64>,
    /// The day that is shown.
    pub day: u64,
    /// Its routes, and how many of their requests were traced; the most first.
    pub routes: Vec<(String, u64)>,
    /// The route that is shown.
    pub route: String,
    /// Its graph, as crates/profile has it.
    pub graph: Value,
    /// The same of the seven days before.
    pub before: Value,
}
