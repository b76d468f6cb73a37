//! Capacity of a server: cores, memory, and the number of further requests that they carry.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Use of the cores and of memory in the last minute, and an estimate of the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapacityStatus {
    /// Length of the measured period; 0: not measured yet.
    pub seconds: f64,
    /// Cores that this server may use: its CPU affinity, limited by the quota of its control group.
    pub cores: f64,
    /// Cores used by all processes of this server.
    pub cores_used: f64,
    /// Cores used by other processes on the same CPUs.
    pub cores_others: f64,
    /// Cores that the hypervisor took (steal).
    pub cores_stolen: f64,
    /// Cores that are left.
    pub cores_free: f64,
    /// Share of the periods of the control group's quota in which it was throttled.
    pub throttled: f64,
    /// Whether two CPUs of one core are among them, or may be used by others: then an idle CPU is
    /// less than an idle core, and the estimate is an upper bound.
    pub shares_cores: bool,
    /// Private memory of a further worker; 0: not measured yet.
    pub worker_bytes: u64,
    /// Free memory of the machine, or of the control group if that has less.
    pub memory_free_bytes: u64,
    /// Mean requests per second.
    pub requests_per_second: f64,
    /// CPU time per request in the last five minutes, of workers and of the server; `null`:
    /// unknown.
    pub cpu_us_per_request: Option<f64>,
    /// Further requests per second that the server carries, if they are like those before; `null`:
    /// unknown.
    pub requests_more_per_second: Option<f64>,
    /// Resource that ends first: `cpu`, `workers` or `memory`; empty: unknown.
    pub limit: String,
    /// Reason why the number is unknown; empty: it is known.
    pub unknown: String,
}

impl CapacityStatus {
    /// Returns a sentence such as `carries about 1200 more requests/s of this mix; CPU is the
    /// limit`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Some(more) = self.requests_more_per_second else {
            return format!("capacity unknown: {}", self.unknown);
        };
        let about = if self.shares_cores { "at most about" } else { "about" };
        let limit = match &*self.limit {
            "workers" => "the number of workers is the limit",
            "memory" => "memory for workers is the limit",
            _ => "CPU is the limit",
        };
        let more = rounded(more);
        format!("carries {about} {more} more requests/s of this mix; {limit}")
    }

    /// Returns a sentence such as `2 cores: this server 0.31, others 0.80, free 0.89`.
    #[must_use]
    pub fn cores_in_words(&self) -> String {
        let CapacityStatus { cores, cores_used, cores_others, cores_free, .. } = self;
        let mut text =
            format!("{cores:.1} cores: this server {cores_used:.2}, others {cores_others:.2}");
        // Writing to a string cannot fail.
        if self.cores_stolen >= 0.005 {
            let _ = write!(text, ", stolen {:.2}", self.cores_stolen);
        }
        let _ = write!(text, ", free {cores_free:.2}");
        if self.throttled > 0.0 {
            let _ = write!(text, ", throttled in {:.0} % of the periods", 100.0 * self.throttled);
        }
        text
    }
}

/// Rounds to two significant digits, because it is an estimate.
fn rounded(number: f64) -> f64 {
    if number < 1.0 {
        return (number * 10.0).floor() / 10.0;
    }
    let step = 10_f64.powf(number.log10().floor() - 1.0).max(1.0);
    (number / step).floor() * step
}

#[cfg(test)]
mod tests {
    use super::CapacityStatus;

    #[test]
    fn estimate_is_a_sentence() {
        let of = |more, shares_cores, limit: &str| CapacityStatus {
            requests_more_per_second: Some(more),
            shares_cores,
            limit: limit.to_owned(),
            ..CapacityStatus::default()
        };
        for (status, expected) in [
            (
                of(1_234.0, false, "cpu"),
                "carries about 1200 more requests/s of this mix; CPU is the limit",
            ),
            (
                of(0.57, true, "memory"),
                "carries at most about 0.5 more requests/s of this mix; memory for workers is the \
                 limit",
            ),
            (
                of(0.0, false, "workers"),
                "carries about 0 more requests/s of this mix; the number of workers is the limit",
            ),
            (
                of(18.0, false, "cpu"),
                "carries about 18 more requests/s of this mix; CPU is the limit",
            ),
        ] {
            assert_eq!(status.in_words(), expected);
        }
        let unknown = CapacityStatus { unknown: "no requests".into(), ..Default::default() };
        assert_eq!(unknown.in_words(), "capacity unknown: no requests");
    }

    #[test]
    fn use_of_cores_is_a_sentence() {
        let status = CapacityStatus {
            cores: 1.5,
            cores_used: 0.5,
            cores_others: 0.25,
            cores_stolen: 0.1,
            cores_free: 0.6,
            throttled: 0.12,
            ..CapacityStatus::default()
        };
        let expected = "1.5 cores: this server 0.50, others 0.25, stolen 0.10, free 0.60, \
                        throttled in 12 % of the periods";
        assert_eq!(status.cores_in_words(), expected);
    }
}
