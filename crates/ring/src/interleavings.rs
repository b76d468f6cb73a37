//! The protocol under loom: every interleaving of a front (or two, see `fronts`), two workers and a
//! repair.
//!
//! `make model` runs them.

mod fronts;
mod model;
mod run_permits;

use crate::layout::{Control, Lane, Parts};
use crate::limits::SLOTS_MAX;
use crate::os;
use crate::protocol::Held;
use crate::report::{Death, DesiredState};
use crate::sync::Ordering;
use crate::word::State;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;
use model::{LANES, PROBES, bounded, run, slot, submit, submit_to, worker};
use std::time::Duration;

#[test]
fn two_workers_take_each_request_once() {
    bounded(|| {
        let control = Arc::new(Control::new());
        let taken = Arc::new(AtomicU32::new(0));
        submit(&control, 0, 1, 0);
        let workers: Vec<_> = (1..=2)
            .map(|number| {
                let (control, taken) = (control.clone(), taken.clone());
                thread::spawn(move || {
                    while control.take(LANES, SLOTS_MAX, worker(number)).is_some() {
                        taken.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        submit(&control, 1, 1, 1);
        for worker in workers {
            worker.join().unwrap();
        }
        // The second request may be submitted after both workers have looked. Then it must still be
        // there for the next worker.
        let left = control.take(LANES, SLOTS_MAX, worker(3)).is_some();
        assert_eq!(taken.load(Ordering::SeqCst) + u32::from(left), 2);
    });
}

#[test]
fn submitted_request_wakes_sleeping_worker() {
    bounded(|| {
        let control = Arc::new(Control::new());
        let sleeper = {
            let control = control.clone();
            thread::spawn(move || {
                loop {
                    if let Some(slot) = control.take(LANES, SLOTS_MAX, worker(1)) {
                        return slot;
                    }
                    control.sleep(0, LANES, true);
                }
            })
        };
        submit(&control, 0, 1, 0);
        control.wake_worker(Lane::App);
        assert_eq!(sleeper.join().unwrap(), slot(0));
    });
}

#[test]
fn retiring_worker_passes_its_wakeup_on() {
    bounded(|| {
        let control = Arc::new(Control::new());
        let leaver = {
            let control = control.clone();
            thread::spawn(move || {
                loop {
                    if control.desired_state(0) == DesiredState::Retire {
                        control.retire(0);
                        return None;
                    }
                    if let Some(slot) = control.take(LANES, SLOTS_MAX, worker(1)) {
                        return Some(slot);
                    }
                    control.sleep(0, LANES, true);
                }
            })
        };
        // Its successor already sleeps: the leaving worker must wake it.
        control.workers_of(Lane::App).mark_asleep(1);
        control.set_desired_state(0, DesiredState::Retire);
        submit(&control, 0, 1, 0);
        control.wake_worker(Lane::App);
        let by_leaver = leaver.join().unwrap();
        let is_awake = control.workers[1].0.awake.load(Ordering::SeqCst) == 1;
        assert!(by_leaver.is_some() || is_awake, "a request waits and no worker is awake");
    });
}

#[test]
fn held_worker_starts_when_state_becomes_serve() {
    bounded(|| {
        let control = Arc::new(Control::new());
        control.set_desired_state(0, DesiredState::Hold);
        submit(&control, 0, 1, 0);
        let held = {
            let control = control.clone();
            thread::spawn(move || {
                while control.desired_state(0) == DesiredState::Hold {
                    let held = control.hold(0, PROBES, SLOTS_MAX, worker(1));
                    assert!(!matches!(held, Held::Probe(_)), "it is no probe");
                }
                control.take(LANES, SLOTS_MAX, worker(1))
            })
        };
        control.set_desired_state(0, DesiredState::Serve);
        assert_eq!(held.join().unwrap(), Some(slot(0)));
    });
}

#[test]
fn held_worker_wakes_only_for_probe() {
    bounded(|| {
        let control = Arc::new(Control::new());
        control.set_desired_state(0, DesiredState::Hold);
        let held = {
            let control = control.clone();
            thread::spawn(move || {
                loop {
                    if let Held::Probe(slot) = control.hold(0, PROBES, SLOTS_MAX, worker(1)) {
                        return slot;
                    }
                }
            })
        };
        submit(&control, 0, 1, 0);
        control.wake_worker(Lane::App);
        submit_to(Lane::AppProbe, &control, 1, 1, 0);
        control.wake_worker(Lane::AppProbe);
        assert_eq!(held.join().unwrap(), slot(1));
        assert_eq!(control.slots[0].word.0.load().state(), Some(State::Queued));
    });
}

#[test]
fn finished_response_wakes_sleeping_front() {
    bounded(|| {
        let control = Arc::new(Control::new());
        let rung = Arc::new(AtomicU32::new(0));
        submit(&control, 0, 1, 0);
        let taker = {
            let (control, rung) = (control.clone(), rung.clone());
            thread::spawn(move || {
                let slot = control.take(LANES, SLOTS_MAX, worker(1)).expect("it was queued");
                run(&control, slot, worker(1), &rung);
            })
        };
        let mut seen = false;
        while !seen {
            control.notifier(0).take(&(0..SLOTS_MAX), |_| seen = true);
            if !seen && control.notifier(0).fall_asleep(&(0..SLOTS_MAX)) {
                os::futex_wait(&rung, 0, Duration::MAX);
                rung.store(0, Ordering::SeqCst);
                control.notifier(0).wake_up();
            }
        }
        assert_eq!(control.slots[0].word.0.load().state(), Some(State::Responded));
        taker.join().unwrap();
    });
}

#[test]
fn cancel_and_finish_leave_one_owner() {
    bounded(|| {
        let control = Arc::new(Control::new());
        submit(&control, 0, 1, 0);
        let taker = {
            let control = control.clone();
            thread::spawn(move || {
                let Some(slot) = control.take(LANES, SLOTS_MAX, worker(1)) else { return false };
                let _ = control.slot(slot).word.0.begin(worker(1));
                assert!(control.slot(slot).word.0.finish(worker(1)), "only this worker may end it");
                true
            })
        };
        let word = &control.slots[0].word.0;
        let withdrawn = word.withdraw(1);
        if !withdrawn {
            let _ = word.cancel(1);
        }
        assert_eq!(taker.join().unwrap(), !withdrawn);
        let expected = if withdrawn { State::Free } else { State::Responded };
        assert_eq!(word.load().state(), Some(expected));
    });
}

#[test]
fn repair_finds_slot_of_worker_that_died_at_any_step() {
    // The worker dies after `steps` steps. Then the repair runs, as after a `wait`.
    for steps in 0..4 {
        bounded(move || {
            let control = Arc::new(Control::new());
            submit(&control, 0, 1, 0);
            let dying = {
                let control = control.clone();
                thread::spawn(move || {
                    if steps == 0 {
                        control.workers_of(Lane::App).mark_asleep(0);
                        return;
                    }
                    let Some((at, entry)) = control.queue(Lane::App).oldest() else { return };
                    if steps == 1 {
                        // Taken, but the head is not advanced.
                        let _ = control.slots[0].word.0.take(entry.generation(), worker(1));
                        return;
                    }
                    let cells = &control.slots[..];
                    let Some(slot) = control.queue(Lane::App).take(at, entry, cells, worker(1))
                    else {
                        return;
                    };
                    if steps == 3 {
                        let _ = control.slot(slot).word.0.finish(worker(1));
                    }
                })
            };
            let alive = {
                let control = control.clone();
                thread::spawn(move || control.take(LANES, SLOTS_MAX, worker(2)))
            };
            dying.join().unwrap();
            let by_alive = alive.join().unwrap();
            control.repair(0, worker(1), Death::UNKNOWN, Parts::whole(SLOTS_MAX));
            let mut news = false;
            control.notifier(0).take(&(0..SLOTS_MAX), |_| news = true);
            let state = control.slots[0].word.0.load().state();
            match by_alive {
                Some(_) => assert_eq!(state, Some(State::Taken)),
                None if steps == 0 => unreachable!("no other worker took it"),
                None if steps == 3 => assert!(news && state == Some(State::Responded)),
                None => assert!(news && state == Some(State::Orphaned)),
            }
            assert!(control.workers_of(Lane::App).is_up(), "no wake-up is spent on the dead");
        });
    }
}
