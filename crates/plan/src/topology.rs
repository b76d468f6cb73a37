//! Cores of this machine, and the stored speed-up of hyper-threading.

use crate::machine::{Machine, SpeedupSource};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::path::PathBuf;

/// CPUs of this process, by core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Numbers of the CPUs of each core.
    pub cores: Vec<Vec<usize>>,
}

/// Result of `samovar plan calibrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Work of a core with all threads busy, divided by that of one thread.
    pub speedup: f64,
    /// Number of CPUs at the measurement.
    pub cpus: usize,
    /// Number of cores.
    pub cores: usize,
    /// Model of the CPU, as the kernel names it.
    pub model: String,
}

impl Topology {
    /// Reads the CPUs that this process may use.
    pub fn read() -> Topology {
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

    /// Returns the number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cores.iter().map(Vec::len).sum()
    }

    /// Returns whether a core has several threads.
    pub fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.len() > 1)
    }

    /// Returns this machine, with the stored speed-up if it was measured here.
    pub fn machine(&self, name: &str) -> Machine {
        let cores = (self.cores.len() as f64).max(1.0);
        let mut machine = Machine::new(name, cores, (self.cpus() as f64 / cores).max(1.0));
        let stored = Calibration::read().filter(|stored| {
            stored.cpus == self.cpus()
                && stored.cores == self.cores.len()
                && stored.model == cpu_model()
        });
        if let Some(stored) = stored.filter(|_| machine.has_smt()) {
            machine.speedup = stored.speedup.clamp(1.0, machine.threads_per_core);
            machine.speedup_source = SpeedupSource::Measured;
        }
        machine
    }
}

/// Folder of the results that root measures, for servers of all users.
const SYSTEM_FOLDER: &str = "/var/lib/samovar";
/// Name of the file.
const FILE: &str = "smt.json";

impl Calibration {
    /// Reads the result that this user has measured, or else the one that root has.
    fn read() -> Option<Calibration> {
        let system = PathBuf::from(SYSTEM_FOLDER).join(FILE);
        let mut files = own_folder().map(|folder| folder.join(FILE)).into_iter().chain([system]);
        let parse = |file: PathBuf| serde_json::from_str(&read_to_string(file).ok()?).ok();
        files.find_map(parse)
    }

    /// Returns the file for a new result of this user; `None`: the user has no home.
    pub fn file(is_root: bool) -> Option<PathBuf> {
        let has_own = std::env::var_os("XDG_STATE_HOME").is_some_and(|value| !value.is_empty());
        if is_root && !has_own {
            return Some(PathBuf::from(SYSTEM_FOLDER).join(FILE));
        }
        own_folder().map(|folder| folder.join(FILE))
    }
}

/// Returns the user's folder for states of Samovar.
fn own_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = folder("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
    state.map(|state| state.join("samovar"))
}

/// Returns the model of the CPU.
pub fn cpu_model() -> String {
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
