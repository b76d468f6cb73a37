//! The table of disturbances: requirements of each kind, losses that it excuses, and its function.

use crate::chaos::pardon::Pardon;
use crate::chaos::stage::{Model, Sink, Stage, Surroundings};
use crate::chaos::{
    clients, clock, control, crashes, deaths, garbage, limits, logs, reloads, stops,
};
use samovar_testkit::order::Order;

/// One kind of disturbance.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Model that is served when the kind runs alone.
    pub(crate) model: Model,
    /// Requests the environment that the kind needs, or returns why this machine does not permit
    /// them.
    pub(crate) prepare: fn(&mut Surroundings) -> Result<(), String>,
    /// Whether the kind has an effect in this environment and model. Other kinds may have
    /// changed the environment.
    pub(crate) fits: fn(&Surroundings, Model) -> bool,
    pub(crate) pardons: &'static [Pardon],
    /// No other disturbance runs at the same time.
    pub(crate) exclusive: bool,
    /// Runs one disturbance from beginning to end.
    pub(crate) disturb: fn(&Stage, &mut Order),
}

/// A kind without special needs; the table lists the differences.
const PLAIN: Kind = Kind {
    name: "",
    model: Model::Script,
    prepare: |_| Ok(()),
    fits: |_, _| true,
    pardons: &[],
    exclusive: false,
    disturb: |_, _| {},
};

/// Wraps a preparation that every machine permits.
#[expect(clippy::unnecessary_wraps, reason = "other kinds may be refused")]
fn easily(around: &mut Surroundings, prepare: fn(&mut Surroundings)) -> Result<(), String> {
    prepare(around);
    Ok(())
}

const LOST: &[Pardon] = &[Pardon::LostWork];
const STOPPED: &[Pardon] = &[Pardon::LostWork, Pardon::StoppedWork];
const FREELY: &[Pardon] = &[Pardon::Everything];

pub(crate) const ALL: &[Kind] = &[
    Kind { name: "kill_workers", pardons: LOST, disturb: deaths::kill_worker, ..PLAIN },
    Kind {
        name: "kill_template",
        model: Model::Resident,
        pardons: LOST,
        disturb: deaths::kill_template,
        ..PLAIN
    },
    Kind {
        name: "kill_image",
        model: Model::Checkpoint,
        fits: |_, model| model != Model::Script,
        pardons: LOST,
        disturb: deaths::kill_image,
        ..PLAIN
    },
    Kind { name: "stop_workers", model: Model::Resident, disturb: stops::stop_workers, ..PLAIN },
    Kind {
        name: "stop_template",
        model: Model::Checkpoint,
        pardons: LOST,
        // Workers that die meanwhile have no successor; other kinds might kill all of them.
        exclusive: true,
        disturb: stops::stop_template,
        ..PLAIN
    },
    Kind {
        name: "stop_worker_for_good",
        model: Model::Resident,
        pardons: STOPPED,
        disturb: stops::worker_for_good,
        ..PLAIN
    },
    Kind {
        name: "stop_template_for_good",
        pardons: LOST,
        exclusive: true,
        disturb: stops::template_for_good,
        ..PLAIN
    },
    Kind {
        name: "stop_image_for_good",
        model: Model::Checkpoint,
        fits: |_, model| model != Model::Script,
        pardons: LOST,
        exclusive: true,
        disturb: stops::image_for_good,
        ..PLAIN
    },
    Kind { name: "crash_storm", pardons: LOST, disturb: crashes::storm, ..PLAIN },
    Kind { name: "errors", model: Model::Checkpoint, disturb: crashes::errors, ..PLAIN },
    Kind { name: "afterwork", model: Model::Resident, disturb: crashes::afterwork, ..PLAIN },
    Kind {
        name: "memory_group",
        model: Model::Resident,
        prepare: limits::prepare_memory,
        fits: |around, _| around.memory.is_some(),
        pardons: LOST,
        // Files of other kinds on the small disks count as memory of the group.
        exclusive: true,
        disturb: limits::memory,
    },
    Kind {
        name: "pids",
        prepare: limits::prepare_pids,
        pardons: &[Pardon::LostWork, Pardon::NoThread],
        // A template that dies meanwhile has no successor, and then no worker serves requests.
        exclusive: true,
        disturb: limits::pids,
        ..PLAIN
    },
    Kind {
        name: "descriptors",
        prepare: |around| easily(around, limits::prepare_descriptors),
        disturb: limits::descriptors,
        // New connections of other kinds would wait for those that this kind holds.
        exclusive: true,
        ..PLAIN
    },
    Kind {
        name: "stderr_gone",
        fits: |around, _| around.log == Sink::Pipe,
        pardons: LOST,
        disturb: logs::stderr_gone,
        ..PLAIN
    },
    Kind {
        name: "stderr_stuck",
        model: Model::Resident,
        fits: |around, _| around.log == Sink::Pipe,
        pardons: LOST,
        disturb: logs::stderr_stuck,
        ..PLAIN
    },
    Kind {
        name: "stdout_gone",
        fits: |around, _| around.access == Sink::Pipe,
        disturb: logs::stdout_gone,
        ..PLAIN
    },
    Kind {
        name: "stdout_stuck",
        fits: |around, _| around.access == Sink::Pipe,
        disturb: logs::stdout_stuck,
        ..PLAIN
    },
    Kind {
        name: "log_full",
        model: Model::Checkpoint,
        prepare: logs::prepare_log,
        fits: |around, _| around.log == Sink::Disk,
        pardons: LOST,
        disturb: logs::log_full,
        ..PLAIN
    },
    Kind {
        name: "access_log_full",
        model: Model::Resident,
        prepare: logs::prepare_access,
        fits: |around, _| around.access == Sink::Disk,
        disturb: logs::access_log_full,
        ..PLAIN
    },
    Kind {
        name: "temp_full",
        prepare: limits::prepare_temp,
        fits: |around, _| around.disks,
        pardons: &[Pardon::NoSpool],
        // Without a spill file for their responses, slow readers occupy workers again.
        exclusive: true,
        disturb: limits::temp_full,
        ..PLAIN
    },
    Kind { name: "slow_readers", disturb: clients::slow_readers, ..PLAIN },
    Kind { name: "slow_writers", model: Model::Resident, disturb: clients::slow_writers, ..PLAIN },
    Kind { name: "half_open", model: Model::Checkpoint, disturb: clients::half_open, ..PLAIN },
    Kind {
        name: "quiet",
        prepare: |around| easily(around, clock::prepare_quiet),
        exclusive: true,
        disturb: clock::quiet,
        ..PLAIN
    },
    Kind {
        name: "clock_jumps",
        model: Model::Checkpoint,
        prepare: clock::prepare_clock,
        fits: |around, _| around.clock.is_some(),
        disturb: clock::jumps,
        ..PLAIN
    },
    Kind {
        name: "clock_leaps",
        model: Model::Resident,
        prepare: clock::prepare_clock,
        fits: |around, _| around.clock.is_some(),
        exclusive: true,
        disturb: clock::leaps,
        ..PLAIN
    },
    Kind {
        name: "dates",
        prepare: limits::prepare_disks,
        fits: |around, _| around.disks,
        disturb: clock::dates,
        ..PLAIN
    },
    Kind { name: "reload", model: Model::Checkpoint, disturb: reloads::reload, ..PLAIN },
    Kind {
        name: "reload_broken",
        model: Model::Resident,
        // A whole script is read for each request, so no old code is left to run.
        fits: |_, model| model != Model::Script,
        // A process that dies meanwhile would boot the broken code.
        exclusive: true,
        disturb: reloads::reload_broken,
        ..PLAIN
    },
    Kind { name: "control_abuse", disturb: control::abuse, ..PLAIN },
    Kind {
        name: "ring_garbage",
        prepare: |around| easily(around, garbage::prepare),
        pardons: FREELY,
        exclusive: true,
        disturb: garbage::scribble,
        ..PLAIN
    },
    Kind { name: "ring_truncated", model: Model::Resident, disturb: garbage::truncate, ..PLAIN },
];
