//! Order, delays, keys, lingering and back-off of one queue.

use super::*;
use crate::batch;
use crate::job::Content;
use std::time::Duration;

const BYTES_MAX: usize = 10_000;

fn settings() -> QueueSettings {
    QueueSettings {
        name: "emails".to_owned(),
        workers: 1,
        batch: 10,
        linger: Duration::ZERO,
        attempts: 3,
        backoff: Duration::from_secs(10),
        backoff_max: Duration::from_mins(1),
        dead_letter: true,
        concurrency_per_key: 0,
        rate: None,
        oldest_max: Duration::ZERO,
    }
}

fn job(id: i64) -> JobState {
    JobState {
        id,
        priority: 0,
        key: None,
        unique_until_ms: 0,
        due_ms: 0,
        pushed_ms: 0,
        attempts: 0,
        attempts_max: 0,
        payload_bytes: 10,
    }
}

fn keyed(id: i64, key: &str) -> JobState {
    JobState { key: Some(key.to_owned()), ..job(id) }
}

fn queue(settings: QueueSettings, jobs: impl IntoIterator<Item = JobState>) -> LineUp {
    let mut queue = LineUp::new(settings);
    jobs.into_iter().for_each(|job| queue.add(job, 0));
    queue
}

fn next(queue: &mut LineUp, now_ms: u64) -> Vec<i64> {
    match queue.next(now_ms, BYTES_MAX) {
        Next::Batch(jobs) => jobs.iter().map(|job| job.id).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn higher_priorities_run_first_then_earlier_jobs() {
    let urgent = JobState { priority: 5, ..job(3) };
    let idle = JobState { priority: -1, ..job(1) };
    let mut queue = queue(settings(), [idle, job(2), urgent, job(4)]);
    assert_eq!(next(&mut queue, 0), [3, 2, 4, 1]);
    assert_eq!(queue.depth(), Depth { running: 4, ..Depth::default() });
}

#[test]
fn delayed_job_becomes_ready_at_its_time() {
    let mut queue = queue(settings(), [JobState { due_ms: 500, ..job(1) }]);
    assert_eq!(queue.next(499, BYTES_MAX), Next::At(500));
    assert_eq!(next(&mut queue, 500), [1]);
}

#[test]
fn batch_is_limited_by_jobs_and_bytes() {
    let mut short = queue(QueueSettings { batch: 2, ..settings() }, (1..=3).map(job));
    assert_eq!(next(&mut short, 0), [1, 2]);
    assert_eq!(next(&mut short, 0), [3]);
    let large = |id| JobState { payload_bytes: BYTES_MAX, ..job(id) };
    let mut heavy = queue(settings(), [large(1), large(2)]);
    assert_eq!(next(&mut heavy, 0), [1], "a job that is too large for others runs alone");
    assert_eq!(next(&mut heavy, 0), [2]);
    // The keys are a part of the batch.
    let keyed = |id| JobState { key: Some("\u{1}".repeat(100)), ..job(id) };
    let settings = QueueSettings { batch: 1_000, ..settings() };
    let mut keyed = queue(settings, (1..=1_000).map(keyed));
    let Next::Batch(jobs) = keyed.next(0, BYTES_MAX) else { panic!("no batch") };
    let contents = jobs.into_iter().map(|job| (job, Content::default())).collect::<Vec<_>>();
    let body = batch::encode("emails", &contents);
    assert!(contents.len() > 1 && body.len() <= BYTES_MAX, "{} bytes", body.len());
}

#[test]
fn failed_job_runs_alone() {
    let failed = |id| JobState { attempts: 1, ..job(id) };
    let mut queue = queue(settings(), [failed(1), job(2), failed(3), job(4)]);
    assert_eq!(next(&mut queue, 0), [1]);
    assert_eq!(next(&mut queue, 0), [2, 4]);
    assert_eq!(next(&mut queue, 0), [3]);
}

#[test]
fn incomplete_batch_lingers() {
    let linger = Duration::from_millis(100);
    let slow = QueueSettings { linger, batch: 2, ..settings() };
    let mut queue = queue(slow, [JobState { pushed_ms: 1_000, ..job(1) }]);
    assert_eq!(queue.next(1_050, BYTES_MAX), Next::At(1_100));
    let mut full = queue;
    full.add(job(2), 1_050);
    assert_eq!(next(&mut full, 1_050), [1, 2]);
    full.add(JobState { pushed_ms: 9_000, ..job(3) }, 2_000);
    assert_eq!(next(&mut full, 2_000), [3], "the clock was set back");
}

#[test]
fn jobs_with_one_key_run_one_after_another() {
    let one = QueueSettings { concurrency_per_key: 1, batch: 1, ..settings() };
    let jobs = [keyed(1, "a"), keyed(2, "a"), keyed(3, "b"), keyed(4, "a")];
    let mut queue = queue(one, jobs);
    assert_eq!(next(&mut queue, 0), [1]);
    assert_eq!(next(&mut queue, 0), [3]);
    assert!(next(&mut queue, 0).is_empty(), "both keys are in use");
    assert_eq!(queue.depth().ready, 2);
    queue.put_back(1, 0, 0, 0);
    assert_eq!(next(&mut queue, 0), [1], "a released job keeps its place");
    queue.remove(1);
    assert_eq!(next(&mut queue, 0), [2]);
    queue.remove(2);
    queue.remove(4);
    assert_eq!(queue.len(), 1);
}

#[test]
fn removal_of_next_job_with_key_does_not_stop_the_others() {
    let one = QueueSettings { concurrency_per_key: 1, batch: 1, ..settings() };
    let mut queue = queue(one, (1..=3).map(|id| keyed(id, "a")));
    assert_eq!(next(&mut queue, 0), [1]);
    assert!(next(&mut queue, 0).is_empty());
    queue.remove(1);
    queue.remove(2);
    assert_eq!(next(&mut queue, 0), [3]);
}

#[test]
fn unique_key_is_free_after_its_job_or_its_time() {
    let unique = JobState { unique_until_ms: 1_000, ..keyed(1, "a") };
    let mut queue = queue(settings(), [unique]);
    assert_eq!(queue.unique("a", 999), Some(1));
    assert_eq!(queue.unique("a", 1_000), None);
    assert_eq!(queue.unique("b", 0), None);
    queue.remove(1);
    assert_eq!(queue.unique("a", 0), None);
}

#[test]
fn paused_queue_starts_nothing() {
    let mut queue = queue(settings(), [job(1)]);
    queue.is_paused = true;
    assert_eq!(queue.next(0, BYTES_MAX), Next::Nothing);
    queue.is_paused = false;
    assert_eq!(next(&mut queue, 0), [1]);
}

#[test]
fn backoff_doubles_up_to_its_maximum() {
    let queue = queue(settings(), []);
    for (attempts, least, most) in [
        (1, 5_000, 10_000),
        (2, 10_000, 20_000),
        (3, 20_000, 40_000),
        (4, 30_000, 60_000),
        (200, 30_000, 60_000),
    ] {
        assert_eq!(queue.settings.backoff_ms(attempts, |_| 0), least);
        assert_eq!(queue.settings.backoff_ms(attempts, |to| to - 1), most);
    }
}

#[test]
fn depth_counts_bytes_and_oldest() {
    let mut queue =
        queue(settings(), [JobState { pushed_ms: 7, ..job(1) }, JobState { due_ms: 50, ..job(2) }]);
    let depth = queue.depth();
    assert_eq!((depth.ready, depth.delayed, depth.oldest_ms), (1, 1, Some(7)));
    assert_eq!(queue.bytes(), 2 * job(1).bytes());
    queue.remove(1);
    queue.remove(2);
    assert_eq!((queue.bytes(), queue.len()), (0, 0));
}

#[test]
fn retried_job_runs_before_later_ones_with_its_key() {
    let one = QueueSettings { concurrency_per_key: 1, batch: 1, ..settings() };
    let urgent = JobState { priority: 9, ..keyed(4, "a") };
    let mut queue = queue(one, [keyed(1, "a"), keyed(2, "a"), keyed(3, "b")]);
    assert_eq!(next(&mut queue, 0), [1]);
    queue.put_back(1, 1, 500, 0);
    queue.add(urgent, 0);
    assert_eq!(next(&mut queue, 0), [3], "another key is not blocked");
    assert_eq!(queue.next(499, BYTES_MAX), Next::At(500));
    assert_eq!(queue.depth().ready, 2, "the later ones wait");
    assert_eq!(next(&mut queue, 500), [1]);
    queue.remove(1);
    assert_eq!(next(&mut queue, 500), [4]);
    queue.remove(4);
    assert_eq!(next(&mut queue, 500), [2]);
}

#[test]
fn removed_job_gives_its_turn_away() {
    let one = QueueSettings { concurrency_per_key: 1, batch: 1, ..settings() };
    let mut queue = queue(one, [keyed(1, "a"), keyed(2, "a")]);
    assert_eq!(next(&mut queue, 0), [1]);
    queue.put_back(1, 1, 500, 0);
    assert!(next(&mut queue, 0).is_empty());
    queue.remove(1);
    assert_eq!(next(&mut queue, 0), [2]);
}

#[test]
fn age_counts_from_when_a_job_is_ready() {
    let mut delayed = queue(settings(), [JobState { pushed_ms: 5, due_ms: 900, ..job(1) }]);
    assert_eq!(delayed.next(899, BYTES_MAX), Next::At(900));
    delayed.wake(900);
    assert_eq!(delayed.depth().oldest_ms, Some(900));
    // A job of a lower priority after more jobs than the search looks at.
    let many = (2..3_000).map(|id| JobState { pushed_ms: 800, priority: 1, ..job(id) });
    let old = JobState { pushed_ms: 7, ..job(1) };
    assert_eq!(queue(settings(), many.chain([old])).depth().oldest_ms, Some(7));
    let one = QueueSettings { concurrency_per_key: 1, batch: 1, ..settings() };
    let mut parked = queue(one, [keyed(1, "a"), JobState { pushed_ms: 3, ..keyed(2, "a") }]);
    assert_eq!(next(&mut parked, 0), [1]);
    assert!(next(&mut parked, 0).is_empty());
    assert_eq!(parked.depth().oldest_ms, Some(3), "it is ready, and waits for its key");
}
