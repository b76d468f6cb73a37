//! A cache's store under loom: a reader gets a complete value or none, and a dead process blocks no
//! other.
//!
//! Two segments with room for two values each, so every third value makes room.

use super::model::{AllLive, Dead, ONE, TWO, bounded};
use crate::cache::store::{Found, Room, Store, Stored, Times};
use crate::lock::{ActingProcess, Living, Owner};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const ROOM: Room = Room::of_model();
/// No value expires.
const NOW: u64 = 1;

fn words() -> Arc<Vec<AtomicU64>> {
    Arc::new((0..ROOM.words()).map(|_| AtomicU64::new(0)).collect())
}

fn act<R>(owner: Owner, living: &dyn Living, f: impl FnOnce(ActingProcess<'_>) -> R) -> R {
    let journal = AtomicU64::new(0);
    f(ActingProcess { owner, living, journal: &journal, object: 0 })
}

/// Hash bits that distinguish two keys in their slots.
fn hash(key: u8) -> u64 {
    u64::from(key) << 48
}

/// Stores a value whose bytes, kind and times all derive from `value`.
fn set(words: &[AtomicU64], owner: Owner, living: &dyn Living, key: u8, value: u8) {
    let store = Store::new(words, ROOM);
    let stored = act(owner, living, |me| {
        store.change(me, (hash(key), &[key]), (NOW, &mut Vec::new()), |_, buffer| {
            *buffer = vec![value; 7];
            let until = 1000 + u64::from(value);
            (Some((value, Times { fresh_until: until, stale_until: until })), ())
        })
    });
    let (stored, _, ()) = stored.expect("no process is stopped");
    assert_eq!(stored, Stored::Yes);
}

/// The value of a key. It must not be torn.
fn get(words: &[AtomicU64], key: u8) -> Option<u8> {
    let mut value = Vec::new();
    let found: Option<Found> = Store::new(words, ROOM).read(hash(key), &[key], true, &mut value);
    found.map(|found| {
        assert_eq!(value, vec![found.kind; 7], "a torn value");
        assert_eq!(found.times.fresh_until, 1000 + u64::from(found.kind), "of another value");
        found.kind
    })
}

#[test]
fn reader_never_sees_torn_value_during_eviction() {
    bounded(|| {
        let words = words();
        for value in 1..=3 {
            set(&words, ONE, &AllLive, 1, value);
        }
        let writer = {
            let words = words.clone();
            thread::spawn(move || {
                // The second call ends the first segment's generation and overwrites it.
                set(&words, TWO, &AllLive, 2, 20);
                set(&words, TWO, &AllLive, 2, 21);
            })
        };
        assert!(matches!(get(&words, 1), None | Some(3)));
        writer.join().unwrap();
        assert_eq!(get(&words, 2), Some(21));
    });
}

#[test]
fn moved_value_is_found_complete_or_not_at_all() {
    bounded(|| {
        let words = words();
        set(&words, ONE, &AllLive, 1, 1);
        for value in 2..=4 {
            set(&words, ONE, &AllLive, 2, value);
        }
        // It was read, so it stays when its segment is emptied.
        assert_eq!(get(&words, 1), Some(1));
        let writer = {
            let words = words.clone();
            thread::spawn(move || set(&words, TWO, &AllLive, 2, 5))
        };
        assert!(matches!(get(&words, 1), None | Some(1)));
        writer.join().unwrap();
        assert_eq!((get(&words, 1), get(&words, 2)), (Some(1), Some(5)));
    });
}

#[test]
fn concurrent_writers_both_succeed() {
    bounded(|| {
        let words = words();
        let other = {
            let words = words.clone();
            thread::spawn(move || set(&words, TWO, &AllLive, 2, 20))
        };
        set(&words, ONE, &AllLive, 1, 10);
        other.join().unwrap();
        assert_eq!((get(&words, 1), get(&words, 2)), (Some(10), Some(20)));
    });
}

#[test]
fn dead_writer_does_not_block_others() {
    bounded(|| {
        let words = words();
        set(&words, ONE, &AllLive, 1, 1);
        // It held both locks and had begun to write after the last value.
        let (set_lock, segments_lock) = Store::new(&words, ROOM).locks_of_model();
        set_lock.store(TWO, Ordering::SeqCst);
        segments_lock.store(TWO, Ordering::SeqCst);
        let reader = {
            let words = words.clone();
            thread::spawn(move || assert!(matches!(get(&words, 1), Some(1 | 2))))
        };
        set(&words, ONE, &Dead(TWO), 1, 2);
        reader.join().unwrap();
        assert_eq!(get(&words, 1), Some(2));
    });
}
