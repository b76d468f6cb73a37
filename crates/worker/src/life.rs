//! A worker's life after the fork: boot the application if it is resident, then take requests until told to stop.

use crate::boundary::{self, Outcome};
use crate::log;
use samovar_ring::{Incarnation, Lane, Ring, WorkerEnd, WorkerState};

/// What the supervisor wants of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Any request; the application decides by its first call whether it stays resident.
    Any,
    /// As `Any`, and the application is known to be resident: boot it before the first request.
    Boot,
    /// Only scripts beside the front controller.
    Script,
}

const ANY: &[Lane] = &[Lane::App, Lane::Script];
const SCRIPT: &[Lane] = &[Lane::Script];

/// Fatal errors in a row after which an application that boots well is not booted ahead any more,
/// but by its next request (which then shows the error).
const RESTARTS_MAX: u32 = 3;

/// Runs until the server stops.
pub(crate) fn run(ring: Ring, index: usize, me: Incarnation, role: Role) {
    let lanes = if role == Role::Script { SCRIPT } else { ANY };
    boundary::install(WorkerEnd::new(ring, index, me), lanes);
    let mut boot = role == Role::Boot;
    let mut restarts = 0;
    loop {
        let outcome = if boot {
            boundary::report(WorkerState::Booting);
            boundary::php_boot()
        } else {
            match boundary::take() {
                Some(head) => boundary::php_run(head),
                None => return,
            }
        };
        match outcome {
            Outcome::Stop => return,
            Outcome::Restart => {
                restarts += 1;
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
                if boot {
                    // Its requests will show why it ended without calling Samovar\serve().
                    boot = false;
                    boundary::report_script_model(lanes);
                }
            }
        }
    }
}
