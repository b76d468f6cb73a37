//! `Samovar\Cache`: values as C has them, and makers of values that are released at the end of
//! their request.

use super::problem::Why;
use super::state::{SharedState, act, with};
use crate::bytes::slice;
use samovar_shared::{Cache, CacheError, Client, Condition, FlightRole, Life, Look};
use std::ffi::{c_char, c_int};
use std::time::Duration;

/// Kind of an integer (`SAMOVAR_CACHED_INT`): the only kind whose values this side reads.
const INT: u8 = 1;
/// Maximum lifetime of a value, in seconds; longer ones are cut to it. A clock can count about
/// three hundred years.
const LIFE_SECONDS_MAX: f64 = 1e9;

/// `samovar_cached` of shared.h.
#[repr(C)]
struct RawItem {
    kind: c_int,
    value: *const c_char,
    len: usize,
    fresh: f64,
    stale: f64,
    condition: c_int,
    /// For [`Condition::Equals`]: has the same kind as the value.
    expected: *const c_char,
    expected_len: usize,
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.clamp(0.0, LIFE_SECONDS_MAX)).unwrap_or_default()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_open(name: *const c_char, len: usize, bytes: i64) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let opened = act(|place| {
        let cache = Cache::open(&place.client, name, usize::try_from(bytes).unwrap_or(0))?;
        let is_it = |kept: &Cache| kept.object() == cache.object() && !kept.is_noted();
        if let Some(at) = place.caches.iter().position(is_it) {
            return Ok(at);
        }
        place.caches.push(cache);
        Ok(place.caches.len() - 1)
    });
    opened.map_or(-1, usize::cast_signed) as i64
}

fn with_cache(
    cache: u32,
    f: impl FnOnce(&mut Cache, &Client) -> Result<c_int, CacheError>,
) -> c_int {
    act(|place| {
        let SharedState { client, caches, .. } = place;
        let cache = caches.get_mut(cache as usize).ok_or(CacheError::Busy)?;
        f(cache, client).map_err(Why::from)
    })
    .unwrap_or(-1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_get(
    cache: u32,
    key: *const c_char,
    len: usize,
    kind: *mut c_int,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_cache(cache, |cache, client| {
        let (found, of) = match cache.get(client, key)? {
            Look::Missing => return Ok(0),
            Look::Fresh(of) => (1, of),
            Look::Stale(of) => (2, of),
        };
        // SAFETY: shared.h: `kind` points to a number.
        unsafe { *kind = of.into() };
        Ok(found)
    })
}

/// Returns the value that was found last, and stores its length in `len`. Valid until the next
/// call.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_value(cache: u32, len: *mut usize) -> *const c_char {
    let found = with(|place| {
        let value = place.caches.get(cache as usize)?.value();
        Some((value.as_ptr(), value.len()))
    });
    let (value, bytes) = found.flatten().unwrap_or((std::ptr::null(), 0));
    // SAFETY: shared.h: `len` points to a number.
    unsafe { *len = bytes };
    value.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_set(
    cache: u32,
    key: *const c_char,
    len: usize,
    item: *const RawItem,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    // SAFETY: shared.h: a live struct.
    let item = unsafe { &*item };
    // SAFETY: shared.h: `value` has `len` bytes.
    let value = unsafe { slice(item.value, item.len) };
    // SAFETY: shared.h: `expected` has `expected_len` bytes.
    let expected = unsafe { slice(item.expected, item.expected_len) };
    let kind = u8::try_from(item.kind).unwrap_or(0);
    let condition = match item.condition {
        1 => Condition::Absent,
        2 => Condition::Equals,
        _ => Condition::Always,
    };
    let life = Life { fresh: span(item.fresh), stale: span(item.stale) };
    with_cache(cache, |cache, client| {
        let condition = (condition, (kind, expected));
        cache.set(client, key, (kind, value), life, condition).map(c_int::from)
    })
}

/// Returns 1 if the sum was stored, 0 if the existing value or the sum is not an integer.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_add(
    cache: u32,
    key: *const c_char,
    len: usize,
    by: i64,
    fresh: f64,
    sum: *mut i64,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_cache(cache, |cache, client| {
        let life = Life { fresh: span(fresh), stale: Duration::ZERO };
        let Some(found) = cache.add(client, key, (INT, by), life)? else { return Ok(0) };
        // SAFETY: shared.h: `sum` points to a number.
        unsafe { *sum = found };
        Ok(1)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_delete(cache: u32, key: *const c_char, len: usize) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_cache(cache, |cache, client| cache.delete(client, key).map(c_int::from))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_cache_clear(cache: u32) -> c_int {
    with_cache(cache, |cache, client| cache.clear(client).map(|()| 0))
}

/// Returns 1 if this request makes the value and reports when it is done. Returns 0 if another
/// request makes it, 2 if the value need not be made.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_make(cache: u32, key: *const c_char, len: usize) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    act(|place| {
        let SharedState { client, caches, making, .. } = place;
        let found = caches.get(cache as usize).ok_or(CacheError::Busy)?;
        Ok(match found.begin_making(client, key)? {
            FlightRole::Mine => {
                making.push((cache, found.hash(client, key)));
                1
            }
            FlightRole::Others => 0,
            FlightRole::Unknown => 2,
        })
    })
    .unwrap_or(-1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_made(cache: u32, key: *const c_char, len: usize) {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with(|place| {
        let SharedState { client, caches, making, .. } = place;
        if let Some(found) = caches.get(cache as usize) {
            let hash = found.hash(client, key);
            making.retain(|made| *made != (cache, hash));
            found.end_making(client, hash);
        }
    });
}

/// Returns 1 if the value was made or is to be made by this request, 0 if `seconds` are over.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_cache_wait(
    cache: u32,
    key: *const c_char,
    len: usize,
    seconds: f64,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_cache(cache, |cache, client| cache.wait(client, key, span(seconds)).map(c_int::from))
}
