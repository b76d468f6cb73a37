//! A boot, the loads of its requests, and its most expensive functions, as queries return them.
//! `collector.rs` makes it of the reports, `functions.rs` adds the functions.

use super::boot::Boot;
use super::lazy::Lazy;
use serde::{Deserialize, Serialize};

/// A boot, and the loads of requests below its checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// Cost of the boot.
    pub boot: Boot,
    /// Loads of its requests.
    pub lazy: Lazy,
    /// Functions of the boot, highest cost first; filled if the sampler runs.
    pub functions: Vec<BootFunction>,
}

/// A function of a boot and of the prewarm boot before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootFunction {
    /// Name such as `App\Kernel::boot`.
    pub function: String,
    /// File of the declaration.
    pub file: String,
    /// Line of the declaration.
    pub line: u32,
    /// Number of samples in the function itself.
    pub samples: u64,
    /// Time in the function itself, ns.
    pub own_ns: u64,
    /// Time in the function, callees included, ns.
    pub total_ns: u64,
}
