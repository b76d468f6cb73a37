//! Request and response of `samovar upgrade`.

use crate::rejection::Misunderstood;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Options of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeOptions {
    /// Binary of the new server; `None`: the path that the running server was started with,
    /// resolved again.
    pub binary: Option<PathBuf>,
}

impl UpgradeOptions {
    /// Parses `upgrade` or `upgrade {"binary": …}`.
    pub(crate) fn parse(line: &str) -> Result<UpgradeOptions, Misunderstood> {
        let text = line.strip_prefix("upgrade").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Upgrade)
    }
}

/// JSON output of `samovar upgrade`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeResponse {
    /// Process id of the server that serves now; 0: the running server stays.
    pub pid: i32,
    /// Version of the new server.
    pub version: String,
    /// Time from the command to the takeover.
    pub milliseconds: u64,
    /// Reason why there is no new server.
    pub error: Option<String>,
}

impl UpgradeResponse {
    /// Returns the response for an upgrade that failed for this reason; the running server stays.
    pub fn refused(why: String) -> UpgradeResponse {
        UpgradeResponse { error: Some(why), ..UpgradeResponse::default() }
    }
}
