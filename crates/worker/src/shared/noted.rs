//! The cache of `apcu_fetch()` and the other APCu functions: its values include the time when
//! they were stored.

use super::problem::Why;
use super::state::{SharedState, act, with};
use crate::bytes::slice;
use samovar_shared::{Cache, CacheError, Client, Noted};
use std::ffi::{c_char, c_int};

/// Kind of an integer, as in cache.rs.
const INT: u8 = 1;

/// `samovar_noted` of shared.h.
#[repr(C)]
struct RawNoted {
    kind: c_int,
    was_read: bool,
    stored: i64,
    changed: i64,
    ttl: i64,
    item_bytes: usize,
    value: *const c_char,
    len: usize,
    key: *const c_char,
    key_len: usize,
}

/// `samovar_noted_figures` of shared.h.
#[repr(C)]
#[derive(Default)]
struct RawFigures {
    hits: u64,
    misses: u64,
    stored: u64,
    gone: u64,
    since: u64,
    slots: u64,
    room: u64,
    bytes: u64,
}

impl RawNoted {
    fn new(noted: Noted, cache: &Cache) -> RawNoted {
        let (value, key) = (cache.noted_value(), cache.noted_key());
        RawNoted {
            kind: noted.kind.into(),
            was_read: noted.was_read,
            stored: noted.stored,
            changed: noted.changed,
            ttl: noted.ttl,
            item_bytes: noted.bytes,
            value: value.as_ptr().cast(),
            len: value.len(),
            key: key.as_ptr().cast(),
            key_len: key.len(),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_open(name: *const c_char, len: usize, bytes: i64) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let opened = act(|place| {
        let bytes = usize::try_from(bytes).unwrap_or(0);
        let cache = Cache::open_noted(&place.client, name, bytes)?;
        place.caches.push(cache);
        Ok(place.caches.len() - 1)
    });
    opened.map_or(-1, usize::cast_signed) as i64
}

fn with_cache<R>(
    cache: u32,
    f: impl FnOnce(&mut Cache, &Client) -> Result<R, CacheError>,
) -> Option<R> {
    act(|place| {
        let SharedState { client, caches, .. } = place;
        let cache = caches.get_mut(cache as usize).ok_or(CacheError::Busy)?;
        f(cache, client).map_err(Why::from)
    })
}

/// Returns 1 if there is such a value. Then `found` is valid until the next call.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_find(
    cache: u32,
    key: *const c_char,
    len: usize,
    uses: bool,
    found: *mut RawNoted,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    let done = with_cache(cache, |cache, client| {
        let noted = cache.find_noted(client, key, uses);
        Ok(noted.map(|noted| RawNoted::new(noted, cache)))
    });
    match done {
        // SAFETY: shared.h: `found` points to such a struct.
        Some(Some(noted)) => unsafe { *found = noted },
        Some(None) => return 0,
        None => return -1,
    }
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_store(
    cache: u32,
    key: *const c_char,
    len: usize,
    item: *const RawNoted,
    absent: bool,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    // SAFETY: shared.h: a live struct.
    let item = unsafe { &*item };
    // SAFETY: shared.h: `value` has `len` bytes.
    let value = unsafe { slice(item.value, item.len) };
    let kind = u8::try_from(item.kind).unwrap_or(0);
    let done = with_cache(cache, |cache, client| {
        cache.store_noted(client, key, (kind, value), item.ttl, absent)
    });
    done.map_or(-1, c_int::from)
}

/// Returns 1 if `sum` holds the new value.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_add(
    cache: u32,
    key: *const c_char,
    len: usize,
    by: i64,
    ttl: i64,
    sum: *mut i64,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    let done = with_cache(cache, |cache, client| {
        cache.change_integer(client, key, (INT, Some(ttl)), |before| Some(before.wrapping_add(by)))
    });
    match done {
        // SAFETY: shared.h: `sum` points to a number.
        Some(Some(after)) => unsafe { *sum = after },
        Some(None) => return 0,
        None => return -1,
    }
    1
}

/// Returns 1 if the value is `after` now.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_exchange(
    cache: u32,
    key: *const c_char,
    len: usize,
    before: i64,
    after: i64,
) -> c_int {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    let done = with_cache(cache, |cache, client| {
        cache.change_integer(client, key, (INT, None), |found| (found == before).then_some(after))
    });
    done.map_or(-1, |changed| c_int::from(changed.is_some()))
}

/// Stores the first value from position `from` on in `found`, and returns the position after it.
/// Returns -2 if there is none, -1 on failure.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_walk(cache: u32, from: u64, found: *mut RawNoted) -> i64 {
    let done = with_cache(cache, |cache, client| {
        let next = cache.walk_noted(client, from as usize);
        Ok(next.map(|(noted, next)| (RawNoted::new(noted, cache), next)))
    });
    match done {
        Some(Some((noted, next))) => {
            // SAFETY: shared.h: `found` points to such a struct.
            unsafe { *found = noted };
            next.cast_signed() as i64
        }
        Some(None) => -2,
        None => -1,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_noted_tell(cache: u32, figures: *mut RawFigures) {
    let told = with(|place| {
        let SharedState { client, caches, .. } = place;
        caches.get(cache as usize).map(|cache| cache.noted_figures(client))
    });
    let told = told.flatten().map_or_else(RawFigures::default, |of| RawFigures {
        hits: of.hits,
        misses: of.misses,
        stored: of.stored,
        gone: of.gone,
        since: of.since,
        slots: of.slots,
        room: of.room,
        bytes: of.bytes,
    });
    // SAFETY: shared.h: `figures` points to such a struct.
    unsafe { *figures = told };
}
