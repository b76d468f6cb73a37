//! Run permits under loom: one worker may run, and no request waits while a permit is free.

use super::model::{LANES, bounded, bounded_by, submit, worker};
use crate::layout::{Control, Lane, Parts};
use crate::limits::{SLOTS_MAX, SlotIndex};
use crate::report::Death;
use crate::run_permits::PermitWatch;
use crate::sync::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

/// A control block in which one worker may run.
fn control() -> Arc<Control> {
    control_of(1, 0)
}

fn control_of(limit: u32, woken_max: u32) -> Arc<Control> {
    let control = Control::new();
    control.permits.0.set_limits(limit, woken_max);
    for (index, cell) in control.workers.iter().enumerate() {
        cell.0.incarnation.store(index as u32 + 1, Ordering::SeqCst);
    }
    Arc::new(control)
}

/// Same steps as `WorkerEnd::take`.
fn serve(control: &Control, index: usize) -> SlotIndex {
    loop {
        if control.acquire_permit(index)
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
fn waiting_worker_lets_another_run() {
    bounded(|| {
        let control = control();
        assert!(control.acquire_permit(0));
        let waits = {
            let control = control.clone();
            thread::spawn(move || {
                if control.pause_permit(0) {
                    control.yield_permit(&[]);
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
fn one_of_two_workers_gets_last_permit() {
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
                    // As the next check of a worker that continues would do.
                    control.release_permit(index);
                    control.yield_permit(&[]);
                    slot.get()
                })
            })
            .collect();
        let taken: usize = servers.into_iter().map(|server| server.join().unwrap()).sum();
        assert_eq!(taken, 1, "both were taken, each once");
        // A permit given to a worker that was already up stays with it until it sleeps. Here that
        // worker has exited.
        let mut watch = PermitWatch::default();
        for _ in 0..2 {
            watch.look(&control, |_| true);
        }
        assert_eq!(control.running(), 0);
    });
}

#[test]
fn dead_worker_holds_no_permit() {
    bounded(|| {
        let control = control();
        assert!(control.acquire_permit(0));
        let other = server(&control, 1);
        submit_and_wake(&control);
        control.repair(0, worker(1), Death::UNKNOWN, Parts::whole(SLOTS_MAX));
        control.wake_all_workers();
        assert_eq!(other.join().unwrap().get(), 0);
    });
}

#[test]
fn stopped_worker_loses_its_permit() {
    bounded(|| {
        let control = control();
        assert!(control.acquire_permit(0));
        let other = server(&control, 1);
        submit_and_wake(&control);
        // The attempt of the other worker ends before the second look: it never spans two looks.
        let mut watch = PermitWatch::default();
        while control.running() > 0 && control.permits.0.is_running(0) {
            watch.look(&control, |_| true);
            thread::yield_now();
        }
        assert_eq!(other.join().unwrap().get(), 0);
    });
}

/// Same steps as a worker's life, until `all` requests are done.
fn serve_all(control: &Control, index: usize, done: &AtomicU32, all: u32) {
    while !control.is_stopping() {
        if control.acquire_permit(index)
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
fn wakeup_and_sleep_agree_on_permit_owner() {
    two_serve_two(3, 1, 0);
}

#[test]
fn pending_wakeup_counts_as_running() {
    // Also passed with three preemptions, in two minutes.
    two_serve_two(2, 0, 1);
}

/// A permit that stays with a sleeping worker would be a deadlock here. So would a request for
/// which no worker is woken.
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
fn worker_waking_on_timeout_does_not_sleep_with_permit() {
    bounded(|| {
        let control = control();
        control.workers_of(Lane::App).join(0);
        control.workers_of(Lane::App).mark_asleep(0);
        // Its sleep has just timed out: it checks, finds the request or nothing, and sleeps again.
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
