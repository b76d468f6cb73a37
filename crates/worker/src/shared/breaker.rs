//! `Samovar\Breaker`. A call counts as failed if the request ends inside it.

use super::breaker_call::Begun;
use super::problem::{Thrown, Why};
use super::state::{act, with};
use crate::bytes::slice;
use samovar_shared::{Breaker, Outcome, Permission, Rules};
use std::ffi::{c_char, c_int};

/// `samovar_breaker_rules` of shared.h.
#[repr(C)]
struct BreakerRules {
    failures: f64,
    slow: f64,
    slow_after: f64,
    calls_min: i64,
    window: f64,
    pause: f64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_breaker_open(
    name: *const c_char,
    len: usize,
    rules: *const BreakerRules,
) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    // SAFETY: shared.h: the caller's struct, filled in.
    let BreakerRules { failures, slow, slow_after, calls_min, window, pause } =
        unsafe { std::ptr::read(rules) };
    let rules = Rules { failures, slow, slow_after, calls_min, window, pause };
    let opened = act(|place| {
        let breaker = Breaker::open(&place.client, name, rules)?;
        let is_it = |kept: &Breaker| kept.object() == breaker.object();
        if let Some(at) = place.breakers.iter().position(is_it) {
            return Ok(at);
        }
        place.breakers.push(breaker);
        Ok(place.breakers.len() - 1)
    });
    opened.map_or(-1, usize::cast_signed) as i64
}

fn unknown() -> Why {
    Why(Thrown::Error, "A Samovar\\Breaker must be constructed first".to_owned())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_breaker_ask(breaker: u32, seconds: *mut f64) -> i64 {
    let asked = act(|place| {
        let breaker = *place.breakers.get(breaker as usize).ok_or_else(unknown)?;
        Ok(match breaker.ask(&place.client) {
            Permission::Refused(wait) => {
                // SAFETY: shared.h: `seconds` is the caller's.
                unsafe { *seconds = wait.as_secs_f64() };
                0
            }
            Permission::Granted(call) => {
                place.calls += 1;
                place.calling.push(Begun { number: place.calls, breaker, call });
                place.calls
            }
        })
    });
    asked.unwrap_or(-1)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_breaker_report(call: i64, outcome: c_int) {
    let outcome = match outcome {
        0 => Outcome::Well,
        1 => Outcome::Failed,
        _ => Outcome::Unknown,
    };
    with(|place| {
        // If it is missing, it belongs to an earlier request, which has already reported its end.
        if let Some(at) = place.calling.iter().position(|begun| begun.number == call) {
            place.calling.swap_remove(at).end(&place.client, outcome);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_breaker_state(breaker: u32) -> *const c_char {
    let state = act(|place| {
        let breaker = place.breakers.get(breaker as usize).ok_or_else(unknown)?;
        Ok(match breaker.state(&place.client) {
            samovar_shared::BreakerState::Closed => c"closed",
            samovar_shared::BreakerState::Open => c"open",
            samovar_shared::BreakerState::HalfOpen => c"half-open",
        })
    });
    state.map_or(std::ptr::null(), std::ffi::CStr::as_ptr)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_breaker_reset(breaker: u32) -> c_int {
    let reset = act(|place| {
        let breaker = place.breakers.get(breaker as usize).ok_or_else(unknown)?;
        breaker.reset(&place.client);
        Ok(0)
    });
    reset.unwrap_or(-1)
}
