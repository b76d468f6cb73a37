//! `Samovar\RateLimiter`.

use super::problem::Why;
use super::state::{SharedState, act};
use crate::bytes::slice;
use samovar_shared::{Client, LimiterError, RateLimiter};
use std::ffi::c_char;

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_limiter_open(
    name: *const c_char,
    len: usize,
    rate: f64,
    burst: i64,
    keys: i64,
) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    // A negative value is as invalid as 0.
    let (burst, keys) = (u64::try_from(burst).unwrap_or(0), usize::try_from(keys).unwrap_or(0));
    let opened = act(|place| {
        let limiter = RateLimiter::open(&place.client, name, rate, burst, keys)?;
        let is_it = |kept: &RateLimiter| kept.object() == limiter.object();
        if let Some(at) = place.limiters.iter().position(is_it) {
            return Ok(at);
        }
        place.limiters.push(limiter);
        Ok(place.limiters.len() - 1)
    });
    opened.map_or(-1, usize::cast_signed) as i64
}

fn with_limiter(
    limiter: u32,
    f: impl FnOnce(&RateLimiter, &Client) -> Result<u64, LimiterError>,
) -> i64 {
    let said = act(|place| {
        let SharedState { client, limiters, .. } = place;
        let limiter = limiters.get(limiter as usize).ok_or(LimiterError::Busy)?;
        f(limiter, client).map_err(Why::from)
    });
    said.map_or(-1, |said| i64::try_from(said).unwrap_or(i64::MAX))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_limiter_ask(
    limiter: u32,
    key: *const c_char,
    len: usize,
    cost: i64,
    takes: bool,
) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    let cost = u64::try_from(cost).unwrap_or(0);
    with_limiter(limiter, |limiter, client| {
        if takes { limiter.take(client, key, cost) } else { limiter.look(client, key, cost) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_limiter_left(limiter: u32, key: *const c_char, len: usize) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_limiter(limiter, |limiter, client| limiter.left(client, key))
}
