//! Counters of the sampler, and its state for reports.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// State of the sampler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplerReport {
    /// Samples per second.
    pub hertz: u32,
    /// Number of samples of busy workers so far.
    pub samples: u64,
    /// Number of these samples whose stack changed while it was read.
    pub torn: u64,
    /// CPU time used by the thread.
    pub cpu: Duration,
    /// Reason why stacks cannot be read now; empty if they can.
    pub trouble: String,
}

/// Counters and state that the sampler's thread writes and others read.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) samples: AtomicU64,
    pub(super) torn: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
    pub(super) trouble: Mutex<String>,
    pub(super) ends: AtomicBool,
}

impl Counters {
    pub(super) fn add(&self, torn: bool) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.torn.fetch_add(u64::from(torn), Ordering::Relaxed);
    }

    /// Stores why stacks cannot be read, or an empty text if they can. Returns whether that has
    /// changed.
    pub(super) fn note(&self, trouble: &str) -> bool {
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *known != trouble;
        if is_news {
            trouble.clone_into(&mut known);
        }
        is_news
    }
}
