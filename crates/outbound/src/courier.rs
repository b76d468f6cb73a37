//! What one thread queues and another sends, to somebody who may be away, hang or refuse.
//!
//! Whoever queues holds the [`Desk`] and waits for nobody. The thread behind it takes what is due out of the [`Outbox`],
//! whose owner says what that is and what its limit drops, and tries it along its [`Road`]: with pauses, until it has come to
//! something, was tried for too long, or the server ends.

use crate::waits::{chance, pause};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What waits to be sent. It is locked while it is asked: it must not block.
pub trait Outbox: Send + 'static {
    /// What is sent at a time.
    type Parcel;

    /// The next that is due. When the server ends (`is_ending`) all that waits is.
    fn next(&mut self, now: Instant, is_ending: bool) -> Next<Self::Parcel>;
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// This.
    Now(P),
    /// Nothing before that time has passed, unless something is queued ([`Desk::queue`] says so).
    In(Duration),
}

/// How long a parcel is tried, and with which pauses.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The pause after the first failure; doubles with each.
    pub back_off: Duration,
    /// Then others have their turn.
    pub tried_max: Duration,
}

/// What an attempt has come to.
#[derive(Debug)]
pub enum Attempt<T> {
    /// Its end, a good one or not.
    Over(T),
    /// Nothing yet. The next is made after a pause, not before the time that was asked for.
    Later(Option<Duration>),
}

/// Where parcels are queued; the end of it is the end of its thread, which sends no more.
#[derive(Debug)]
pub struct Desk<O> {
    room: Arc<Room<O>>,
}

/// The way of parcels to where they go, as the thread behind the desk sees it.
#[derive(Debug)]
pub struct Road<O> {
    room: Arc<Room<O>>,
    patience: Patience,
}

/// Between the two threads.
#[derive(Debug)]
struct Room<O> {
    state: Mutex<State<O>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<O> {
    outbox: O,
    /// The server ends, and waits until then.
    ends: Option<Instant>,
    /// The thread has ended.
    is_done: bool,
}

impl<O> Room<O> {
    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State<O>>,
        limit: Duration,
    ) -> MutexGuard<'a, State<O>> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn end(&self, deadline: Instant) {
        self.lock().ends.get_or_insert(deadline);
        self.changed.notify_all();
    }
}

impl<O: Outbox> Desk<O> {
    /// Starts a thread of that name, which hands each parcel that is due to `carry`.
    pub fn open(
        name: &str,
        outbox: O,
        patience: Patience,
        mut carry: impl FnMut(O::Parcel, &Road<O>) + Send + 'static,
    ) -> io::Result<Desk<O>> {
        let state = Mutex::new(State { outbox, ends: None, is_done: false });
        let room = Arc::new(Room { state, changed: Condvar::new() });
        let road = Road { room: Arc::clone(&room), patience };
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _done = Done(&road.room);
            while let Some(parcel) = road.next() {
                carry(parcel, &road);
            }
        })?;
        Ok(Desk { room })
    }

    /// Changes what waits; with `true` beside its result the thread looks at it at once.
    pub fn queue<T>(&self, change: impl FnOnce(&mut O) -> (T, bool)) -> T {
        let (result, is_news) = change(&mut self.room.lock().outbox);
        if is_news {
            self.room.changed.notify_all();
        }
        result
    }

    /// The end of the server: what waits is sent within `limit` or never, and never is what `rest` finds.
    pub fn finish<T>(&self, limit: Duration, rest: impl FnOnce(&mut O) -> T) -> T {
        let deadline = Instant::now() + limit;
        self.room.end(deadline);
        let mut state = self.room.lock();
        while !state.is_done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The thread is in a request that hangs: it ends with the process.
                break;
            }
            state = self.room.wait(state, left);
        }
        rest(&mut state.outbox)
    }
}

impl<O> Drop for Desk<O> {
    fn drop(&mut self) {
        self.room.end(Instant::now());
    }
}

impl<O: Outbox> Road<O> {
    /// Waits until there is something to send; nothing when the server ends and all is sent, or its time is over.
    fn next(&self) -> Option<O::Parcel> {
        let mut state = self.room.lock();
        loop {
            let now = Instant::now();
            if state.ends.is_some_and(|deadline| now >= deadline) {
                return None;
            }
            let is_ending = state.ends.is_some();
            match state.outbox.next(now, is_ending) {
                Next::Now(parcel) => return Some(parcel),
                Next::In(_) if is_ending => return None,
                Next::In(limit) => state = self.room.wait(state, limit),
            }
        }
    }

    /// Attempts until it is over; nothing if that would take too long, or longer than the server lasts.
    pub fn try_until_over<T>(&self, mut attempt: impl FnMut() -> Attempt<T>) -> Option<T> {
        let begun = Instant::now();
        for failures in 0.. {
            let asked = match attempt() {
                Attempt::Over(end) => return Some(end),
                Attempt::Later(asked) => asked,
            };
            let pause = pause(self.patience.back_off, failures, asked, chance());
            if begun.elapsed() + pause > self.patience.tried_max || !self.rest(pause) {
                break;
            }
        }
        None
    }

    /// Waits; false when the server ends before that.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.room.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.ends.is_some_and(|deadline| deadline < until) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            state = self.room.wait(state, left);
        }
    }
}

/// Says that the thread has ended, even if by a panic.
struct Done<'a, O>(&'a Room<O>);

impl<O> Drop for Done<'_, O> {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Attempt, Desk, Next, Outbox, Patience};
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_mins(1);
    const PATIENCE: Patience = Patience { back_off: Duration::from_millis(1), tried_max: LONG };

    /// Numbers; those of 100 and above are due when the server ends.
    #[derive(Default)]
    struct Numbers(Vec<u32>);

    impl Outbox for Numbers {
        type Parcel = u32;

        fn next(&mut self, _: Instant, is_ending: bool) -> Next<u32> {
            let due = self.0.iter().position(|number| is_ending || *number < 100);
            due.map_or(Next::In(LONG), |at| Next::Now(self.0.remove(at)))
        }
    }

    fn put(desk: &Desk<Numbers>, number: u32) {
        desk.queue(|numbers| (numbers.0.push(number), true));
    }

    /// A desk whose parcels come out here; `5` is taken at its third attempt, `7` never.
    fn desk(patience: Patience) -> (Desk<Numbers>, Receiver<(u32, Option<u32>)>) {
        let (sent, received): (Sender<(u32, Option<u32>)>, _) = mpsc::channel();
        let desk = Desk::open("test", Numbers::default(), patience, move |number, road| {
            let mut attempts = 0;
            let end = road.try_until_over(|| {
                attempts += 1;
                let is_taken = number != 7 && (number != 5 || attempts == 3);
                if is_taken { Attempt::Over(attempts) } else { Attempt::Later(None) }
            });
            sent.send((number, end)).unwrap();
        });
        (desk.unwrap(), received)
    }

    #[test]
    fn what_is_due_is_sent_and_tried_again() {
        let (desk, received) = desk(PATIENCE);
        for number in [1, 100, 5, 2] {
            put(&desk, number);
        }
        for expected in [(1, Some(1)), (5, Some(3)), (2, Some(1))] {
            assert_eq!(received.recv_timeout(LONG).unwrap(), expected);
        }
        let left = desk.finish(LONG, |numbers| numbers.0.len());
        assert_eq!((left, received.recv_timeout(LONG).unwrap()), (0, (100, Some(1))));
    }

    #[test]
    fn who_never_takes_anything_holds_up_the_others_for_a_time_only() {
        let patience = Patience { tried_max: Duration::from_millis(20), ..PATIENCE };
        let (desk, received) = desk(patience);
        put(&desk, 7);
        put(&desk, 1);
        for expected in [(7, None), (1, Some(1))] {
            assert_eq!(received.recv_timeout(LONG).unwrap(), expected);
        }
    }

    #[test]
    fn the_end_of_the_server_ends_pauses() {
        let (desk, received) = desk(Patience { back_off: LONG, ..PATIENCE });
        put(&desk, 7);
        put(&desk, 1);
        // It pauses, or has not begun.
        let left = desk.finish(Duration::from_secs(5), |numbers| numbers.0.len());
        assert_eq!(received.recv_timeout(LONG).unwrap(), (7, None));
        assert_eq!((left, received.recv_timeout(LONG).unwrap()), (0, (1, Some(1))));
    }

    #[test]
    fn a_desk_that_is_gone_sends_no_more() {
        let (desk, received) = desk(PATIENCE);
        put(&desk, 100);
        drop(desk);
        // The thread ends, and its end of the channel with it.
        assert!(received.recv_timeout(LONG).is_err());
    }

    #[test]
    fn a_thread_that_panicked_is_not_waited_for() {
        let desk = Desk::open("test", Numbers::default(), PATIENCE, |number, _| {
            assert_ne!(number, 1, "as the test wants it");
        });
        let desk = desk.unwrap();
        put(&desk, 1);
        put(&desk, 2);
        let left = desk.finish(LONG, |numbers| std::mem::take(&mut numbers.0));
        assert!(left.is_empty() || left == [2], "{left:?}");
    }
}
