//! Several fronts under loom: one order of all requests, each taken once; and each front hears of its own, and only of those.

use super::{LANES, bounded, bounded_by, slot, worker};
use crate::crew::Crew;
use crate::layout::{Control, Lane, Parts, SLOTS_MAX};
use crate::os;
use crate::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

/// Two fronts with a slot each.
fn scene() -> (Arc<Control>, Vec<Crew>) {
    (Arc::new(Control::new()), Crew::of(2))
}

/// A front's one request, in the slot of its number.
fn submit(control: &Control, crew: &mut Crew, generation: u32) {
    let own = slot(crew.front());
    control.slot(own).word.0.fill(generation);
    let is_queued = crew.submit((control, &control.slots), (own, generation), Lane::App);
    assert!(is_queued, "there is room");
}

#[test]
fn what_two_fronts_queue_at_once_is_taken_once_each() {
    bounded(|| {
        let (control, crews) = scene();
        let fronts: Vec<_> = crews
            .into_iter()
            .map(|mut crew| {
                let control = control.clone();
                thread::spawn(move || submit(&control, &mut crew, 1))
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
fn who_comes_first_is_taken_first_whatever_front_it_came_to() {
    bounded(|| {
        let (control, mut crews) = scene();
        let mut second = crews.remove(1);
        submit(&control, &mut second, 1);
        let first = {
            let (control, mut crew) = (control.clone(), crews.remove(0));
            thread::spawn(move || submit(&control, &mut crew, 1))
        };
        let oldest = control.take(LANES, SLOTS_MAX, worker(1));
        assert_eq!(oldest, Some(slot(1)), "no other has come before it");
        first.join().unwrap();
    });
}

#[test]
fn a_position_that_somebody_has_written_is_mended_while_another_front_queues() {
    bounded(|| {
        let (control, mut crews) = scene();
        let mut second = crews.remove(1);
        // As a worker gone mad could: beyond all that was queued.
        control.queue(Lane::App).mend(5);
        let first = {
            let (control, mut crew) = (control.clone(), crews.remove(0));
            thread::spawn(move || submit(&control, &mut crew, 1))
        };
        second.mend(&control);
        first.join().unwrap();
        second.mend(&control);
        assert_eq!(control.take(LANES, SLOTS_MAX, worker(1)), Some(slot(0)));
    });
}

#[test]
fn a_worker_that_sleeps_is_woken_for_what_either_front_queues() {
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
            .map(|mut crew| {
                let control = control.clone();
                thread::spawn(move || {
                    submit(&control, &mut crew, 1);
                    control.wake_for(Lane::App);
                })
            })
            .collect();
        fronts.into_iter().for_each(|front| front.join().unwrap());
        server.join().unwrap();
    });
}

#[test]
fn each_front_that_sleeps_is_woken_for_its_own_answer() {
    bounded_by(2, || {
        let (control, mut crews) = scene();
        let parts = Parts::of(1, 2);
        crews.iter_mut().for_each(|crew| submit(&control, crew, 1));
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
            let (bell, part) = (control.bell(front), parts.part(front));
            let mut seen = None;
            while seen.is_none() {
                bell.take(&part, |slot| seen = Some(slot.get()));
                if seen.is_none() && bell.fall_asleep(&part) {
                    os::futex_wait(&rung[front], 0, Duration::MAX);
                    rung[front].store(0, Ordering::SeqCst);
                    bell.wake_up();
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
