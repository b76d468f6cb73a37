//! Several fronts under loom: all requests are in one order, each is taken once, and each front
//! receives news of its own requests only.

use super::model::{LANES, bounded, bounded_by, slot, worker};
use crate::front_group::FrontGroup;
use crate::layout::{Control, Lane, Parts};
use crate::limits::SLOTS_MAX;
use crate::os;
use crate::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

/// Two fronts with one slot each.
fn scene() -> (Arc<Control>, Vec<FrontGroup>) {
    (Arc::new(Control::new()), FrontGroup::of(2))
}

/// Submits the one request of a front, in the slot with the front's number.
fn submit(control: &Control, front_group: &mut FrontGroup, generation: u32) {
    let own = slot(front_group.front());
    control.slot(own).word.0.fill(generation);
    let is_queued = front_group.submit((control, &control.slots), (own, generation), Lane::App);
    assert!(is_queued, "there is room");
}

#[test]
fn concurrent_requests_of_two_fronts_are_taken_once_each() {
    bounded(|| {
        let (control, crews) = scene();
        let fronts: Vec<_> = crews
            .into_iter()
            .map(|mut front_group| {
                let control = control.clone();
                thread::spawn(move || submit(&control, &mut front_group, 1))
            })
            .collect();
        let early = control.take(LANES, SLOTS_MAX, worker(1));
        fronts.into_iter().for_each(|front| front.join().unwrap());
        let late = std::iter::from_fn(|| control.take(LANES, SLOTS_MAX, worker(2)));
        let mut taken: Vec<_> = early.into_iter().chain(late).map(|slot| slot.get()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1]);
        assert_eq!(control.queue(Lane::App).pending(), 0);
    });
}

#[test]
fn first_request_of_any_front_is_taken_first() {
    bounded(|| {
        let (control, mut crews) = scene();
        let mut second = crews.remove(1);
        submit(&control, &mut second, 1);
        let first = {
            let (control, mut front_group) = (control.clone(), crews.remove(0));
            thread::spawn(move || submit(&control, &mut front_group, 1))
        };
        let oldest = control.take(LANES, SLOTS_MAX, worker(1));
        assert_eq!(oldest, Some(slot(1)), "no other request was queued before it");
        first.join().unwrap();
    });
}

#[test]
fn garbage_position_is_repaired_while_other_front_submits() {
    bounded(|| {
        let (control, mut crews) = scene();
        let mut second = crews.remove(1);
        // As a faulty worker could write it: a position beyond all queued entries.
        control.queue(Lane::App).mend(5);
        let first = {
            let (control, mut front_group) = (control.clone(), crews.remove(0));
            thread::spawn(move || submit(&control, &mut front_group, 1))
        };
        second.mend(&control);
        first.join().unwrap();
        second.mend(&control);
        assert_eq!(control.take(LANES, SLOTS_MAX, worker(1)), Some(slot(0)));
    });
}

#[test]
fn sleeping_worker_wakes_for_requests_of_either_front() {
    bounded_by(2, || {
        let (control, crews) = scene();
        let server = {
            let control = control.clone();
            thread::spawn(move || {
                let mut taken = 0;
                while taken < 2 {
                    if control.take(LANES, SLOTS_MAX, worker(1)).is_some() {
                        taken += 1;
                        continue;
                    }
                    control.sleep(0, LANES, true);
                }
            })
        };
        let fronts: Vec<_> = crews
            .into_iter()
            .map(|mut front_group| {
                let control = control.clone();
                thread::spawn(move || {
                    submit(&control, &mut front_group, 1);
                    control.wake_for(Lane::App);
                })
            })
            .collect();
        fronts.into_iter().for_each(|front| front.join().unwrap());
        server.join().unwrap();
    });
}

#[test]
fn sleeping_front_wakes_for_its_own_response() {
    bounded_by(2, || {
        let (control, mut crews) = scene();
        let parts = Parts::of(1, 2);
        crews.iter_mut().for_each(|front_group| submit(&control, front_group, 1));
        let rung = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let server = {
            let (control, rung) = (control.clone(), rung.clone());
            thread::spawn(move || {
                while let Some(slot) = control.take(LANES, SLOTS_MAX, worker(1)) {
                    let front = parts.front_of(slot);
                    if control.finish(0, (slot, front), worker(1)) {
                        rung[front].store(1, Ordering::SeqCst);
                        os::futex_wake(&rung[front]);
                    }
                }
            })
        };
        let listen = move |control: &Control, rung: &[AtomicU32; 2], front: usize| {
            let (notifier, part) = (control.notifier(front), parts.part(front));
            let mut seen = None;
            while seen.is_none() {
                notifier.take(&part, |slot| seen = Some(slot.get()));
                if seen.is_none() && notifier.fall_asleep(&part) {
                    os::futex_wait(&rung[front], 0, Duration::MAX);
                    rung[front].store(0, Ordering::SeqCst);
                    notifier.wake_up();
                }
            }
            assert_eq!(seen, Some(front), "it hears of its own");
        };
        let other = {
            let (control, rung) = (control.clone(), rung.clone());
            thread::spawn(move || listen(&control, &rung, 1))
        };
        listen(&control, &rung, 0);
        other.join().unwrap();
        server.join().unwrap();
    });
}
