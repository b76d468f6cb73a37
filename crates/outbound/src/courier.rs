//! Delivery queue: one thread queues parcels, another one sends them to a peer that may be away,
//! hang or reject them.
//!
//! The queueing thread holds the [`Desk`] and never blocks on the network. The sending thread takes
//! due parcels out of the [`Outbox`]. The outbox's owner decides which parcels are due and which
//! are dropped at its limit. The sending thread tries each parcel along its [`Road`], with pauses,
//! until there is a result, the time for attempts is over, or the server stops.

use crate::waits::{chance, pause};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Parcels that wait to be sent. Its methods are called under a lock, so they must not block.
pub trait Outbox: Send + 'static {
    /// One unit to send.
    type Parcel;

    /// Returns the next due parcel. When the server stops (`is_ending`), all waiting parcels are
    /// due.
    fn next(&mut self, now: Instant, is_ending: bool) -> Next<Self::Parcel>;
}

/// Result of [`Outbox::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// This parcel is due.
    Now(P),
    /// No parcel is due for this duration, unless one is queued meanwhile; [`Desk::queue`] wakes
    /// the thread.
    In(Duration),
}

/// Limits for the attempts to send one parcel.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Pause after the first failure; doubles with each further one.
    pub back_off: Duration,
    /// Maximum total time; after it the next parcel is tried.
    pub tried_max: Duration,
}

/// Result of one attempt.
#[derive(Debug)]
pub enum Attempt<T> {
    /// Final result: success or failure.
    Over(T),
    /// No result yet. The next attempt is made after a pause, which is at least the duration that
    /// the peer requested.
    Later(Option<Duration>),
}

/// Queue end of the delivery. Dropping it ends the thread, which then sends no more parcels.
#[derive(Debug)]
pub struct Desk<O> {
    room: Arc<Room<O>>,
}

/// Sending end of the delivery, used by the thread.
#[derive(Debug)]
pub struct Road<O> {
    room: Arc<Room<O>>,
    patience: Patience,
}

/// State shared by the two threads.
#[derive(Debug)]
struct Room<O> {
    state: Mutex<State<O>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<O> {
    outbox: O,
    /// Deadline of the server's stop, once it has begun.
    ends: Option<Instant>,
    /// Whether the thread has ended.
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
    /// Starts a thread named `name`, which passes each due parcel to `carry`.
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

    /// Changes the queue. If `change` returns `true` next to its result, the thread checks the
    /// queue at once.
    pub fn queue<T>(&self, change: impl FnOnce(&mut O) -> (T, bool)) -> T {
        let (result, is_news) = change(&mut self.room.lock().outbox);
        if is_news {
            self.room.changed.notify_all();
        }
        result
    }

    /// Sends the waiting parcels when the server stops, for at most `limit`. Parcels left after
    /// that are never sent; `rest` gets the outbox with them.
    pub fn finish<T>(&self, limit: Duration, rest: impl FnOnce(&mut O) -> T) -> T {
        let deadline = Instant::now() + limit;
        self.room.end(deadline);
        let mut state = self.room.lock();
        while !state.is_done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The thread hangs in a request. It ends with the process.
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
    /// Waits for a due parcel. Returns `None` when the server stops and all parcels are sent, or
    /// when the stop's deadline has passed.
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

    /// Repeats the attempt until there is a final result. Returns `None` if that takes longer than
    /// `tried_max`, or if the next pause would end after the stop's deadline.
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

    /// Waits; returns false if the server stops before the pause ends.
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

/// Marks the thread as ended, also after a panic.
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

    /// An outbox of numbers; numbers of 100 and above are due only when the server stops.
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

    /// Returns a desk and the receiver of its results. `5` succeeds at the third attempt, `7`
    /// never.
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
    fn due_parcels_are_sent_and_retried() {
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
    fn failing_parcel_delays_others_at_most_tried_max() {
        let patience = Patience { tried_max: Duration::from_millis(20), ..PATIENCE };
        let (desk, received) = desk(patience);
        put(&desk, 7);
        put(&desk, 1);
        for expected in [(7, None), (1, Some(1))] {
            assert_eq!(received.recv_timeout(LONG).unwrap(), expected);
        }
    }

    #[test]
    fn finish_ends_pause_and_sends_rest() {
        let (desk, received) = desk(Patience { back_off: LONG, ..PATIENCE });
        put(&desk, 7);
        put(&desk, 1);
        // The thread is in a pause, or has not started.
        let left = desk.finish(Duration::from_secs(5), |numbers| numbers.0.len());
        assert_eq!(received.recv_timeout(LONG).unwrap(), (7, None));
        assert_eq!((left, received.recv_timeout(LONG).unwrap()), (0, (1, Some(1))));
    }

    #[test]
    fn dropped_desk_sends_no_more() {
        let (desk, received) = desk(PATIENCE);
        put(&desk, 100);
        drop(desk);
        // The thread ends and drops its end of the channel.
        assert!(received.recv_timeout(LONG).is_err());
    }

    #[test]
    fn finish_does_not_wait_for_panicked_thread() {
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
