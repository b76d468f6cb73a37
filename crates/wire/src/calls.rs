//! Request and response of `samovar calls`: call graphs of traced requests.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Selects a call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallsQuestion {
    /// Pool; `None`: the pool that the route names, as in `export: /a`, otherwise the default pool.
    pub pool: Option<String>,
    /// Route; `None`: the route with the most traced requests.
    pub route: Option<String>,
    /// Day, counted in days since 1970; `None`: the latest day.
    pub day: Option<u64>,
    /// If set, the response is a signature instead of a graph. A request with this signature is
    /// traced. The signature is valid for this number of seconds.
    pub sign_s: Option<u64>,
}

impl CallsQuestion {
    /// Parses `calls` or `calls {"route": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<CallsQuestion>, Misunderstood> {
        let text = line.strip_prefix("calls").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Calls)
    }
}

/// The requested call graph, or the reason why there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallsResponse {
    /// Reason why no data is available.
    pub error: Option<String>,
    /// The requested signature.
    pub signature: Option<String>,
    /// Name of the pool; empty if the server has one pool.
    pub pool: String,
    /// Days with data, latest first.
    pub days: Vec<u64>,
    /// Day of the graph.
    pub day: u64,
    /// Routes of this day with their number of traced requests, largest number first.
    pub routes: Vec<(String, u64)>,
    /// Route of the graph.
    pub route: String,
    /// Graph of this day, in the format of crates/profile.
    pub graph: Value,
    /// Graph of the same route over the seven days before.
    pub before: Value,
}
