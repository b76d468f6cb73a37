//! `samovar upgrade`: what is asked for, and what came of it.

use crate::Misunderstood;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which server is to take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeOptions {
    /// Its binary; `None`: the one that the running server was started as, looked for anew.
    pub binary: Option<PathBuf>,
}

impl UpgradeOptions {
    /// `upgrade`, or `upgrade {"binary": …}`.
    pub(crate) fn parse(line: &str) -> Result<UpgradeOptions, Misunderstood> {
        let text = line.strip_prefix("upgrade").unwrap_or(line).trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str(text).map_err(|_| Misunderstood::Upgrade)
    }
}

/// The JSON of `samovar upgrade`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeAnswer {
    /// The process that serves now; 0: the one that was asked goes on.
    pub pid: i32,
    /// Its version.
    pub version: String,
    /// From the command to the takeover.
    pub milliseconds: u64,
    /// Why there is no new server.
    pub error: Option<String>,
}

impl UpgradeAnswer {
    /// The one that was asked goes on, because of this.
    pub fn refused(why: String) -> UpgradeAnswer {
        UpgradeAnswer { error: Some(why), ..UpgradeAnswer::default() }
    }
}
