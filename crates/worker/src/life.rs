//! A worker's life after the fork: boots the application if it is resident, then takes requests
//! until the server stops it.

use crate::boundary::{self, BootPlace, Outcome};
use crate::log;
use crate::tracing;
use samovar_channel::{Role, WorkerId};
use samovar_ring::{Lane, LeaveReason, Model, Ring, WorkerEnd, WorkerState};
use std::time::{Duration, Instant};

const ANY: &[Lane] = &[Lane::App, Lane::Script];
const SCRIPT: &[Lane] = &[Lane::Script];

/// Reaction of a worker that runs whole scripts when one of them has a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The worker leaves, to be replaced by a worker that is booted down to the checkpoint.
    BootAhead,
    /// The worker leaves after a while, for another try: such a boot has just failed.
    BootAheadLater,
    /// The worker stays: this application cannot be rolled back.
    Never,
}

/// Delay of [`Wish::BootAheadLater`].
const LATER: Duration = Duration::from_secs(10);

/// Maximum number of consecutive fatal errors of an application that boots successfully. After that
/// it is no longer booted ahead, but by its next request, which then shows the error.
const RESTARTS_MAX: u32 = 3;

/// An application that has served for this long does not fail "again and again".
const CALM: Duration = Duration::from_secs(1);

/// Runs until the server stops.
pub(crate) fn run(ring: Ring, me: WorkerId, role: Role, mut wish: Wish) {
    let born = Instant::now();
    let lanes = tracing::lanes(if role == Role::Script { SCRIPT } else { ANY });
    boundary::install(WorkerEnd::new(ring, me.cell, me.life), lanes);
    let mut boot = role == Role::Boot;
    let mut restarts = 0;
    loop {
        let begun = Instant::now();
        let outcome = if boot {
            boundary::report(WorkerState::Booting);
            boundary::php_boot(BootPlace::Worker)
        } else {
            match boundary::take() {
                Some(head) => boundary::php_run(head),
                None => return,
            }
        };
        let leaves = match wish {
            Wish::BootAhead => boundary::met_checkpoint(),
            Wish::BootAheadLater => born.elapsed() > LATER,
            Wish::Never => false,
        };
        if leaves && !boot && role != Role::Script {
            boundary::report_model(Model::Checkpoint);
            boundary::leave(LeaveReason::Checkpoint);
        }
        match outcome {
            Outcome::Stop => return,
            Outcome::Ended => leave_after_serving(),
            Outcome::Restart => {
                if let Some(reason) = boundary::taint() {
                    boundary::leave(reason);
                }
                restarts = if begun.elapsed() < CALM { restarts + 1 } else { 1 };
                boot = restarts <= RESTARTS_MAX;
                boundary::report_script_model(lanes);
                if !boot {
                    restarts = 0;
                    log::write(
                        "PHP Samovar: repeated fatal errors of the application; the next request \
                         boots it again",
                        "",
                    );
                }
            }
            Outcome::Done => {
                if let Some(reason) = boundary::taint().filter(|_| !boot) {
                    boundary::leave(reason);
                }
                if boot {
                    // Its requests will show why it ended without taking a request.
                    wish = Wish::BootAheadLater;
                    boot = false;
                    boundary::report_script_model(lanes);
                }
            }
        }
    }
}

/// Leaves after the end of the application's loop over requests. It ended on its own, or no request
/// may follow the last one.
pub(crate) fn leave_after_serving() -> ! {
    boundary::leave(boundary::taint().unwrap_or(LeaveReason::End))
}
