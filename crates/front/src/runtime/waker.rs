//! Whom to wake: kept where somebody else finds it.

use std::task::{Context, Waker};

/// Remembers in `place` whom `cx` wakes; without a new waker where it is the same.
pub(crate) fn remember(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => *place = Some(cx.waker().clone()),
    }
}
