//! Stores the waker of a task for another task.

use std::task::{Context, Waker};

/// Stores the waker of `cx` in `place`. Does not clone it if the same task is stored already.
pub(crate) fn remember(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *place = Some(cx.waker().clone()),
    }
}
