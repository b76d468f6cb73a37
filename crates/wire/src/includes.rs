//! Request and response of `samovar includes`: files that requests include.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Selects the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IncludesQuestion {
    /// Pool; `None`: the default pool.
    pub pool: Option<String>,
    /// Route of the files; `None`: all routes.
    pub route: Option<String>,
}

impl IncludesQuestion {
    /// Parses `includes` or `includes {"route": …}`.
    pub(crate) fn parse(line: &str) -> Result<Box<IncludesQuestion>, Misunderstood> {
        let text = line.strip_prefix("includes").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Includes)
    }
}

/// The files, or the reason why there are none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IncludesResponse {
    /// Reason why no data is available.
    pub error: Option<String>,
    /// Name of the pool; empty if the server has one pool.
    pub pool: String,
    /// Routes and files, in the format of crates/profile.
    pub includes: Value,
}
