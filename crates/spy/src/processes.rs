//! Finds the PHP processes of this machine.

use crate::maps;

/// Maximum number of processes that are examined.
const PROCESSES_MAX: usize = 65_536;

/// Processes that have mapped a file with `php` in its name: the program, or a library of a web
/// server. `Reader::open` determines whether such a process can be read.
pub fn that_may_be_php() -> Vec<u32> {
    let own = std::process::id();
    let all = numbered().into_iter().filter(|pid| *pid != own);
    all.filter(|pid| has_php(*pid)).collect()
}

fn numbered() -> Vec<u32> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut found: Vec<u32> = folder.flatten().filter_map(number).take(PROCESSES_MAX).collect();
    found.sort_unstable();
    found
}

fn has_php(pid: u32) -> bool {
    // Kernel threads have no memory. Maps that may not be read may be those of a PHP process.
    let is_called_php = |name: &std::path::Path| {
        name.file_name().is_some_and(|name| name.to_string_lossy().contains("php"))
    };
    if let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) {
        let is_program =
            |name: &str| program.file_name().is_some_and(|n| n.to_string_lossy().starts_with(name));
        if is_called_php(&program) {
            return true;
        }
        if is_program("apache")
            || is_program("httpd")
            || is_program("unit")
            || is_program("samovar")
        {
            return maps::of(pid).is_ok_and(|maps| maps.iter().any(|m| is_called_php(&m.path)));
        }
    }
    // The name that is visible to all users, for processes of other users.
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.contains("php")
}

/// Resident memory of a process, bytes; `None` if it has ended.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Command line of a process, with spaces between its words.
pub(crate) fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
}

/// Title of a process: its command line, truncated, and safe for a terminal.
pub fn title(pid: u32) -> String {
    const BYTES_MAX: usize = 200;
    let line = command_line(pid);
    let text = &line[..line.floor_char_boundary(BYTES_MAX)];
    samovar_log::printable(text).into_owned()
}
