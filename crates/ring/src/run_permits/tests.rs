//! Wake-ups and run permits: the actions of the front and the workers, one step after the other.

use crate::layout::Lane;
use crate::limits::SlotIndex;
use crate::map::Ring;
use crate::report::WorkerState;
use crate::usage::Usage;
use crate::{FrontEnd, Incarnation, Take, WorkerEnd};
use std::time::Duration;

const LANES: &[Lane] = &[Lane::App];

/// A front and sleeping workers, of which `limit` may run.
struct Scene {
    ring: Ring,
    front: FrontEnd,
    workers: Vec<WorkerEnd>,
}

impl Scene {
    fn new(workers: usize, limit: usize) -> Scene {
        Scene::of(workers, limit, 0)
    }

    fn of(workers: usize, limit: usize, woken_max: usize) -> Scene {
        let ring = Ring::create(8).expect("memory");
        ring.control().set_permits(limit, woken_max, workers);
        let join = |index: usize| {
            let life = Incarnation::new(index as u32 + 1).expect("a life");
            let mut worker = WorkerEnd::new(ring.clone(), index, life);
            worker.join(LANES);
            worker.report_state(WorkerState::Idle);
            let set = ring.control().workers_of(Lane::App);
            set.note_run(index);
            set.mark_asleep(index);
            worker
        };
        let workers = (0..workers).map(join).collect();
        Scene { front: FrontEnd::new(ring.clone()), ring, workers }
    }

    /// As the front does in one iteration of its loop.
    fn ask(&mut self) {
        let filling = self.front.fill().expect("a free slot");
        self.front.submit(filling, Lane::App, Duration::ZERO).expect("room in the queue");
        self.front.ring_workers();
    }

    fn sleepers(&self) -> usize {
        let set = self.ring.control().workers_of(Lane::App);
        let sleepers = std::iter::from_fn(|| set.claim(1)).collect::<Vec<_>>();
        for index in sleepers.iter().rev() {
            set.mark_asleep(*index);
        }
        sleepers.len()
    }

    fn take(&mut self, worker: usize) -> SlotIndex {
        match self.workers[worker].take(LANES, || true) {
            Take::Request(slot, _) => slot,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn slow_wakeups_do_not_exceed_run_limit() {
    let mut scene = Scene::new(8, 2);
    for woken in [1, 2, 2, 2, 2] {
        scene.ask();
        assert_eq!(8 - scene.sleepers(), woken);
    }
    assert_eq!(scene.ring.control().running(), 2, "their turns are theirs before they are up");
}

#[test]
fn worker_keeps_permit_until_it_finds_no_request() {
    let mut scene = Scene::new(8, 1);
    scene.ask();
    scene.ask();
    // The worker that fell asleep last was woken for it.
    for served in 1..=2 {
        let slot = scene.take(7);
        scene.workers[7].finish(slot, &Usage::default());
        assert_eq!((scene.ring.control().running(), scene.sleepers()), (1, 7), "after {served}");
    }
    // It would take this one: no other worker is woken for it.
    scene.ask();
    assert_eq!(scene.sleepers(), 7);
    scene.take(7);
}

#[test]
fn worker_that_does_not_come_up_loses_permit_to_overdue_request() {
    let mut scene = Scene::new(8, 1);
    scene.ask();
    assert_eq!(scene.sleepers(), 7);
    scene.front.ring_overdue(Duration::MAX);
    assert_eq!(scene.sleepers(), 7, "nothing is overdue");
    scene.front.ring_overdue(Duration::ZERO);
    assert_eq!(scene.sleepers(), 6);
    // The first worker to come up begins; the other sleeps again.
    scene.take(6);
    assert!(!scene.ring.control().acquire_permit(7));
}

#[test]
fn long_request_keeps_permit_despite_overdue_request() {
    let mut scene = Scene::new(8, 1);
    scene.ask();
    scene.take(7);
    scene.ask();
    scene.front.ring_overdue(Duration::ZERO);
    assert_eq!(scene.sleepers(), 7, "the supervisor's second look says how long is too long");
}

#[test]
fn resumed_request_precedes_new_request() {
    let mut scene = Scene::new(8, 1);
    scene.ask();
    let slot = scene.take(7);
    let turn = scene.workers[7].turn();
    assert!(!turn.pause(), "no request waits");
    scene.ask();
    let other = scene.take(6);
    turn.resume();
    assert_eq!(scene.ring.control().running(), 2);
    scene.ask();
    scene.workers[6].finish(other, &Usage::default());
    assert!(!scene.ring.control().acquire_permit(6), "one too many runs");
    scene.workers[7].finish(slot, &Usage::default());
    scene.take(7);
}

#[test]
fn probe_needs_no_permit() {
    let mut scene = Scene::new(8, 1);
    scene.ask();
    scene.ring.control().workers_of(Lane::AppProbe).mark_asleep(3);
    let filling = scene.front.fill().expect("a free slot");
    scene.front.submit(filling, Lane::AppProbe, Duration::ZERO).expect("room in the queue");
    scene.front.ring_workers();
    let probed = scene.ring.control().workers_of(Lane::AppProbe);
    assert!(!probed.has_sleeper(1) && probed.claim(1).is_none());
    assert_eq!(scene.ring.control().running(), 1);
}

#[test]
fn run_limit_holds_for_workers_of_many_words() {
    let scene = Scene::new(200, 3);
    let control = scene.ring.control();
    let begun: Vec<usize> =
        (0..200).step_by(20).filter(|index| control.acquire_permit(*index)).collect();
    assert_eq!(begun, [0, 20, 40]);
    control.release_permit(20);
    assert!(control.acquire_permit(199) && !control.acquire_permit(198));
}

#[test]
fn without_limit_few_wakeups_are_pending_at_once() {
    let mut scene = Scene::of(8, 0, 1);
    for _ in 0..3 {
        scene.ask();
    }
    assert_eq!(scene.sleepers(), 7, "the first is not up");
    // It is up, and requests wait: the next worker is woken.
    scene.take(7);
    assert_eq!(scene.sleepers(), 6);
    scene.take(6);
    assert_eq!(scene.sleepers(), 5);
    assert_eq!(scene.ring.control().running(), 0, "nobody's turn is counted");
    // A worker that does not come up delays no request for long.
    scene.ask();
    scene.front.ring_overdue(Duration::ZERO);
    assert_eq!(scene.sleepers(), 4);
}

#[test]
fn removed_limit_leaves_no_pending_wakeup() {
    let mut scene = Scene::new(8, 2);
    scene.ask();
    let slot = scene.take(7);
    scene.ring.control().set_permits(0, 1, 8);
    scene.ask();
    assert_eq!(scene.sleepers(), 6, "it runs, and is up");
    scene.workers[7].finish(slot, &Usage::default());
}

#[test]
fn withheld_wakeup_is_retried_when_pending_workers_are_up() {
    let mut scene = Scene::of(8, 0, 1);
    // So short that a worker that takes one wakes no other for the next.
    scene.ring.control().pace.0.record(1);
    scene.ask();
    scene.ask();
    assert!(scene.front.ring_withheld(), "the first is not up: look again");
    assert_eq!(scene.sleepers(), 7);
    // It takes a request that is not short at all.
    scene.take(7);
    assert_eq!(scene.sleepers(), 7);
    assert!(!scene.front.ring_withheld(), "nobody stands in the way any more");
    assert_eq!(scene.sleepers(), 6);
    // With a limit, a worker that returns a permit checks the queue itself.
    scene.ring.control().set_permits(1, 0, 8);
    assert!(!scene.front.ring_withheld());
}
