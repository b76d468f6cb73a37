//! A machine: its cores, hyper-threading, and limits.
//!
//! Two threads of a core share its units. If the second thread of a core is busy as well, the core
//! does `speedup` times the work of one thread, usually 1.2 to 1.4 times, not twice. Linux puts
//! tasks on idle cores first. With C cores of T threads, b busy threads do this work, in units of
//! one thread that has a core of its own:
//!
//! ```text
//! work(b) = b                                  for b ≤ C
//! work(b) = C + (b − C) · (s − 1) / (T − 1)    for C < b ≤ C·T
//! ```
//!
//! All threads together do `work(C·T) = C·s`. Tools display `d = b / (C·T)`. The used share of the
//! capacity is therefore `u = d·T / s` up to d = 1/T, and `u = (1 + (d·T − 1)(s − 1)/(T − 1)) / s`
//! above. At T = 2 and s = 1.3, a displayed 50 % is 1/1.3 = 77 % of the capacity.

use serde::Serialize;

/// Speed-up of hyper-threading where it was not measured. Published results for PHP and other
/// servers are from 1.2 to 1.4.
pub const SPEEDUP_DEFAULT: f64 = 1.3;
/// Displayed use at which machines with hyper-threading need an action.
pub const LIMIT_DISPLAYED: f64 = 0.55;

/// Source of the speed-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeedupSource {
    /// Typical value.
    #[default]
    Assumed,
    /// From `samovar plan calibrate`, or given by the user.
    Measured,
    /// One thread per core.
    None,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// Name.
    pub name: String,
    /// Group, such as a data centre; empty: none.
    pub group: String,
    /// Host and port at which a load balancer reaches it.
    pub address: Option<String>,
    /// Number of cores.
    pub cores: f64,
    /// Threads per core.
    pub threads_per_core: f64,
    /// Work of a core with all threads busy, compared with one thread.
    pub speedup: f64,
    /// Source of the speed-up.
    pub speedup_source: SpeedupSource,
    /// Quota of the control group, in CPUs.
    pub quota: Option<f64>,
    /// Maximum number of workers.
    pub workers_max: Option<f64>,
    /// Workers that fit into memory, if that is known.
    pub workers_affordable: Option<f64>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<f64>,
    /// Price per month.
    pub price_per_month: Option<f64>,
}

impl Machine {
    /// A machine with one thread per core, or several with the typical speed-up.
    pub fn new(name: &str, cores: f64, threads_per_core: f64) -> Machine {
        let is_smt = threads_per_core > 1.0;
        Machine {
            name: name.to_owned(),
            group: String::new(),
            address: None,
            cores,
            threads_per_core,
            speedup: if is_smt { SPEEDUP_DEFAULT } else { 1.0 },
            speedup_source: if is_smt { SpeedupSource::Assumed } else { SpeedupSource::None },
            quota: None,
            workers_max: None,
            workers_affordable: None,
            memory_bytes: None,
            price_per_month: None,
        }
    }

    /// Returns whether cores have several threads.
    pub fn has_smt(&self) -> bool {
        self.threads_per_core > 1.0
    }

    /// Returns the number of threads of all cores, which tools display as CPUs.
    pub fn threads(&self) -> f64 {
        self.cores * self.threads_per_core
    }

    /// Returns the work of this number of busy threads, in units of a thread that has a core of its
    /// own.
    pub fn work(&self, busy: f64) -> f64 {
        let busy = busy.clamp(0.0, self.threads());
        if busy <= self.cores || !self.has_smt() {
            return busy;
        }
        let gain = (self.speedup - 1.0) / (self.threads_per_core - 1.0);
        self.cores + (busy - self.cores) * gain
    }

    /// Returns the used share of the capacity at a displayed use, at one instant.
    pub fn share(&self, displayed: f64) -> f64 {
        self.work(displayed * self.threads()) / self.work(self.threads())
    }

    /// Returns the threads that this machine's load can use: without those that the quota or the
    /// hypervisor denies.
    pub fn usable(&self, stolen: f64) -> f64 {
        let left = self.threads() - stolen.max(0.0);
        self.quota.map_or(left, |quota| left.min(quota)).max(0.05)
    }

    /// Returns the displayed limit as a number of busy threads. `limit` is the user's limit, as a
    /// share of the usable threads.
    pub fn busy_limit(&self, limit: Option<f64>, usable: f64) -> f64 {
        match limit {
            Some(limit) => limit * usable,
            None if self.has_smt() => {
                (LIMIT_DISPLAYED * self.threads()).min(limit_without_smt() * usable)
            }
            None => limit_without_smt() * usable,
        }
    }
}

/// Returns the displayed limit of a machine with one thread per core: the share of the capacity
/// that 55 % are with two threads per core and the typical speed-up, 79 %.
pub fn limit_without_smt() -> f64 {
    Machine::new("", 1.0, 2.0).share(LIMIT_DISPLAYED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn displayed_half_is_more_than_half_with_smt() {
        let machine = Machine::new("a", 16.0, 2.0);
        assert!(is_about(machine.share(0.5), 1.0 / 1.3), "{}", machine.share(0.5));
        assert!(is_about(machine.share(0.25), 0.5 / 1.3));
        assert!(is_about(machine.share(0.55), 1.03 / 1.3));
        assert!(is_about(machine.share(1.0), 1.0) && is_about(machine.share(7.0), 1.0));
        let four = Machine { speedup: 1.6, ..Machine::new("b", 8.0, 4.0) };
        assert!(is_about(four.share(0.25), 1.0 / 1.6) && is_about(four.work(32.0), 12.8));
        let plain = Machine::new("c", 4.0, 1.0);
        assert!(is_about(plain.share(0.5), 0.5) && is_about(plain.busy_limit(Some(0.6), 4.0), 2.4));
        assert!(is_about(plain.busy_limit(None, 4.0), 4.0 * 1.03 / 1.3));
    }

    #[test]
    fn quota_and_steal_reduce_usable_threads() {
        let mut machine = Machine::new("a", 4.0, 2.0);
        assert!(is_about(machine.usable(1.5), 6.5));
        machine.quota = Some(2.0);
        assert!(is_about(machine.usable(1.5), 2.0));
        assert!(is_about(machine.busy_limit(None, 2.0), 2.0 * limit_without_smt()));
        assert!(machine.usable(100.0) > 0.0);
    }
}
