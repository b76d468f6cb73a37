//! Queues whose jobs start only at certain times, or while HTTP is quiet.

use crate::pools::Pools;
use samovar_config::{Queue, Settings, Window};
use samovar_front::FrontHandle;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which a closed queue is looked at again, in milliseconds.
const LOOK_MS: u64 = 50;
/// The same outside its window.
const WINDOW_LOOK_MS: u64 = 1_000;
/// Minimum time over which the CPU time is measured.
const SAMPLE: Duration = Duration::from_millis(100);
/// CPU time of the machine, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Ticks {
    /// Parses the first line of `/proc/stat`.
    fn parse(stat: &str) -> Option<Ticks> {
        let fields: Option<Vec<u64>> = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map(|n| n.parse().ok())
            .collect();
        // The time of guests is contained in that of user and nice.
        let [user, nice, system, idle, wait, irq, soft, stolen, ..] = fields?[..] else {
            return None;
        };
        let busy = user + system + irq + soft + stolen;
        Some(Ticks { busy, all: busy + nice + idle + wait })
    }
}

struct Sample {
    at: Instant,
    ticks: Ticks,
    percent: u64,
}

struct Rule {
    /// The maximum CPU time in percent, for idle jobs.
    cpu_max: Option<u64>,
    window: Option<Window>,
}

/// Decides which queues may start jobs.
pub(crate) struct Gate {
    queues: Vec<Rule>,
    /// The fronts of HTTP, each with the number of requests in flight that counts as busy.
    fronts: Vec<(FrontHandle, u64)>,
    sample: Mutex<Sample>,
}

impl Gate {
    pub(crate) fn new<'a>(
        settings: &Settings,
        queues: impl Iterator<Item = &'a Queue>,
        (front, pools): (&FrontHandle, &Pools),
    ) -> Gate {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // With fewer requests than workers, none of them waits.
        let limit = |workers: usize| (workers.min(cpus) / 2).max(1) as u64;
        let own = (front.clone(), limit(settings.workers.min));
        let others = settings.pools.iter().filter(|pool| pool.queue.is_none()).filter_map(|of| {
            let pool = pools.iter().find(|pool| pool.name == of.name)?;
            Some((pool.front.clone(), limit(of.settings.workers.min)))
        });
        let ticks = Ticks::default();
        let rule = |queue: &Queue| Rule {
            cpu_max: queue.is_idle.then_some(queue.cpu_max),
            window: queue.window.clone(),
        };
        Gate {
            queues: queues.map(rule).collect(),
            fronts: std::iter::once(own).chain(others).collect(),
            sample: Mutex::new(Sample { at: Instant::now(), ticks, percent: 0 }),
        }
    }

    /// Returns the time at which to look again, if the queue may not start jobs now.
    pub(crate) fn closed(&self, queue: usize, now_ms: u64) -> Option<u64> {
        let Rule { cpu_max, window } = self.queues.get(queue)?;
        if window.as_ref().is_some_and(|window| !is_in(window, now_ms)) {
            return Some(now_ms + WINDOW_LOOK_MS);
        }
        cpu_max.is_some_and(|max| !self.is_quiet(max)).then_some(now_ms + LOOK_MS)
    }

    fn is_quiet(&self, cpu_max: u64) -> bool {
        self.fronts.iter().all(|(front, limit)| front.in_flight() < *limit)
            && (cpu_max >= 100 || self.busy_percent() < cpu_max)
    }

    /// Returns the CPU time for other work than idle jobs.
    fn busy_percent(&self) -> u64 {
        let mut sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = sample.ticks == Ticks::default();
        if is_first || sample.at.elapsed() >= SAMPLE {
            // Without the file, only the requests decide.
            let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
            let ticks = Ticks::parse(&stat).unwrap_or_default();
            let busy = ticks.busy.saturating_sub(sample.ticks.busy);
            let all = ticks.all.saturating_sub(sample.ticks.all);
            // The first one is the mean since the start of the machine.
            sample.percent = busy * 100 / all.max(1);
            (sample.at, sample.ticks) = (Instant::now(), ticks);
        }
        sample.percent
    }
}

fn is_in(window: &Window, now_ms: u64) -> bool {
    window.zone.minute_of_day(now_ms).is_none_or(|minute| window.contains(minute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_idle_jobs_are_not_busy() {
        let stat = "cpu  100 700 50 1000 20 3 4 5 0 0\ncpu0 1 2 3\n";
        assert_eq!(Ticks::parse(stat), Some(Ticks { busy: 162, all: 1882 }));
        for text in ["", "cpu 1 2\n", "cpu  a b c d e f g h\n"] {
            assert_eq!(Ticks::parse(text), None, "{text}");
        }
    }
}
