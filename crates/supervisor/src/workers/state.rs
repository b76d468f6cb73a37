//! State of a generation's template and workers: the places of the workers and their processes. The
//! transitions are in `workers`.

use samovar_ring::Incarnation;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No process; the next one may start at this time.
    Waiting { until: Instant },
    /// A fork was ordered from the template.
    Asked { incarnation: Incarnation },
    /// The worker's process runs.
    Alive { incarnation: Incarnation, pid: i32, since: Instant },
}

/// Numbers the incarnations of all workers in the ring, across all generations.
#[derive(Clone, Debug)]
pub(crate) struct Lives(Rc<Cell<Incarnation>>);

impl Default for Lives {
    fn default() -> Lives {
        Lives(Rc::new(Cell::new(Incarnation::FIRST)))
    }
}

impl Lives {
    pub(super) fn next(&self) -> Incarnation {
        let life = self.0.get();
        self.0.set(life.next());
        life
    }
}

/// A place for a worker. The place stays; its processes change.
#[derive(Clone, Debug)]
pub(crate) struct WorkerPlace {
    pub(super) cell: usize,
    pub(super) script: bool,
    pub(super) life: Life,
    pub(super) short_lives: u32,
    /// The worker is retiring, and gets no successor.
    pub(super) is_unneeded: bool,
    /// The worker is for a replay, and held back from all other requests.
    pub(super) is_spare: bool,
}

impl WorkerPlace {
    /// Returns its cell in the ring.
    pub(crate) fn cell(&self) -> usize {
        self.cell
    }

    /// Returns process id, incarnation and start time, if there is a process.
    pub(crate) fn process(&self) -> Option<(i32, Incarnation, Instant)> {
        match self.life {
            Life::Alive { incarnation, pid, since } => Some((pid, incarnation, since)),
            _ => None,
        }
    }

    /// Whether it is for scripts other than a resident front controller.
    pub(crate) fn is_script(&self) -> bool {
        self.script
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Template {
    Waiting {
        until: Instant,
    },
    Starting {
        since: Instant,
    },
    Ready {
        since: Instant,
    },
    /// The template died. Its workers are dying too, and must be gone before the next template
    /// starts.
    Ending {
        until: Instant,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopping {
    No,
    /// No more workers are started.
    Asked,
    /// The workers' time is over. A pending fork, whose worker may still be booting, is not waited
    /// for.
    Now,
}

/// Replacement of a worker that has reached a recycling limit. Its successor starts before it
/// exits, so that the number of workers never falls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recycling {
    pub(super) old: usize,
    pub(super) new: Option<usize>,
    /// The old worker is retiring.
    pub(super) is_leaving: bool,
}

/// State machine of a generation's workers.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(super) places: Vec<WorkerPlace>,
    /// Wanted number of workers for any request, and of workers for scripts.
    pub(super) count: usize,
    pub(super) script_count: usize,
    /// Minimum number of workers of each kind.
    pub(super) least: usize,
    pub(super) fork_failures: u64,
    pub(super) template: Template,
    pub(super) short_templates: u32,
    pub(super) resident: bool,
    pub(super) told_resident: bool,
    pub(super) scripts: bool,
    pub(super) lives: Lives,
    pub(super) stopping: Stopping,
    pub(super) restarts: u64,
    pub(super) reforks: u64,
    pub(super) template_restarts: u64,
    /// At most one replacement at a time.
    pub(super) recycling: Option<Recycling>,
    pub(super) recycled: u64,
    /// A worker for a replay is wanted, and has no cell yet: whether it is for scripts.
    pub(super) spare: Option<bool>,
}

impl Workers {
    /// Creates the state for `count` workers, and for `least` after a template's death. At first
    /// all their cells are missing ([`Workers::lacks`]). The first [`Event::Tick`] starts the
    /// template.
    pub(crate) fn new(count: usize, least: usize, lives: Lives, now: Instant) -> Workers {
        Workers {
            places: Vec::new(),
            count,
            script_count: least,
            least,
            fork_failures: 0,
            template: Template::Waiting { until: now },
            short_templates: 0,
            resident: false,
            told_resident: false,
            scripts: false,
            lives,
            stopping: Stopping::No,
            restarts: 0,
            reforks: 0,
            template_restarts: 0,
            recycling: None,
            recycled: 0,
            spare: None,
        }
    }

    /// Returns the places of all workers, with or without a process.
    pub(crate) fn places(&self) -> &[WorkerPlace] {
        &self.places
    }

    /// Returns the cells reserved for this generation. When it stops, they are released one by one.
    pub(crate) fn cells(&self) -> impl Iterator<Item = usize> {
        let is_left =
            |p: &&WorkerPlace| !self.is_stopping() || !matches!(p.life, Life::Waiting { .. });
        self.places.iter().filter(is_left).map(WorkerPlace::cell)
    }

    /// Returns the number of cells that are still missing.
    pub(crate) fn lacks(&self) -> usize {
        if self.is_stopping() {
            return 0;
        }
        let successor = usize::from(self.recycling.is_some_and(|r| r.new.is_none()));
        self.missing(false) + self.missing(true) + successor + usize::from(self.spare.is_some())
    }

    /// Returns the place of the worker for a replay.
    pub(crate) fn spare(&self) -> Option<&WorkerPlace> {
        self.places.iter().find(|place| place.is_spare && !place.is_unneeded)
    }

    /// Whether a worker for a replay waits for a cell.
    pub(crate) fn awaits_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Whether the worker in that cell is for a replay.
    pub(crate) fn is_spare(&self, cell: usize) -> bool {
        self.places.iter().any(|place| place.cell == cell && place.is_spare)
    }

    /// Whether it has or needs workers for scripts other than a resident front controller.
    pub(crate) fn has_scripts(&self) -> bool {
        self.scripts
    }

    /// Returns the number of workers that died and were replaced.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the number of workers that exited to be replaced by a fresh fork.
    pub(crate) fn reforks(&self) -> u64 {
        self.reforks
    }

    /// Returns the number of workers that were replaced because of a recycling limit.
    pub(crate) fn recycled(&self) -> u64 {
        self.recycled
    }

    /// Whether a worker is being replaced because of a recycling limit.
    pub(crate) fn is_recycling(&self) -> bool {
        self.recycling.is_some()
    }

    /// Returns the cell of a successor whose predecessor still serves.
    pub(crate) fn awaited_successor(&self) -> Option<usize> {
        self.recycling.filter(|recycling| !recycling.is_leaving)?.new
    }

    /// Whether the worker in that cell is retiring, because of a recycling limit or because it is
    /// not needed.
    pub(crate) fn is_leaving(&self, cell: usize) -> bool {
        let is_unneeded = |place: &WorkerPlace| place.cell == cell && place.is_unneeded;
        self.recycling.is_some_and(|recycling| recycling.is_leaving && recycling.old == cell)
            || self.places.iter().any(is_unneeded)
    }

    /// Returns the number of template starts after the first one.
    pub(crate) fn template_restarts(&self) -> u64 {
        self.template_restarts
    }

    /// Whether the application is known to be resident.
    pub(crate) fn is_resident(&self) -> bool {
        self.resident
    }

    /// Whether the text of the front controller shows that it is resident.
    pub(crate) fn is_told_resident(&self) -> bool {
        self.told_resident
    }

    /// Whether the template is starting PHP.
    pub(crate) fn has_starting_template(&self) -> bool {
        matches!(self.template, Template::Starting { .. })
    }

    /// Whether the template is waiting for orders.
    pub(crate) fn has_template(&self) -> bool {
        matches!(self.template, Template::Ready { .. })
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping != Stopping::No
    }
}
