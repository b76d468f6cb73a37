//! A worker's life after the fork: boot the application if it is resident, then take requests until told to stop.

use crate::boundary::{self, BootPlace, Outcome};
use crate::log;
use crate::tracing;
use samovar_channel::{Role, WorkerId};
use samovar_ring::{Lane, LeaveReason, Model, Ring, WorkerEnd, WorkerState};
use std::time::{Duration, Instant};

const ANY: &[Lane] = &[Lane::App, Lane::Script];
const SCRIPT: &[Lane] = &[Lane::Script];

/// How a worker that runs whole scripts reacts when one of them has a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It leaves, for a worker that is booted down to it.
    BootAhead,
    /// It leaves after a while, to try again: that boot has just failed.
    BootAheadLater,
    /// It stays: this application cannot be rolled back.
    Never,
}

/// How long [`Wish::BootAheadLater`] waits.
const LATER: Duration = Duration::from_secs(10);

/// Fatal errors in a row after which an application that boots well is not booted ahead any more,
/// but by its next request (which then shows the error).
const RESTARTS_MAX: u32 = 3;

/// An application that has served for so long does not fail "again and again".
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
                if let Some(reason) = boundary::stain() {
                    boundary::leave(reason);
                }
                restarts = if begun.elapsed() < CALM { restarts + 1 } else { 1 };
                boot = restarts <= RESTARTS_MAX;
                boundary::report_script_model(lanes);
                if !boot {
                    restarts = 0;
                    log::write(
                        "PHP Samovar: the application fails again and again; it is booted by the next request",
                        "",
                    );
                }
            }
            Outcome::Done => {
                if let Some(reason) = boundary::stain().filter(|_| !boot) {
                    boundary::leave(reason);
                }
                if boot {
                    // Its requests will show why it ended without asking for any.
                    wish = Wish::BootAheadLater;
                    boot = false;
                    boundary::report_script_model(lanes);
                }
            }
        }
    }
}

/// The application's loop over requests has ended: by itself, or because none may follow the last.
pub(crate) fn leave_after_serving() -> ! {
    boundary::leave(boundary::stain().unwrap_or(LeaveReason::End))
}
