//! Pins and replaced values under loom: no process reads a freed value.

use super::model::bounded;
use crate::pins::{
    NO_PIN, NO_SPAN, holds, keep, keep_again, pin_again, pin_newest, raise_floor, span, spans,
};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// State shared by the server and the readers, and a cell for each epoch's value.
struct Ground {
    root: AtomicU64,
    floor: AtomicU64,
    pins: [AtomicU64; 2],
    spans: [AtomicU64; 2],
    /// 1: the process of that pin and span lives.
    alive: [AtomicU64; 2],
    /// 1: the value exists; 0: its memory is used for other data.
    values: [AtomicU64; 4],
}

impl Ground {
    fn new() -> Arc<Ground> {
        Arc::new(Ground {
            root: AtomicU64::new(1),
            floor: AtomicU64::new(1),
            pins: [NO_PIN; 2].map(AtomicU64::new),
            spans: [NO_SPAN; 2].map(AtomicU64::new),
            alive: [1; 2].map(AtomicU64::new),
            values: [0, 1, 0, 0].map(AtomicU64::new),
        })
    }

    fn lowest(&self) -> Option<u64> {
        let pins = self.pins.iter().map(|pin| pin.load(Ordering::SeqCst));
        pins.filter(|pin| *pin != NO_PIN).min()
    }

    /// Replaces the last value by the next, and frees the values that no process sees.
    fn replace(&self, epoch: u64) {
        self.values[epoch as usize].store(1, Ordering::SeqCst);
        self.root.store(epoch, Ordering::SeqCst);
        let floor = raise_floor(&self.floor, epoch, || self.lowest());
        assert!(floor <= epoch);
        let kept = self.kept().expect("two processes die twice at most");
        for freed in (1..floor).filter(|one| !kept.iter().any(|span| holds(*span, *one, *one))) {
            self.values[freed as usize].store(0, Ordering::SeqCst);
        }
    }

    /// Same steps as `Shared::spans`.
    fn kept(&self) -> Option<Vec<u64>> {
        spans(|found| {
            let mut dead = Vec::new();
            for process in 0..2 {
                let span = self.spans[process].load(Ordering::SeqCst);
                match (span, self.alive[process].load(Ordering::SeqCst)) {
                    (NO_SPAN, _) => {}
                    (_, 0) => dead.push(process),
                    _ => found.push(span),
                }
            }
            dead
        })
    }

    fn begin(&self, reader: usize) -> u64 {
        let newest = || self.root.load(Ordering::SeqCst);
        pin_newest(&self.pins[reader], &self.floor, newest, |root| root).expect("it ends")
    }

    fn is_there(&self, epoch: u64) -> bool {
        self.values[epoch as usize].load(Ordering::SeqCst) == 1
    }
}

#[test]
fn reader_never_sees_freed_value() {
    bounded(|| {
        let ground = Ground::new();
        let server = {
            let ground = ground.clone();
            thread::spawn(move || {
                ground.replace(2);
                ground.replace(3);
            })
        };
        let seen = ground.begin(0);
        assert!(ground.is_there(seen));
        // Until the end of its request, at every check.
        assert!(ground.is_there(seen));
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        server.join().unwrap();
        assert_eq!(raise_floor(&ground.floor, 3, || ground.lowest()), 3);
    });
}

#[test]
fn readers_keep_only_values_they_see() {
    bounded(|| {
        let ground = Ground::new();
        let first = ground.begin(0);
        let other = {
            let ground = ground.clone();
            thread::spawn(move || {
                let seen = ground.begin(1);
                assert!(ground.is_there(seen));
            })
        };
        ground.replace(2);
        assert!(ground.is_there(first));
        other.join().unwrap();
        // The other reader stopped: its pin stays, and counts for as long as its process lives.
        assert!(ground.is_there(1) && ground.is_there(2));
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        ground.pins[1].store(NO_PIN, Ordering::SeqCst);
        ground.replace(3);
        assert!(!ground.is_there(1) && !ground.is_there(2) && ground.is_there(3));
    });
}

#[test]
fn forked_child_keeps_pin_of_parent_or_detects_loss() {
    bounded(|| {
        let ground = Ground::new();
        let inherited = ground.begin(0);
        let child = {
            let ground = ground.clone();
            thread::spawn(move || {
                if pin_again(&ground.pins[1], &ground.floor, inherited) {
                    assert!(ground.is_there(inherited));
                }
            })
        };
        // Its parent dies in the meantime.
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        ground.replace(2);
        child.join().unwrap();
    });
}

#[test]
fn span_of_boot_keeps_its_values_and_no_later_ones() {
    bounded(|| {
        let ground = Ground::new();
        let boot = {
            let ground = ground.clone();
            thread::spawn(move || {
                let seen = ground.begin(0);
                let newest = ground.root.load(Ordering::SeqCst);
                keep(&ground.pins[0], &ground.spans[0], span(seen, newest));
                assert!(ground.is_there(seen) && ground.is_there(newest));
                (seen, newest)
            })
        };
        ground.replace(2);
        ground.replace(3);
        let (seen, newest) = boot.join().unwrap();
        // No process has begun to read since.
        let freed = raise_floor(&ground.floor, 3, || ground.lowest());
        assert_eq!(freed, 3, "no pin is left");
        assert!(ground.is_there(seen) && ground.is_there(newest));
        assert_eq!(ground.kept(), Some(vec![span(seen, newest)]));
    });
}

#[test]
fn forked_child_keeps_span_of_parent_or_detects_loss() {
    bounded(|| {
        let ground = Ground::new();
        let seen = ground.begin(0);
        keep(&ground.pins[0], &ground.spans[0], span(seen, seen));
        let child = {
            let ground = ground.clone();
            thread::spawn(move || {
                let counts = || ground.alive[0].load(Ordering::SeqCst) == 1;
                let keeps = keep_again(&ground.spans[1], span(seen, seen), counts);
                assert!(!keeps || ground.is_there(seen));
                keeps
            })
        };
        let parent = {
            let ground = ground.clone();
            thread::spawn(move || ground.alive[0].store(0, Ordering::SeqCst))
        };
        ground.replace(2);
        parent.join().unwrap();
        let keeps = child.join().unwrap();
        assert!(!keeps || ground.is_there(seen));
    });
}
