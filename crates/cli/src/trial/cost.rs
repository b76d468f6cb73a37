//! CPU time of a server: of all its processes, to the nanosecond if the kernel provides it.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// A server is idle when its CPU time does not increase for this duration.
const REST: Duration = Duration::from_millis(1);
const READINGS_MAX: u32 = 300;
/// CPU time that threads use for occasional wakeups.
const IDLE_NS_MAX: u64 = 20_000;
const PROCESSES_MAX: usize = 4096;
/// Linux's `USER_HZ` tick, the same on all machines that Samovar runs on.
const TICK_NS: u64 = 10_000_000;

/// Returns the CPU time of the processes once the rollback after the last response has ended.
pub(crate) fn at_rest_ns(root: u32) -> u64 {
    let mut last = used_ns(root);
    for _ in 0..READINGS_MAX {
        sleep(REST);
        let now = used_ns(root);
        if now.abs_diff(last) <= IDLE_NS_MAX {
            return now;
        }
        last = now;
    }
    last
}

/// Returns the CPU time of the process and all its descendants. Ended children are counted with
/// their parents, in ticks.
fn used_ns(root: u32) -> u64 {
    let (mut waiting, mut seen, mut total) = (vec![root], 0, 0);
    while let Some(pid) = waiting.pop() {
        let folder = format!("/proc/{pid}");
        total += ended_ns(&folder);
        for task in std::fs::read_dir(format!("{folder}/task")).into_iter().flatten().flatten() {
            total += running_ns(&task.path());
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        seen += 1;
        if seen == PROCESSES_MAX {
            break;
        }
    }
    total
}

/// Parses `/proc/PID/task/TID/schedstat`: ns on a CPU, ns waiting for one, number of time slices.
fn running_ns(task: &Path) -> u64 {
    let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Parses `cutime` and `cstime` of `/proc/PID/stat`, the 16th and 17th field.
fn ended_ns(folder: &str) -> u64 {
    let text = std::fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    // The name is in parentheses, and may contain blanks and parentheses.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(13).take(2).filter_map(|n| n.parse::<u64>().ok());
    ticks.sum::<u64>() * TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_process_is_counted() {
        let pid = std::process::id();
        let before = used_ns(pid);
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        assert!(used_ns(pid) > before, "{before}");
        assert_eq!(used_ns(u32::MAX), 0, "a process that is not there");
    }
}
