//! Cores of this machine, and the stored speed-up of hyper-threading.

use samovar_plan::{Machine, SpeedupSource};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::PathBuf;

/// CPUs of this process, by core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) cores: Vec<Vec<usize>>,
}

/// Result of `samovar plan calibrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Calibration {
    pub(super) speedup: f64,
    pub(super) cpus: usize,
    pub(super) cores: usize,
    /// Model of the CPU, as the kernel names it.
    pub(super) model: String,
}

impl Topology {
    pub(super) fn read() -> Topology {
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Topology::of(&cpu_list(allowed.unwrap_or("0")), |cpu| {
            let folder = "/sys/devices/system/cpu";
            read_to_string(format!("{folder}/cpu{cpu}/topology/thread_siblings_list")).ok()
        })
    }

    fn of(allowed: &BTreeSet<usize>, siblings: impl Fn(usize) -> Option<String>) -> Topology {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut cores = Vec::new();
        for cpu in allowed {
            if seen.contains(cpu) {
                continue;
            }
            let all = siblings(*cpu).map(|list| cpu_list(&list)).unwrap_or_default();
            let mut core: Vec<usize> = all.intersection(allowed).copied().collect();
            if !core.contains(cpu) {
                core = vec![*cpu];
            }
            seen.extend(&core);
            cores.push(core);
        }
        Topology { cores }
    }

    pub(super) fn cpus(&self) -> usize {
        self.cores.iter().map(Vec::len).sum()
    }

    pub(super) fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.len() > 1)
    }

    /// Returns this machine, with the stored speed-up if it was measured here.
    #[allow(clippy::cast_precision_loss)] // Few thousand CPUs at most.
    pub(super) fn machine(&self, name: &str) -> Machine {
        let cores = (self.cores.len() as f64).max(1.0);
        let mut machine = Machine::new(name, cores, (self.cpus() as f64 / cores).max(1.0));
        let stored = Calibration::read().filter(|stored| {
            stored.cpus == self.cpus()
                && stored.cores == self.cores.len()
                && stored.model == model()
        });
        if let Some(stored) = stored.filter(|_| machine.has_smt()) {
            machine.speedup = stored.speedup.clamp(1.0, machine.threads_per_core);
            machine.speedup_source = SpeedupSource::Measured;
        }
        machine
    }
}

impl Calibration {
    fn read() -> Option<Calibration> {
        serde_json::from_str(&read_to_string(Calibration::file()?).ok()?).ok()
    }

    /// Returns the file of the result; `None`: this user has no home.
    pub(super) fn file() -> Option<PathBuf> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let state = folder("XDG_STATE_HOME").map(PathBuf::from);
        let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
        state.map(|state| state.join("samovar/smt.json"))
    }
}

/// Returns the model of the CPU.
pub(super) fn model() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.unwrap_or_default().trim_start_matches([' ', '\t', ':']).to_owned()
}

/// Parses a list such as `0-3,8`.
fn cpu_list(text: &str) -> BTreeSet<usize> {
    /// Maximum number of CPUs.
    const CPUS_MAX: usize = 8192;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let last: usize = last.trim().parse().ok()?;
        Some(first.trim().parse().ok()?..=last.min(CPUS_MAX))
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_form_cores_of_allowed_cpus() {
        let pairs = |cpu: usize| Some(format!("{},{}", cpu % 4, cpu % 4 + 4));
        let all = Topology::of(&cpu_list("0-7"), pairs);
        assert_eq!(all.cores, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert!(all.has_smt() && all.cpus() == 8);
        let part = Topology::of(&cpu_list("0-3,4"), pairs);
        assert_eq!(part.cores, [vec![0, 4], vec![1], vec![2], vec![3]]);
        assert_eq!(Topology::of(&cpu_list("0-1"), |_| None).cores, [[0], [1]]);
    }
}
