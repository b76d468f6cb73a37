//! Memory of processes.

/// Memory of a process that no other process shares; 0: unknown.
pub(crate) fn private_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    let kib = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.sum::<u64>() * 1024
}
