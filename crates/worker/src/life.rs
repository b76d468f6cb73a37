//! A worker's life after the fork: boot the application if it is resident, then take requests until told to stop.

use crate::boundary::{self, Outcome, Place};
use crate::log;
use samovar_ring::{
    Incarnation, Lane, LeaveReason, Model, Ring, WORKERS_MAX, WorkerEnd, WorkerState,
};
use std::time::{Duration, Instant};

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
pub(crate) fn run(ring: Ring, index: usize, me: Incarnation, role: Role, mut wish: Wish) {
    let born = Instant::now();
    let lanes = if role == Role::Script { SCRIPT } else { ANY };
    boundary::install(WorkerEnd::new(ring, index, me), lanes);
    let mut boot = role == Role::Boot;
    let mut restarts = 0;
    loop {
        let begun = Instant::now();
        let outcome = if boot {
            boundary::report(WorkerState::Booting);
            boundary::php_boot(Place::Worker)
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
            Outcome::Ended => boundary::leave(LeaveReason::End),
            Outcome::Restart => {
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

/// The order `fork INDEX INCARNATION any|boot|script`.
pub(crate) fn parse_fork(text: &str) -> Option<(usize, Incarnation, Role)> {
    let mut words = text.split_ascii_whitespace();
    if words.next()? != "fork" {
        return None;
    }
    let index = words.next()?.parse().ok().filter(|i| *i < WORKERS_MAX)?;
    let me = Incarnation::new(words.next()?.parse().ok()?)?;
    let role = match words.next()? {
        "any" => Role::Any,
        "boot" => Role::Boot,
        "script" => Role::Script,
        _ => return None,
    };
    Some((index, me, role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood_or_refused() {
        let life = Incarnation::new(7);
        assert_eq!(parse_fork("fork 3 7 boot"), life.map(|life| (3, life, Role::Boot)));
        for text in
            ["", "fork", "fork 3 0 any", "fork 256 1 any", "fork 1 1 dance", "spoon 1 1 any"]
        {
            assert_eq!(parse_fork(text), None, "{text}");
        }
    }
}
