//! finish: measures the cost of a request for its worker: CPU time, page faults, context switches,
//! and the rollback before it.
//!
//! The kernel's figures are sums over the thread's life. A request is charged the difference since
//! they were last read. Reading them costs as much as a short request. Short requests are charged
//! the time they took, and the next longer one settles the difference. A rollback happens after its
//! request is finished. It is charged to the next request, for which it has prepared the worker.

use samovar_ring::{UsageDetails, monotonic_ns};

/// Shortest run for which the CPU clock is read: fifty times the cost of reading it.
const CPU_WORTH_NS: u64 = 20_000;
/// Shortest run for which faults and switches are read: two hundred times the cost of reading them.
const COUNTS_WORTH_NS: u64 = 50_000;

unsafe extern "C" {
    fn samovar_shared_memory(len: usize) -> *mut std::ffi::c_void;
}

/// Sums of a worker, in memory that no rollback restores.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Value of the CPU clock when it was last read.
    cpu_read_ns: u64,
    /// CPU time charged since then without reading the clock.
    guessed_ns: u64,
    /// CPU time charged to requests so far.
    charged_ns: u64,
    /// Values of the other figures when they were last read.
    counts: Counts,
    /// Number of times this worker has slept since then because there was no request.
    idle_sleeps: u64,
    /// Duration of the last rollback, if it was not charged to a request yet.
    rollback_ns: u64,
    rollback_pages: u32,
    /// The application serves: the cost of the worker is the cost of its requests.
    is_serving: bool,
    birth: Birth,
}

/// Times at which this process became a worker and was ready for its first request.
#[derive(Clone, Copy, Debug, Default)]
struct Birth {
    born_ns: u64,
    /// 0: still booting.
    ready_ns: u64,
    is_told: bool,
}

/// A worker's boot, as reported with its first request: how long before the take it began, and how
/// long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Boot {
    pub(crate) ago_ns: u64,
    pub(crate) ns: u64,
}

/// Cost charged to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) cpu_ns: u64,
    pub(crate) details: UsageDetails,
}

/// Sums since the start of the thread.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    faults_minor: u64,
    faults_major: u64,
    switches_voluntary: u64,
    switches_involuntary: u64,
}

impl Meter {
    /// Creates a meter in memory that no rollback restores.
    pub(crate) fn persistent() -> &'static mut Meter {
        // SAFETY: no pointers; allocates zeroed memory.
        let at = unsafe { samovar_shared_memory(size_of::<Meter>()) }.cast::<Meter>();
        // SAFETY: null, or page-aligned, large enough and mapped for the life of the process; zero
        // bytes are a valid meter.
        let meter = unsafe { at.as_mut() }.unwrap_or_else(|| Box::leak(Box::default()));
        meter.birth.born_ns = monotonic_ns();
        meter.begin();
        meter
    }

    /// Starts a new measurement. The cost so far belongs to no request.
    pub(crate) fn begin(&mut self) {
        let (charged_ns, birth) = (self.charged_ns, self.birth);
        let (cpu_read_ns, counts) = (cpu_ns(), counts());
        *self = Meter { cpu_read_ns, charged_ns, counts, birth, ..Meter::default() };
    }

    /// Records that the application boots.
    pub(crate) fn boots(&mut self) {
        self.is_serving = false;
    }

    /// Records that the application serves, or serves again after a rollback. The cost of its boot
    /// belongs to no request.
    pub(crate) fn serves(&mut self) {
        if !self.is_serving {
            self.begin();
            self.is_serving = true;
        }
    }

    /// Records that the worker can take a request. The first call is the end of its boot.
    pub(crate) fn looks_for_work(&mut self) {
        if self.birth.ready_ns == 0 {
            self.birth.ready_ns = monotonic_ns();
        }
    }

    /// Returns the worker's boot for its first request, and zero for later ones.
    pub(crate) fn first_boot(&mut self, taken_ns: u64) -> Boot {
        let Birth { born_ns, ready_ns, is_told } = self.birth;
        if is_told {
            return Boot::default();
        }
        self.birth.is_told = true;
        Boot { ago_ns: taken_ns.saturating_sub(born_ns), ns: ready_ns.saturating_sub(born_ns) }
    }

    /// Adds sleeps of the worker while there was no request.
    pub(crate) fn idled(&mut self, times: u32) {
        self.idle_sleeps += u64::from(times);
    }

    /// Records the rollback that prepared the worker for its next request.
    pub(crate) fn rolled_back(&mut self, ns: u64, pages: usize) {
        self.rollback_ns = ns;
        self.rollback_pages = u32::try_from(pages).unwrap_or(u32::MAX);
    }

    /// Returns the CPU time used by this worker's requests so far. Makes no system call.
    pub(crate) fn charged_ns(&self) -> u64 {
        self.charged_ns
    }

    /// Returns the CPU time that the current request would be charged now.
    pub(crate) fn so_far_ns(&self) -> u64 {
        cpu_ns().saturating_sub(self.cpu_read_ns).saturating_sub(self.guessed_ns)
    }

    /// Returns the cost of a request that took `run_ns`.
    pub(crate) fn charge(&mut self, run_ns: u64) -> Charge {
        let mut details = UsageDetails {
            rollback_ns: std::mem::take(&mut self.rollback_ns),
            rollback_pages: std::mem::take(&mut self.rollback_pages),
            ..UsageDetails::default()
        };
        if run_ns >= COUNTS_WORTH_NS {
            self.count(&mut details);
        }
        let cpu_ns = self.charge_cpu(run_ns, run_ns + details.rollback_ns);
        self.charged_ns += cpu_ns;
        // The rollback was measured with another clock.
        details.rollback_ns = details.rollback_ns.min(cpu_ns);
        Charge { cpu_ns, details }
    }

    /// Charges CPU time. `busy_ns` is the maximum that the request can have used.
    fn charge_cpu(&mut self, run_ns: u64, busy_ns: u64) -> u64 {
        if run_ns < CPU_WORTH_NS {
            self.guessed_ns += busy_ns;
            return busy_ns;
        }
        let now = cpu_ns();
        let cost = now.saturating_sub(self.cpu_read_ns).saturating_sub(self.guessed_ns);
        (self.cpu_read_ns, self.guessed_ns) = (now, 0);
        // Earlier estimates that were too low are not charged to this request: it used no more CPU
        // time than wall time.
        cost.min(busy_ns)
    }

    fn count(&mut self, details: &mut UsageDetails) {
        let (now, before) = (counts(), self.counts);
        let idle = std::mem::take(&mut self.idle_sleeps);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        details.faults_minor = short(since(now.faults_minor, before.faults_minor));
        details.faults_major = short(since(now.faults_major, before.faults_major));
        let voluntary = since(now.switches_voluntary, before.switches_voluntary);
        details.switches_voluntary = short(voluntary.saturating_sub(idle));
        details.switches_involuntary =
            short(since(now.switches_involuntary, before.switches_involuntary));
        self.counts = now;
    }
}

fn cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn counts() -> Counts {
    // SAFETY: plain numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: fills a local; the call cannot fail for the calling thread.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Counts {
        faults_minor: usage.ru_minflt.cast_unsigned(),
        faults_major: usage.ru_majflt.cast_unsigned(),
        switches_voluntary: usage.ru_nvcsw.cast_unsigned(),
        switches_involuntary: usage.ru_nivcsw.cast_unsigned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_is_reported_with_first_request_only() {
        let mut meter = Meter::default();
        meter.birth.born_ns = monotonic_ns() - 5_000_000;
        meter.looks_for_work();
        let ready_ns = meter.birth.ready_ns;
        meter.looks_for_work();
        // The cost of the boot belongs to no request, and does not change the worker's age.
        meter.serves();
        let boot = meter.first_boot(ready_ns + 3_000);
        assert!(boot.ns >= 5_000_000);
        assert_eq!(boot.ago_ns, boot.ns + 3_000);
        assert_eq!(meter.first_boot(ready_ns + 4_000), Boot::default());
    }

    #[test]
    fn short_requests_are_charged_wall_time_and_long_ones_cpu_time() {
        // Taken before the meter begins: the time it measures cannot exceed the elapsed time.
        let begin = std::time::Instant::now();
        let mut meter = Meter::default();
        meter.begin();
        let charge = |meter: &mut Meter, ns| meter.charge(ns).cpu_ns;
        assert_eq!(charge(&mut meter, 5_000), 5_000);
        assert_eq!(charge(&mut meter, 6_000), 6_000);
        while cpu_ns() - meter.cpu_read_ns < 3_000_000 {}
        let run_ns = begin.elapsed().as_nanos() as u64;
        let cost = charge(&mut meter, run_ns);
        assert!(cost <= run_ns && cost >= 2_900_000 - 11_000, "{cost} of {run_ns}");
        assert_eq!(meter.charged_ns(), 11_000 + cost);
        // A request that slept used little CPU.
        assert!(charge(&mut meter, 1_000_000_000) < 500_000_000);
    }

    #[test]
    fn rollback_is_charged_once_to_next_request() {
        let mut meter = Meter::default();
        meter.begin();
        meter.serves();
        meter.rolled_back(9_000, 40);
        meter.serves();
        let first = meter.charge(1_000);
        assert_eq!((first.cpu_ns, first.details.rollback_ns), (10_000, 9_000));
        assert_eq!(first.details.rollback_pages, 40);
        assert_eq!(meter.charge(1_000).details, UsageDetails::default());
    }

    #[test]
    fn faults_and_switches_are_counted_since_last_read() {
        let mut meter = Meter::default();
        meter.begin();
        let pages = vec![1u8; 4 << 20];
        assert_eq!(meter.charge(1_000).details, UsageDetails::default(), "not worth a look");
        let details = meter.charge(COUNTS_WORTH_NS).details;
        assert!(details.faults_minor > 500, "{} pages: {details:?}", pages.len() / 4096);
        let again = meter.charge(COUNTS_WORTH_NS).details;
        assert!(again.faults_minor < 100, "{again:?}");
        meter.idled(1_000);
        assert_eq!(meter.charge(COUNTS_WORTH_NS).details.switches_voluntary, 0);
    }
}
