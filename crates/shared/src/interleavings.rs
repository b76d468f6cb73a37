//! The chains of rows under loom: every interleaving of writers, readers and a death.
//!
//! `make model` runs them. A process that dies is one that stops after some steps and is then known
//! to be dead.

mod cache;
mod model;
mod published;

use crate::chain::Chains;
use crate::lock::{ActingProcess, Owner};
use crate::named_lock::{self, Acquired, LOCK_WORDS};
use crate::sync::AtomicU64;
use loom::sync::Arc;
use loom::thread;
use model::{AllLive, Dead, ONE, SMALL, TWO, act, add, bounded, count, get, set, words};
use std::time::Duration;

#[test]
fn lock_has_one_holder_and_wakes_waiter() {
    bounded(|| {
        let lock: Arc<Vec<AtomicU64>> =
            Arc::new((0..LOCK_WORDS).map(|_| AtomicU64::new(0)).collect());
        let inside = Arc::new(AtomicU64::new(0));
        let hold = |owner: Owner| {
            let (lock, inside) = (lock.clone(), inside.clone());
            move || {
                let journal = AtomicU64::new(0);
                let me = ActingProcess { owner, living: &AllLive, journal: &journal, object: 0 };
                let got = named_lock::acquire(&lock, me, Duration::from_secs(3600));
                assert_eq!(got, Acquired::Yes);
                assert_eq!(inside.fetch_add(1, crate::sync::Ordering::SeqCst), 0);
                inside.fetch_sub(1, crate::sync::Ordering::SeqCst);
                assert!(named_lock::release(&lock, owner));
            }
        };
        let other = thread::spawn(hold(TWO));
        hold(ONE)();
        other.join().unwrap();
        assert!(!named_lock::release(&lock, ONE));
    });
}

#[test]
fn reader_never_sees_torn_row() {
    bounded(|| {
        let words = words();
        set(&words, ONE, 1, 1).expect("room");
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                set(&words, TWO, 1, 2).expect("it is there");
                set(&words, TWO, 1, 3).expect("it is there");
            })
        };
        assert!(matches!(get(&words, ONE, 1), Some(1..=3)));
        writer.join().unwrap();
        assert_eq!(get(&words, ONE, 1), Some(3));
    });
}

#[test]
fn concurrent_adds_are_both_counted_in_one_row() {
    bounded(|| {
        let words = words();
        let other = {
            let words = words.clone();
            thread::spawn(move || add(&words, TWO, 1))
        };
        add(&words, ONE, 1);
        other.join().unwrap();
        assert_eq!((get(&words, ONE, 1), count(&words)), (Some(2), 1));
    });
}

#[test]
fn reused_row_is_not_read_as_removed_one() {
    bounded(|| {
        let words = words();
        // Both keys are in one bucket.
        set(&words, ONE, 2, 20).expect("room");
        set(&words, ONE, 4, 40).expect("room");
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                act(&words, TWO, &AllLive, |chains, me| chains.delete(me, 4, &[4])).expect("free");
                set(&words, TWO, 6, 60).expect("room");
            })
        };
        assert!(matches!(get(&words, ONE, 4), None | Some(40)));
        assert_eq!(get(&words, ONE, 2), Some(20));
        writer.join().unwrap();
        assert_eq!((get(&words, ONE, 4), get(&words, ONE, 6), count(&words)), (None, Some(60), 2));
    });
}

#[test]
fn row_removed_right_after_insert_is_not_counted() {
    bounded(|| {
        let words = words();
        let writer = {
            let words = words.clone();
            thread::spawn(move || set(&words, TWO, 2, 20).expect("room"))
        };
        let delete = |chains: Chains<'_>, me: ActingProcess<'_>| chains.delete(me, 2, &[2]);
        let deleted = act(&words, ONE, &AllLive, delete).expect("no process is stopped");
        writer.join().unwrap();
        assert_eq!(count(&words), usize::from(!deleted));
        assert_eq!(get(&words, ONE, 2), (!deleted).then_some(20));
        set(&words, ONE, 4, 40).expect("there is room");
        set(&words, ONE, 2, 20).expect("there is room");
    });
}

#[test]
fn settle_and_delete_free_row_only_once() {
    bounded(|| {
        let words = words();
        set(&words, ONE, 2, 20).expect("room");
        // Its process was about to remove it.
        let row = row_of(&words, crate::chain::IN_USE);
        words[row_at(row)].store(TWO, crate::sync::Ordering::SeqCst);
        let settler = {
            let words = words.clone();
            thread::spawn(move || {
                act(&words, ONE + 2, &Dead(TWO), |chains, me| chains.settle(me, row as u32));
            })
        };
        let again = |chains: Chains<'_>, me: ActingProcess<'_>| {
            chains.delete(me, 2, &[2]).expect("no process is stopped");
            let made = chains.update(me, (4, &[4]), &mut [0; 2], |row, _| {
                row.fill(40);
                (true, ())
            });
            made.expect("there is room");
        };
        act(&words, ONE, &Dead(TWO), again);
        settler.join().unwrap();
        assert_eq!((get(&words, ONE, 2), get(&words, ONE, 4), count(&words)), (None, Some(40), 1));
        set(&words, ONE, 6, 60).expect("there is room");
        assert_eq!((get(&words, ONE, 4), get(&words, ONE, 6)), (Some(40), Some(60)));
    });
}

#[test]
fn row_claimed_by_dead_process_becomes_free() {
    bounded(|| {
        let words = words();
        set(&words, ONE, 1, 1).expect("room");
        // The process claimed the other row and the lock of the bucket of 2, and was killed.
        let free = row_of(&words, 0);
        words[row_at(free)].store(TWO, crate::sync::Ordering::SeqCst);
        words[0].store(TWO, crate::sync::Ordering::SeqCst);
        let other = {
            let words = words.clone();
            thread::spawn(move || {
                act(&words, ONE + 2, &Dead(TWO), |chains, me| chains.settle(me, free as u32));
            })
        };
        let made = act(&words, ONE, &Dead(TWO), |chains, me| {
            chains.update(me, (2, &[2]), &mut [0; 2], |row, _| {
                row.fill(2);
                (true, ())
            })
        });
        made.expect("there is room after a wait for the settling process");
        other.join().unwrap();
        assert_eq!((get(&words, ONE, 1), get(&words, ONE, 2)), (Some(1), Some(2)));
        assert_eq!(count(&words), 2);
    });
}

/// Index of a row's first word, which is its owner.
fn row_at(row: usize) -> usize {
    let before = SMALL.words() % 2 + 4;
    before + row * (SMALL.words() - before) / 2
}

fn row_of(words: &[AtomicU64], owner: Owner) -> usize {
    let is_it = |row: &usize| words[row_at(*row)].load(crate::sync::Ordering::SeqCst) == owner;
    (0..2).find(is_it).expect("there is one")
}
