//! Measures the private memory of workers, and the memory that is left.

use super::machine::Memory;
use crate::recycle::own_bytes;
use std::collections::HashMap;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Private memory of each worker at its last measurement. One worker is measured at a time, which
/// costs some 100 µs.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    bytes: HashMap<i32, u64>,
    step: usize,
}

impl Pool {
    /// Measures one of `pids`. Returns the total for all of them; workers that were not measured
    /// yet count like the others.
    pub(crate) fn look(&mut self, pids: &[i32], own: impl Fn(i32) -> Option<u64>) -> u64 {
        self.step = self.step.wrapping_add(1);
        let unknown = pids.iter().rev().find(|pid| !self.bytes.contains_key(pid));
        let next = unknown.or_else(|| pids.get(self.step % pids.len().max(1)));
        if let Some((pid, bytes)) = next.and_then(|pid| Some((*pid, own(*pid)?))) {
            self.bytes.insert(pid, bytes);
        }
        if self.bytes.len() > 2 * pids.len() {
            self.bytes.retain(|pid, _| pids.contains(pid));
        }
        let known: Vec<u64> = pids.iter().filter_map(|pid| self.bytes.get(pid).copied()).collect();
        let sum: u64 = known.iter().sum();
        sum / (known.len() as u64).max(1) * pids.len() as u64
    }
}

/// Returns the private memory of a process.
pub(crate) fn own(pid: i32) -> Option<u64> {
    own_bytes(pid)
}

/// Returns the memory of the machine, or of this process's control group if that has less free.
pub(crate) fn free() -> Option<Memory> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
    let group = group_folder().and_then(|folder| group(&folder));
    machine.into_iter().chain(group).min_by_key(|memory| memory.free)
}

fn machine(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes << 10)
    };
    Some(Memory { total: field("MemTotal:")?, free: field("MemAvailable:")? })
}

/// Returns the folder of the control group (version 2) as seen by this process.
fn group_folder() -> Option<PathBuf> {
    let text = read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(path))
}

/// Returns the memory of a control group. Cached files that were not used recently count as free.
fn group(folder: &Path) -> Option<Memory> {
    let number = |name: &str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (total, used) = (number("memory.max")?, number("memory.current")?);
    let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let cached: u64 = cached.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Some(Memory { total, free: total.saturating_sub(used.saturating_sub(cached)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_workers_count_like_the_others() {
        let mut pool = Pool::default();
        let own = |pid: i32| Some(u64::from(pid.unsigned_abs()) * 100);
        assert_eq!(pool.look(&[1, 3], own), 600, "the last comes first");
        assert_eq!(pool.look(&[1, 3], own), 400);
        assert_eq!(pool.look(&[], own), 0);
        assert_eq!(pool.look(&[9], |_| None), 0, "unknown memory");
    }

    #[test]
    fn memory_of_machine_is_read_from_meminfo() {
        let text = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    300 kB\n";
        assert_eq!(machine(text), Some(Memory { total: 1000 << 10, free: 300 << 10 }));
        assert_eq!(machine("MemTotal: 1000 kB"), None);
        assert!(free().is_none_or(|memory| memory.free <= memory.total));
    }

    #[test]
    fn memory_of_control_group_is_read() {
        let folder = std::env::temp_dir().join(format!("scale-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 1\ninactive_file 200\n");
        assert_eq!(group(&folder), Some(Memory { total: 1000, free: 500 }));
        write("memory.max", "max\n");
        assert_eq!(group(&folder), None, "no limit");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
