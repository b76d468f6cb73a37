//! Turns under loom: one worker may run, and no request is left waiting beside a free turn.

use super::{LANES, bounded, bounded_by, submit, worker};
use crate::layout::{Control, Lane, Parts, SLOTS_MAX, SlotIndex};
use crate::report::Death;
use crate::sync::{AtomicU32, Ordering};
use crate::turns::TurnWatch;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

/// Of which one worker may run.
fn control() -> Arc<Control> {
    control_of(1, 0)
}

fn control_of(limit: u32, woken_max: u32) -> Arc<Control> {
    let control = Control::new();
    control.turns.0.set_limits(limit, woken_max);
    for (index, cell) in control.workers.iter().enumerate() {
        cell.0.incarnation.store(index as u32 + 1, Ordering::SeqCst);
    }
    Arc::new(control)
}

/// As `WorkerEnd::take`.
fn serve(control: &Control, index: usize) -> SlotIndex {
    loop {
        if control.begin_turn(index)
            && let Some(slot) = control.take(LANES, SLOTS_MAX, worker(index as u32 + 1))
        {
            return slot;
        }
        control.sleep(index, LANES, true);
    }
}

fn server(control: &Arc<Control>, index: usize) -> JoinHandle<SlotIndex> {
    let control = control.clone();
    thread::spawn(move || serve(&control, index))
}

fn submit_and_wake(control: &Control) {
    submit(control, 0, 1, 0);
    control.wake_for(Lane::App);
}

#[test]
fn a_worker_that_waits_lets_another_run() {
    bounded(|| {
        let control = control();
        assert!(control.begin_turn(0));
        let waits = {
            let control = control.clone();
            thread::spawn(move || {
                if control.pause_turn(0) {
                    control.pass_turn(&[]);
                }
            })
        };
        let other = server(&control, 1);
        submit_and_wake(&control);
        assert_eq!(other.join().unwrap().get(), 0);
        waits.join().unwrap();
    });
}

#[test]
fn two_that_want_the_last_turn_do_not_both_give_it_up() {
    bounded(|| {
        let control = control();
        submit(&control, 0, 1, 0);
        submit(&control, 1, 1, 1);
        let servers: Vec<_> = (0..2)
            .map(|index| {
                let control = control.clone();
                thread::spawn(move || {
                    let slot = serve(&control, index);
                    assert!(control.running() <= 2, "the other may just be finding out");
                    let _ = control.finish(index, (slot, 0), worker(index as u32 + 1));
                    // What the next look of a worker that goes on would do.
                    control.end_turn(index);
                    control.pass_turn(&[]);
                    slot.get()
                })
            })
            .collect();
        let taken: usize = servers.into_iter().map(|server| server.join().unwrap()).sum();
        assert_eq!(taken, 1, "both were taken, each once");
        // A turn that was given to one that was up already is with it until it sleeps; here it has gone.
        let mut watch = TurnWatch::default();
        for _ in 0..2 {
            watch.look(&control, |_| true);
        }
        assert_eq!(control.running(), 0);
    });
}

#[test]
fn a_dead_worker_holds_no_turn() {
    bounded(|| {
        let control = control();
        assert!(control.begin_turn(0));
        let other = server(&control, 1);
        submit_and_wake(&control);
        control.repair(0, worker(1), Death::UNKNOWN, Parts::whole(SLOTS_MAX));
        control.wake_all_workers();
        assert_eq!(other.join().unwrap().get(), 0);
    });
}

#[test]
fn a_stopped_worker_loses_its_turn() {
    bounded(|| {
        let control = control();
        assert!(control.begin_turn(0));
        let other = server(&control, 1);
        submit_and_wake(&control);
        // What the other tries is over before the second look: it never runs through two.
        let mut watch = TurnWatch::default();
        while control.running() > 0 && control.turns.0.is_running(0) {
            watch.look(&control, |_| true);
            thread::yield_now();
        }
        assert_eq!(other.join().unwrap().get(), 0);
    });
}

/// As a worker's life, until `all` requests are done.
fn serve_all(control: &Control, index: usize, done: &AtomicU32, all: u32) {
    while !control.is_stopping() {
        if control.begin_turn(index)
            && let Some(slot) = control.take(LANES, SLOTS_MAX, worker(index as u32 + 1))
        {
            control.pass_on(LANES);
            let _ = control.finish(index, (slot, 0), worker(index as u32 + 1));
            if done.fetch_add(1, Ordering::SeqCst) + 1 == all {
                control.stop.0.store(1, Ordering::SeqCst);
                control.wake_all_workers();
            }
            continue;
        }
        control.sleep(index, LANES, true);
    }
}

#[test]
fn who_is_woken_and_who_falls_asleep_agree_on_whose_turn_it_is() {
    two_serve_two(3, 1, 0);
}

#[test]
fn who_was_woken_and_is_not_up_is_not_missed_where_any_number_may_run() {
    // Passed with three preemptions, too, in two minutes.
    two_serve_two(2, 0, 1);
}

/// A turn that stays with somebody who sleeps would be a deadlock here, as would a request that nobody is woken for.
fn two_serve_two(preemptions: usize, limit: u32, woken_max: u32) {
    bounded_by(preemptions, move || {
        let control = control_of(limit, woken_max);
        let done = Arc::new(AtomicU32::new(0));
        let servers: Vec<_> = (0..2)
            .map(|index| {
                let (control, done) = (control.clone(), done.clone());
                thread::spawn(move || serve_all(&control, index, &done, 2))
            })
            .collect();
        submit_and_wake(&control);
        submit(&control, 1, 1, 1);
        control.wake_for(Lane::App);
        servers.into_iter().for_each(|server| server.join().unwrap());
        assert_eq!(done.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn a_worker_that_wakes_by_itself_while_it_is_woken_does_not_sleep_with_its_turn() {
    bounded(|| {
        let control = control();
        control.workers_of(Lane::App).join(0);
        control.workers_of(Lane::App).mark_asleep(0);
        // Its sleep has just reached its limit: it looks, finds nothing or the request, and sleeps.
        let woken = {
            let control = control.clone();
            thread::spawn(move || {
                control.workers_of(Lane::App).mark_awake(0);
                serve(&control, 0)
            })
        };
        submit_and_wake(&control);
        assert_eq!(woken.join().unwrap().get(), 0);
    });
}
