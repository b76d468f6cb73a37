//! Limits of the kernel, and memory of the machine, as this process sees them.

use rustix::process::{Resource, getrlimit};
use samovar_wire::MachineFacts;
use std::fs::read_to_string;
use std::path::Path;

/// Maximum depth of nested control groups that are searched for a limit.
const GROUPS_MAX: usize = 32;

/// Reads the facts; `workers` are the processes whose swapped memory counts.
pub(crate) fn facts(workers: impl Iterator<Item = i32>) -> MachineFacts {
    let number = |path: &str| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let swapped: Vec<u64> = workers
        .filter_map(|pid| {
            kilobytes(&read_to_string(format!("/proc/{pid}/status")).ok()?, "VmSwap:")
        })
        .collect();
    MachineFacts {
        somaxconn: number("/proc/sys/net/core/somaxconn"),
        overcommit: number("/proc/sys/vm/overcommit_memory"),
        memory_bytes: memory_bytes(),
        swapped_bytes: (!swapped.is_empty()).then(|| swapped.iter().sum()),
        files_max: getrlimit(Resource::Nofile).current,
        mappings_max: number("/proc/sys/vm/max_map_count"),
    }
}

fn memory_bytes() -> Option<u64> {
    let all = kilobytes(&read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    Some(group_limit().map_or(all, |limit| limit.min(all)))
}

/// Returns the lowest memory limit of this process's control groups.
fn group_limit() -> Option<u64> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let groups = Path::new("/sys/fs/cgroup").join(path);
    let limit = |group: &Path| read_to_string(group.join("memory.max")).ok()?.trim().parse().ok();
    groups.ancestors().take(GROUPS_MAX).filter_map(limit).min()
}

/// Returns the bytes of a line such as `VmSwap:      12 kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{facts, kilobytes};

    #[test]
    fn sizes_of_the_kernel_are_read() {
        let text = "Name:\tphp\nVmSwap:\t      12 kB\nThreads:\t1\n";
        assert_eq!(kilobytes(text, "VmSwap:"), Some(12 << 10));
        for broken in ["VmSwap:\t12", "VmSwap:\tx kB", "VmSwap:\t99999999999999999 kB", ""] {
            assert_eq!(kilobytes(broken, "VmSwap:"), None, "{broken}");
        }
    }

    #[test]
    fn this_machine_has_memory_and_limits() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let facts = facts(std::iter::once(own));
        assert!(facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{facts:?}");
        assert!(facts.files_max.is_some() && facts.swapped_bytes.is_some(), "{facts:?}");
    }
}
