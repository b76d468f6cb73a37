//! A small ring for the model checker: its lanes, workers and requests, and the bounds of a search.

use crate::layout::{Control, Lane};
use crate::limits::{SLOTS_MAX, SlotIndex};
use crate::os;
use crate::queue::QueueEntry;
use crate::sync::Ordering;
use crate::word::Incarnation;
use loom::sync::atomic::AtomicU32;

pub(super) const LANES: &[Lane] = &[Lane::App];
pub(super) const PROBES: &[Lane] = &[Lane::AppProbe];

pub(super) fn slot(index: usize) -> SlotIndex {
    SlotIndex::new(index, SLOTS_MAX).expect("a slot of the model")
}
pub(super) fn worker(number: u32) -> Incarnation {
    Incarnation::new(number).expect("not 0")
}
pub(super) fn submit(control: &Control, index: usize, generation: u32, tail: u64) {
    submit_to(Lane::App, control, index, generation, tail);
}
pub(super) fn submit_to(lane: Lane, control: &Control, index: usize, generation: u32, tail: u64) {
    control.slots[index].word.0.fill(generation);
    let entry = QueueEntry::new(slot(index), generation, tail as u32);
    control.submit(slot(index), generation, lane, tail, entry);
}
pub(super) fn run(control: &Control, index: SlotIndex, me: Incarnation, rung: &AtomicU32) {
    if control.finish(0, (index, 0), me) {
        rung.store(1, Ordering::SeqCst);
        os::futex_wake(rung);
    }
}
pub(super) fn bounded(check: impl Fn() + Sync + Send + 'static) {
    bounded_by(3, check);
}
pub(super) fn bounded_by(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}
