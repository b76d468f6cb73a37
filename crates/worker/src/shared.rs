//! PHP's objects in the memory that workers share: the Rust half of csrc/functions/shared.h.
//!
//! As in boundary.rs, one thread reaches one static through these functions, none of which calls
//! PHP. C may use their results until the next call.

mod breaker;
mod breaker_call;
mod cache;
mod counter;
mod limiter;
mod lock;
mod noted;
mod open_table;
mod problem;
mod published;
mod published_state;
mod state;
mod table;

use crate::log;
use samovar_channel::EXIT_REPLACE;
use samovar_shared::Outcome;
use state::{Problem, with};

pub(crate) use state::attach;

/// Message for a process whose parent read published values and has died at the moment of the fork.
const NO_LONGER_THERE: &str =
    "PHP Samovar: a process exits, because its first published values are gone";

/// Called at the start of a worker, so that the state which a rollback restores already has its
/// entry in the process registry. If that fails, the worker tries again when it needs the entry,
/// and reports the error then.
pub(crate) fn begin() {
    let is_well =
        with(|place| place.client.begin().is_err() || place.published.inherit(&place.client));
    if is_well == Some(false) {
        log::write(NO_LONGER_THERE, "");
        // SAFETY: ends the process, which has no request yet.
        unsafe { libc::_exit(EXIT_REPLACE) }
    }
}

/// Called in a process that this one has forked: it needs its own entry in the process registry.
pub(crate) fn forked() {
    let is_well = with(|place| {
        place.client.forked();
        place.held.clear();
        place.making.clear();
        place.calling.clear();
        place.published.forked(&place.client)
    });
    if is_well == Some(false) {
        log::write(NO_LONGER_THERE, "");
        // SAFETY: ends the process: the values that it has read may be gone.
        unsafe { libc::_exit(EXIT_REPLACE) }
    }
}

/// Releases all locks and values at the end of a request or a boot.
pub(crate) fn let_go() {
    with(|place| {
        place.published.end_request(&place.client);
        place.turn += 1;
        for lock in std::mem::take(&mut place.held) {
            lock.release(&place.client);
        }
        for (cache, hash) in std::mem::take(&mut place.making) {
            if let Some(cache) = place.caches.get(cache as usize) {
                cache.end_making(&place.client, hash);
            }
        }
        // A fatal error or the time limit ended the request inside these calls.
        for call in std::mem::take(&mut place.calling) {
            call.end(&place.client, Outcome::Failed);
        }
    });
}

/// Returns the error of the last failed call. It is valid until the next failure.
#[unsafe(no_mangle)]
extern "C" fn samovar_shared_problem() -> *const Problem {
    with(|place| &raw const place.problem).unwrap_or(std::ptr::null())
}

/// Records that the application is resident: the end of a request does not free its memory. The
/// memory is rolled back if `rolls_back`, else it stays.
pub(crate) fn resident(rolls_back: bool) {
    with(|place| place.published.resident(&place.client, rolls_back));
}

/// Records that whole scripts run from now on. A script leaves nothing to the next one.
pub(crate) fn scripts() {
    with(|place| place.published.scripts());
}

/// Records that the image is taken, with which other processes begin.
pub(crate) fn image_taken() {
    with(|place| place.published.keep(&place.client));
}

/// Records that the process's memory is as it was before the request.
pub(crate) fn rolled_back() {
    with(|place| place.published.rolled_back(&place.client));
}
