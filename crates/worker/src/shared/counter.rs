//! `Samovar\Counter`: the number of the object is the process's handle for it.

use super::problem::Why;
use super::state::{act, with};
use crate::bytes::slice;
use samovar_shared::Counter;
use std::ffi::c_char;

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_counter_open(name: *const c_char, len: usize) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    let opened = act(|place| Counter::open(&place.client, name).map_err(Why::from));
    opened.map_or(-1, |counter| counter.object().into())
}

#[unsafe(no_mangle)]
extern "C" fn samovar_counter_get(counter: u32) -> i64 {
    with(|place| Counter::of(counter).get(&place.client)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_counter_add(counter: u32, by: i64) -> i64 {
    with(|place| Counter::of(counter).add(&place.client, by)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_counter_set(counter: u32, to: i64) -> i64 {
    with(|place| Counter::of(counter).set(&place.client, to)).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_counter_compare_and_set(counter: u32, expected: i64, to: i64) -> bool {
    with(|place| Counter::of(counter).compare_and_set(&place.client, expected, to)).unwrap_or(false)
}
