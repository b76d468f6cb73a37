//! What the boot went to: the answer to `boot`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is known of the latest boot, or why there is nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BootAnswer {
    /// Why there is nothing to be shown.
    pub error: Option<String>,
    /// Whose boot it is; empty where there is one pool.
    pub pool: String,
    /// The boot, and what its requests load, as crates/profile has it.
    pub explained: Value,
    /// From the boot's begin until workers could be forked: the image is part of it. 0: not known.
    pub image_ms: f64,
}
