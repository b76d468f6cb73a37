//! Pins and what is replaced under loom: nobody reads what was freed.

use super::bounded;
use crate::pins::{NO_PIN, epoch_of, pin_again, pin_newest, raise_floor};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// What the server and readers share, and a cell for each epoch's value.
struct Ground {
    root: AtomicU64,
    floor: AtomicU64,
    pins: [AtomicU64; 2],
    /// 1: it is there; 0: its memory is another's.
    values: [AtomicU64; 4],
}

impl Ground {
    fn new() -> Arc<Ground> {
        Arc::new(Ground {
            root: AtomicU64::new(1),
            floor: AtomicU64::new(1),
            pins: [AtomicU64::new(NO_PIN), AtomicU64::new(NO_PIN)],
            values: [0, 1, 0, 0].map(AtomicU64::new),
        })
    }

    fn lowest(&self) -> Option<u64> {
        let pins = self.pins.iter().map(|pin| pin.load(Ordering::SeqCst));
        pins.filter(|pin| *pin != NO_PIN).map(epoch_of).min()
    }

    /// The next value takes the place of the last, and what nobody sees is freed.
    fn replace(&self, epoch: u64) {
        self.values[epoch as usize].store(1, Ordering::SeqCst);
        self.root.store(epoch, Ordering::SeqCst);
        let floor = raise_floor(&self.floor, epoch, || self.lowest());
        assert!(floor <= epoch);
        for freed in 1..floor {
            self.values[freed as usize].store(0, Ordering::SeqCst);
        }
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
fn a_reader_never_sees_what_was_freed() {
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
        // To the end of its request, however often it looks.
        assert!(ground.is_there(seen));
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        server.join().unwrap();
        assert_eq!(raise_floor(&ground.floor, 3, || ground.lowest()), 3);
    });
}

#[test]
fn two_readers_hold_up_only_what_they_see() {
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
        // The other was killed: its pin stays, and counts for as long as it lives.
        assert!(ground.is_there(1) && ground.is_there(2));
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        ground.pins[1].store(NO_PIN, Ordering::SeqCst);
        ground.replace(3);
        assert!(!ground.is_there(1) && !ground.is_there(2) && ground.is_there(3));
    });
}

#[test]
fn who_was_forked_has_what_its_parent_read_or_knows_that_it_has_not() {
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
        // Its parent dies meanwhile.
        ground.pins[0].store(NO_PIN, Ordering::SeqCst);
        ground.replace(2);
        child.join().unwrap();
    });
}
