//! Response to `boot`: the cost of the application's boot.

use crate::status::ImageFinding;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Data about the latest boot, or the reason why there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BootResponse {
    /// Reason why no data is available.
    pub error: Option<String>,
    /// Name of the pool; empty if the server has one pool.
    pub pool: String,
    /// The boot and the files that requests load, in the format of crates/profile.
    pub explained: Value,
    /// Time from the start of the boot until workers can be forked, image creation included. 0:
    /// unknown.
    pub image_ms: f64,
    /// Findings of the boot's preflight.
    pub findings: Vec<ImageFinding>,
}
