//! Measures the CPU time that workers want. This is the time in which they ran, and in which they
//! would have run if a core had been free.
//!
//! The kernel counts both for each process (`/proc/PID/schedstat`). The remaining time is waiting:
//! for a database, a timer, or a request. Other programs on the machine that make workers wait for
//! a core are therefore not mistaken for a slow database.

use super::machine::{Machine, Ticks};
use std::collections::HashMap;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// Minimum length of a window; shorter ones are too inaccurate.
const WINDOW: Duration = Duration::from_millis(50);
/// Maximum length of a window. A longer one is discarded: there were no checks meanwhile.
const WINDOW_MAX: Duration = Duration::from_secs(1);
/// Maximum number of workers whose times are read. The others are assumed to be like these.
const SAMPLES_MAX: usize = 64;

/// A counted time below this fraction of a window (1/10) is treated as nearly nothing.
const COUNTED_DIVISOR: u64 = 10;

/// State of a process at the beginning of the window.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ns: u64,
    is_runnable: bool,
}

impl Sample {
    fn of(pid: i32, machine: &impl Machine) -> Option<Sample> {
        Some(Sample { ns: machine.times(pid)?, is_runnable: machine.is_runnable(pid) })
    }

    /// Returns the time for which the process ran or was runnable until `end`, `span_ns` later. The
    /// kernel counts a wait for a core only when it is over. A process that is runnable at both
    /// ends therefore counts as runnable all the time. So does a process that is runnable at the
    /// end after nearly nothing was counted.
    fn wanted_ns(self, end: Sample, span_ns: u64) -> u64 {
        let counted = end.ns.saturating_sub(self.ns);
        let is_uncounted = self.is_runnable || counted < span_ns / COUNTED_DIVISOR;
        if end.is_runnable && is_uncounted { span_ns.max(counted) } else { counted }
    }
}

/// Result of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuUse {
    /// Cores that the workers wanted, in thousandths.
    pub(crate) wanted: u64,
    /// Idle share of the machine's cores, in thousandths.
    pub(crate) idle: u64,
}

/// Measures windows; holds the times at the beginning of the current one.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    from: Option<Instant>,
    ticks: Option<Ticks>,
    before: HashMap<i32, Sample>,
    step: usize,
}

impl CpuMeter {
    /// Returns the CPU time that `pids` wanted, if a window ends now.
    pub(crate) fn look(
        &mut self,
        pids: &[i32],
        now: Instant,
        machine: &impl Machine,
    ) -> Option<CpuUse> {
        let span = self.from.map(|from| now - from).filter(|span| *span <= WINDOW_MAX);
        if span.is_some_and(|span| span < WINDOW) {
            return None;
        }
        let wanted = span.and_then(|span| self.wanted(pids.len(), span, machine));
        let found = wanted.map(|wanted| CpuUse { wanted, idle: self.idle(machine) });
        self.begin(pids, now, machine);
        found
    }

    fn wanted(&self, workers: usize, span: Duration, machine: &impl Machine) -> Option<u64> {
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1);
        let spent = self.before.iter().filter_map(|(pid, before)| {
            Some(before.wanted_ns(Sample::of(*pid, machine)?, span_ns))
        });
        let (samples, ns) = spent.fold((0u64, 0u64), |(n, sum), ns| (n + 1, sum + ns));
        if samples == 0 {
            return None;
        }
        Some(ns.saturating_mul(1000) / span_ns * (workers as u64).max(samples) / samples)
    }

    /// Returns the idle share; 0 if it is unknown.
    fn idle(&self, machine: &impl Machine) -> u64 {
        let (Some(before), Some(now)) = (self.ticks, machine.ticks()) else { return 0 };
        let idle = now.idle.saturating_sub(before.idle);
        (idle.saturating_mul(1000) / now.all.saturating_sub(before.all).max(1)).min(1000)
    }

    /// Begins a window. The samples change each time, so that all processes are covered.
    fn begin(&mut self, pids: &[i32], now: Instant, machine: &impl Machine) {
        self.step = self.step.wrapping_add(SAMPLES_MAX) % pids.len().max(1);
        let first = if pids.len() > SAMPLES_MAX { self.step } else { 0 };
        let sampled = pids.iter().cycle().skip(first).take(pids.len().min(SAMPLES_MAX));
        self.before.clear();
        self.before.extend(sampled.filter_map(|pid| Some((*pid, Sample::of(*pid, machine)?))));
        self.from = Some(now);
        self.ticks = machine.ticks();
    }
}

/// Returns the time for which a process ran or was runnable, in ns.
pub(crate) fn times(pid: i32) -> Option<u64> {
    parse(&read_to_string(format!("/proc/{pid}/schedstat")).ok()?)
}

/// Returns the CPU time of all cores since the machine was booted.
pub(crate) fn ticks() -> Option<Ticks> {
    parse_ticks(&read_to_string("/proc/stat").ok()?)
}

/// Reads `cpu  user nice system idle iowait irq softirq steal …`. The two fields that follow are
/// already included in the first ones.
fn parse_ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> =
        line.split_ascii_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let (idle, iowait) = (*numbers.get(3)?, *numbers.get(4)?);
    Some(Ticks { idle: idle + iowait, all: numbers.iter().sum() })
}

/// Whether a process is running or runnable now.
pub(crate) fn is_runnable(pid: i32) -> bool {
    read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|text| state(&text) == Some('R'))
}

/// Returns the field after the name, which may contain any character.
fn state(text: &str) -> Option<char> {
    text.rsplit_once(") ")?.1.chars().next()
}

/// Reads `ran waited slices`.
fn parse(text: &str) -> Option<u64> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(ran.saturating_add(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates the times of processes, and the list of runnable ones.
    struct Counted<F>(F, &'static [i32]);

    impl<F: Fn(i32) -> Option<u64>> Machine for Counted<F> {
        fn times(&self, pid: i32) -> Option<u64> {
            self.0(pid)
        }
        fn ticks(&self) -> Option<Ticks> {
            None
        }
        fn is_runnable(&self, pid: i32) -> bool {
            self.1.contains(&pid)
        }
        fn own_bytes(&self, _: i32) -> Option<u64> {
            None
        }
        fn memory(&self) -> Option<crate::scale::Memory> {
            None
        }
    }

    /// The result on a machine without idle cores, or with an unknown idle time.
    #[allow(clippy::unnecessary_wraps)] // Same type as in the comparison.
    fn used(wanted: u64) -> Option<CpuUse> {
        Some(CpuUse { wanted, idle: 0 })
    }

    #[test]
    fn idle_ticks_are_read_from_proc_stat() {
        let text = "cpu  10 0 10 60 20 0 0 0 5 5\ncpu0 1 2 3\n";
        assert_eq!(parse_ticks(text), Some(Ticks { idle: 80, all: 100 }));
        assert_eq!(parse_ticks("cpu  1 2"), None);
        assert!(ticks().is_none_or(|ticks| ticks.idle <= ticks.all));
    }

    #[test]
    fn window_measures_wanted_cores() {
        let mut meter = CpuMeter::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let nothing = Counted(|_| Some(0), &[]);
        assert_eq!(meter.look(&[1, 2], at(0), &nothing), None, "it begins");
        assert_eq!(meter.look(&[1, 2], at(20), &nothing), None, "it is too short");
        let half = Counted(|pid| Some(if pid == 1 { 100_000_000 } else { 0 }), &[]);
        assert_eq!(meter.look(&[1, 2], at(100), &half), used(1000), "one of the two was busy");
        // A third process has started and the first has ended: the result is that of the processes
        // present in the window.
        let gone = Counted(|pid| (pid != 1).then_some(25_000_000), &[]);
        assert_eq!(meter.look(&[2, 3], at(150), &gone), used(1000));
        let waits = Counted(|_| Some(26_000_000), &[2, 3]);
        assert_eq!(meter.look(&[2, 3], at(250), &waits), used(2000), "both wait for a core");
        assert_eq!(meter.look(&[2, 3], at(5_000), &gone), None, "no sample for a long time");
    }

    #[test]
    fn sample_of_workers_is_extrapolated() {
        let mut meter = CpuMeter::default();
        let begin = Instant::now();
        let pids: Vec<i32> = (1..=1000).collect();
        assert_eq!(meter.look(&pids, begin, &Counted(|_| Some(0), &[])), None);
        let each = Counted(|_| Some(1_000_000), &[]);
        let found = meter.look(&pids, begin + Duration::from_millis(100), &each);
        assert_eq!(found, used(10_000), "each of 1,000 wants a hundredth of a core");
    }

    #[test]
    fn times_of_process_are_read() {
        assert_eq!(parse("12 30 4\n"), Some(42));
        assert_eq!(parse("12"), None);
        assert_eq!(parse("a b c"), None);
        let own = times(std::process::id().cast_signed());
        assert!(own.is_none_or(|ns| ns > 0));
        assert_eq!(times(i32::MAX), None);
        assert!(!is_runnable(i32::MAX));
        assert_eq!(state("7 (a) S b) R 1"), Some('R'));
    }
}
