//! CPU time of the CPUs that this process may use, by user.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

/// Linux's `USER_HZ` tick, the same on all machines that Samovar runs on.
const TICK_NS: u64 = 10_000_000;
/// Maximum number of processes of this server that are added up.
const PROCESSES_MAX: usize = 4096;
/// Folder of control groups, version 2.
const CGROUPS: &str = "/sys/fs/cgroup";

/// CPU times since the boot of the machine, and limits. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoreTimes {
    /// CPUs of the affinity.
    pub(super) cpus: f64,
    /// The CPUs, limited by the quotas of the control group and those above it.
    pub(super) cores: f64,
    /// Busy time of the CPUs, for all processes.
    pub(super) busy_ns: u64,
    /// Time that the hypervisor took.
    pub(super) stolen_ns: u64,
    /// Time of this server's processes.
    pub(super) own_ns: u64,
    /// Periods of the quota in which the control group ran.
    pub(super) periods: u64,
    /// Those in which it was throttled.
    pub(super) throttled: u64,
    /// Whether a core of the CPUs has several CPUs.
    pub(super) shares_cores: bool,
}

impl CoreTimes {
    /// Reads the current values.
    pub(super) fn read() -> CoreTimes {
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let cpus = cpu_list(allowed.unwrap_or_default());
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let (busy_ns, stolen_ns) = used_of(&stat, &cpus);
        let group = group_folder();
        let groups = || group.iter().flat_map(|folder| folder.ancestors());
        let groups = || groups().take_while(|folder| folder.starts_with(CGROUPS));
        let quota = groups().filter_map(quota).fold(f64::INFINITY, f64::min);
        let stat_of = |folder: &Path| read_to_string(folder.join("cpu.stat")).unwrap_or_default();
        let throttling = groups().map(|folder| throttling(&stat_of(folder)));
        let (periods, throttled) =
            throttling.max_by_key(|(_, throttled)| *throttled).unwrap_or_default();
        #[allow(clippy::cast_precision_loss)] // Few thousand CPUs at most.
        let count = (cpus.len() as f64).max(1.0);
        CoreTimes {
            cpus: count,
            cores: count.min(quota),
            busy_ns,
            stolen_ns,
            own_ns: own_ns(std::process::id()),
            periods,
            throttled,
            shares_cores: cpus.iter().any(|cpu| has_siblings(*cpu)),
        }
    }
}

/// Parses a list such as `0-3,8`.
fn cpu_list(text: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Returns busy and stolen time of these CPUs, from `/proc/stat`.
fn used_of(stat: &str, cpus: &BTreeSet<u32>) -> (u64, u64) {
    let (mut busy, mut stolen) = (0, 0);
    for line in stat.lines() {
        let Some((name, times)) = line.split_once(' ') else { continue };
        let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
        if !number.is_some_and(|number| cpus.contains(&number)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal; the time of guests is part of user.
        let times = times.split_whitespace().map(|time| time.parse::<u64>().unwrap_or(0));
        let times: Vec<_> = times.take(8).collect();
        let at = |place: usize| times.get(place).copied().unwrap_or(0);
        busy += at(0) + at(1) + at(2) + at(5) + at(6);
        stolen += at(7);
    }
    (busy * TICK_NS, stolen * TICK_NS)
}

/// Returns the CPU time of a process and all its descendants. The time of ended children is part of
/// their parent's.
fn own_ns(root: u32) -> u64 {
    let (mut waiting, mut seen, mut ticks) = (vec![root], 0, 0);
    while let Some(pid) = waiting.pop() {
        ticks += ticks_of(&read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
        for task in read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = read_to_string(task.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        seen += 1;
        if seen == PROCESSES_MAX {
            break;
        }
    }
    ticks * TICK_NS
}

/// Adds `utime`, `stime`, `cutime` and `cstime` of `/proc/PID/stat`, the fields 14 to 17.
fn ticks_of(stat: &str) -> u64 {
    // The name is in parentheses, and may contain blanks and parentheses.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().skip(11).take(4).filter_map(|time| time.parse::<u64>().ok()).sum()
}

/// Returns the folder of this process's control group, version 2.
fn group_folder() -> Option<PathBuf> {
    let text = read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(CGROUPS).join(path))
}

/// Returns the quota of a control group in cores.
fn quota(folder: &Path) -> Option<f64> {
    quota_of(&read_to_string(folder.join("cpu.max")).ok()?)
}

/// Parses `cpu.max`: quota and period in µs, or `max` and the period.
fn quota_of(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Parses the number of periods of `cpu.stat`, and of those with throttling.
fn throttling(text: &str) -> (u64, u64) {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse::<u64>().ok()
    };
    (number("nr_periods ").unwrap_or(0), number("nr_throttled ").unwrap_or(0))
}

/// Returns whether the core of a CPU has others.
fn has_siblings(cpu: u32) -> bool {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    read_to_string(file).is_ok_and(|list| cpu_list(&list).len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn only_allowed_cpus_are_counted() {
        let cpus = cpu_list("\t1-2,9\n");
        assert_eq!(cpus.iter().copied().collect::<Vec<_>>(), [1, 2, 9]);
        let stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 7 7 7 7 7 7 7 7 0 0\n\
                    cpu1 1 2 3 100 50 4 5 6 1 0\ncpu2 10 0 0 0 0 0 0 1 0 0\nintr 1 2\n";
        assert_eq!(used_of(stat, &cpus), (25 * TICK_NS, 7 * TICK_NS));
    }

    #[test]
    fn limits_of_control_group_are_parsed() {
        assert_eq!(quota_of("150000 100000\n"), Some(1.5));
        assert_eq!(quota_of("max 100000\n"), None);
        let text = "usage_usec 5\nnr_periods 40\nnr_throttled 7\nthrottled_usec 9\n";
        assert_eq!(throttling(text), (40, 7));
        assert_eq!(throttling("usage_usec 5\n"), (0, 0));
    }

    #[test]
    fn times_of_process_with_blanks_in_its_name_are_added() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4 10 0 0 0 5 6 7 8 20 0 1 0 9";
        assert_eq!(ticks_of(stat), 26);
    }

    #[test]
    fn own_time_is_part_of_busy_time() {
        let before = CoreTimes::read();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let now = CoreTimes::read();
        assert!(now.own_ns > before.own_ns, "{before:?} {now:?}");
        assert!(now.busy_ns > before.busy_ns, "{before:?} {now:?}");
        assert!(now.cores > 0.0 && now.cores <= now.cpus, "{now:?}");
    }
}
