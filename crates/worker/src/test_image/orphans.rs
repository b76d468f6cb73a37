//! Programs that tests have started and that have left the process group of their unit, such as
//! daemons. This process adopts them when their parents end.

use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    waitpid,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;

/// Variable with the number of the unit, which its programs inherit.
const VARIABLE: &str = "SAMOVAR_TEST_UNIT=";
/// Maximum number of looks at the programs: each may leave programs of its own.
const LOOKS_MAX: usize = 16;
/// Maximum number of programs of one look.
const PROGRAMS_MAX: usize = 10_000;
/// Maximum length of an environment that is read, bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;

/// The programs.
#[derive(Default)]
pub(super) struct Orphans {
    /// Programs that the boot has started: they stay.
    of_boot: BTreeSet<i32>,
}

impl Orphans {
    /// Begins to adopt programs. Call it at the end of the boot.
    pub(super) fn adopt() -> Orphans {
        // Without it, programs that have left their group outlive the run.
        let _ = set_child_subreaper(Some(getpid()));
        Orphans { of_boot: children().into_iter().map(Pid::as_raw_pid).collect() }
    }

    /// Ends the programs of a unit that is over; without a number those of all units. `units` are
    /// the running ones.
    pub(super) fn end(&self, unit: Option<u32>, units: &[Pid]) {
        for _ in 0..LOOKS_MAX {
            let mut is_clean = true;
            for pid in children() {
                if self.of_boot.contains(&pid.as_raw_pid()) || units.contains(&pid) {
                    continue;
                }
                let is_over =
                    !matches!(retry_on_intr(|| waitpid(Some(pid), WaitOptions::NOHANG)), Ok(None));
                if !is_over && unit.is_none_or(|unit| is_of(pid, unit)) {
                    // The process is a child that was not waited for, so the number is its own.
                    let _ = kill_process_group(pid, Signal::KILL);
                    let _ = kill_process(pid, Signal::KILL);
                    is_clean = false;
                }
            }
            if is_clean {
                return;
            }
        }
    }
}

/// Returns the children of this process; none without `/proc`.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_pid();
    let text = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let text = text.unwrap_or_default();
    let pids = text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
    pids.filter_map(Pid::from_raw).take(PROGRAMS_MAX).collect()
}

/// Whether a program has inherited the number of a unit.
fn is_of(pid: Pid, unit: u32) -> bool {
    let mut environment = Vec::new();
    let file = File::open(format!("/proc/{}/environ", pid.as_raw_pid()));
    let read = file.map(|file| file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment));
    let own = format!("{VARIABLE}{unit}");
    read.is_ok() && environment.split(|byte| *byte == 0).any(|value| value == own.as_bytes())
}
