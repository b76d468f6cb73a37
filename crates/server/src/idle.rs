//! Queues whose jobs start only at certain times, or while HTTP is quiet.

use crate::machine_load::MachineLoad;
use crate::pools::Pools;
use samovar_config::{Queue, Settings, Window};
use samovar_front::FrontHandle;

/// Time after which a closed queue is looked at again, in milliseconds.
const LOOK_MS: u64 = 50;
/// The same outside its window.
const WINDOW_LOOK_MS: u64 = 1_000;
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
    load: MachineLoad,
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
        let rule = |queue: &Queue| Rule {
            cpu_max: queue.is_idle.then_some(queue.cpu_max),
            window: queue.window.clone(),
        };
        Gate {
            queues: queues.map(rule).collect(),
            fronts: std::iter::once(own).chain(others).collect(),
            load: MachineLoad::default(),
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
            && (cpu_max >= 100 || self.load.busy_percent() < cpu_max)
    }
}

fn is_in(window: &Window, now_ms: u64) -> bool {
    window.zone.minute_of_day(now_ms).is_none_or(|minute| window.contains(minute))
}
