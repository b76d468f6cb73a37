//! `Samovar\Lock`: locks that a request holds are released at its end.

use super::problem::Why;
use super::state::{act, with};
use crate::bytes::slice;
use samovar_shared::{Acquired, NamedLock};
use std::ffi::{c_char, c_int};
use std::time::Duration;

/// Maximum wait, in seconds: a day.
const WAIT_SECONDS_MAX: f64 = 86_400.0;

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_lock_open(name: *const c_char, len: usize) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let opened = act(|place| NamedLock::open(&place.client, name).map_err(Why::from));
    opened.map_or(-1, |lock| lock.object().into())
}

#[unsafe(no_mangle)]
extern "C" fn samovar_lock_acquire(lock: u32, seconds: f64) -> c_int {
    let lock = NamedLock::of(lock);
    // A value that is not a number means no wait.
    let limit = Duration::try_from_secs_f64(seconds.clamp(0.0, WAIT_SECONDS_MAX));
    let acquired = act(|place| {
        let acquired = lock.acquire(&place.client, limit.unwrap_or_default());
        if acquired == Acquired::Yes {
            place.held.push(lock);
        }
        Ok(acquired)
    });
    match acquired {
        Some(Acquired::Yes) => 1,
        Some(Acquired::No) => 0,
        Some(Acquired::Already) => -2,
        None => -1,
    }
}

/// Returns the number of the current request or boot. Locks acquired under an earlier number are
/// already released.
#[unsafe(no_mangle)]
extern "C" fn samovar_lock_turn() -> u64 {
    with(|place| place.turn).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_lock_release(lock: u32) -> bool {
    let lock = NamedLock::of(lock);
    with(|place| {
        place.held.retain(|held| *held != lock);
        lock.release(&place.client)
    })
    .unwrap_or(false)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_lock_is_mine(lock: u32) -> bool {
    with(|place| NamedLock::of(lock).is_mine(&place.client)).unwrap_or(false)
}
