//! Minutes that are over → Pyroscope, by its push API, on a thread of its own.
//!
//! The thread that keeps minutes makes bodies of one (`push/bodies.rs`) and queues them, within a limit: the oldest make room.
//! This one sends, and waits as the answers say. A Pyroscope that is away, hangs or refuses costs profiles, which are counted,
//! and nothing else.

mod bodies;
mod verdict;

use crate::profiles::Trouble;
use crate::running::Minute;
use samovar_insight::export::post::{Address, Post, Unusable};
use samovar_insight::export::waits::{chance, pause};
use samovar_insight::{Fate, Tally};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use verdict::{Verdict, judge};

/// Where profiles are taken: <https://grafana.com/docs/pyroscope/latest/reference-server-api/>.
const PATH: &str = "/push.v1.PusherService/Push";
/// How long a body is tried; then others have their turn.
const TRIED_MAX: Duration = Duration::from_mins(5);
/// Older ones are not sent: Pyroscope takes nothing that is older than an hour.
const AGE_MAX: Duration = Duration::from_mins(50);
/// How long the end of the server waits for what is queued; the thread that keeps minutes is waited for a little longer.
const FINISH_LIMIT: Duration = Duration::from_millis(1_500);

/// Where profiles go, and how.
pub struct PushOptions {
    /// `http://127.0.0.1:4040`.
    pub endpoint: String,
    /// Sent with each request: `authorization`, `x-scope-orgid`.
    pub headers: Vec<(String, String)>,
    /// Of each profile, beside those that say whose it is.
    pub labels: Vec<(String, String)>,
    /// The site: the label `service_name`.
    pub service: String,
    /// The machine: the label `hostname`, unless `labels` has one.
    pub host: String,
    /// How long each step of a request may take: connect, send, wait for the answer.
    pub timeout: Duration,
    /// Bytes of bodies that wait at most.
    pub bytes_max: usize,
    /// The pause after the first failure; doubles with each.
    pub back_off: Duration,
    /// Servers do not all send when the minute is over: each waits for a part of this, another each time.
    pub spread: Duration,
    /// A file with certificates to trust; those of the machine if `None`.
    pub roots: Option<PathBuf>,
    /// Whom to tell what goes wrong: once, and once when it goes well again.
    pub trouble: Trouble,
}

/// A body on its way.
#[derive(Debug)]
struct Parcel {
    body: Vec<u8>,
    profiles: u64,
    queued: Instant,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Parcel>,
    bytes: usize,
    bytes_max: usize,
    /// Nothing is sent before that.
    not_before: Instant,
    /// The server ends, and waits until then.
    ends: Option<Instant>,
    /// The thread has ended.
    is_done: bool,
}

impl State {
    /// Adds a body; how many profiles had to go for it.
    fn put(&mut self, parcel: Parcel) -> u64 {
        self.bytes += parcel.body.len();
        self.queue.push_back(parcel);
        let mut dropped = 0;
        while self.bytes > self.bytes_max {
            dropped += self.pop().map_or(0, |parcel| parcel.profiles);
        }
        dropped
    }

    fn pop(&mut self) -> Option<Parcel> {
        let parcel = self.queue.pop_front()?;
        self.bytes -= parcel.body.len();
        Some(parcel)
    }
}

/// Between the two threads.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Takes minutes in; another thread sends them.
#[derive(Debug)]
pub struct Pusher {
    shared: Arc<Shared>,
    labels: Vec<(String, String)>,
    spread: Duration,
    tally: Arc<Tally>,
}

impl Pusher {
    /// Whether anything could be sent with these; sends nothing.
    pub fn check(options: &PushOptions) -> Result<(), Unusable> {
        post(options).map(|_| ())
    }

    /// Checks the options and starts the thread.
    pub fn start(options: PushOptions) -> Result<Pusher, Unusable> {
        let post = post(&options)?;
        let state = State {
            queue: VecDeque::new(),
            bytes: 0,
            bytes_max: options.bytes_max,
            not_before: Instant::now(),
            ends: None,
            is_done: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let tally = Tally::new("pyroscope_profiles");
        let labels = bodies::labels(&options.service, &options.host, &options.labels);
        let mut courier = Courier {
            shared: Arc::clone(&shared),
            post,
            endpoint: options.endpoint,
            back_off: options.back_off,
            tally: Arc::clone(&tally),
            trouble: options.trouble,
            told: None,
        };
        std::thread::Builder::new().name("pyroscope".to_owned()).spawn(move || courier.run())?;
        Ok(Pusher { shared, labels, spread: options.spread, tally })
    }

    /// Queues a minute. Takes as long as it takes to write it down; waits for nobody.
    pub(crate) fn put(&self, minute: &Minute, now: u64) {
        for (body, profiles) in bodies::of(minute, &self.labels, now) {
            let mut state = self.shared.lock();
            if state.queue.is_empty() {
                state.not_before = Instant::now() + self.spread.mul_f64(chance());
            }
            let dropped = state.put(Parcel { body, profiles, queued: Instant::now() });
            drop(state);
            self.tally.add(Fate::Lost, dropped);
        }
        self.shared.changed.notify_all();
    }

    /// The end of the server: what is queued is sent now or never.
    pub(crate) fn finish(&self) {
        let deadline = Instant::now() + FINISH_LIMIT;
        let mut state = self.shared.lock();
        state.ends.get_or_insert(deadline);
        self.shared.changed.notify_all();
        while !state.is_done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The thread is in a request that hangs: it ends with the process.
                break;
            }
            state = self.shared.wait(state, left);
        }
        let left = state.queue.drain(..).map(|parcel| parcel.profiles).sum();
        state.bytes = 0;
        drop(state);
        self.tally.add(Fate::Lost, left);
    }

    /// How they fare.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.shared.lock().ends.get_or_insert_with(Instant::now);
        self.shared.changed.notify_all();
    }
}

fn post(options: &PushOptions) -> Result<Post, Unusable> {
    Post::new(&Address {
        endpoint: &options.endpoint,
        example: "http://127.0.0.1:4040, without /push.v1…",
        headers: &options.headers,
        content_type: "application/proto",
        // Each profile is packed by itself.
        gzip: false,
        timeout: options.timeout,
        roots: options.roots.as_deref(),
    })
}

/// What was told last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Away,
    Refused,
}

/// The thread.
struct Courier {
    shared: Arc<Shared>,
    post: Post,
    endpoint: String,
    back_off: Duration,
    tally: Arc<Tally>,
    trouble: Trouble,
    told: Option<Told>,
}

impl Courier {
    fn run(&mut self) {
        let done = Done(Arc::clone(&self.shared));
        while let Some(parcel) = self.next() {
            let fate = self.deliver(&parcel);
            self.tally.add(fate, parcel.profiles);
        }
        drop(done);
    }

    /// Waits until there is something to send; nothing when the server ends and all is sent, or its time is over.
    fn next(&self) -> Option<Parcel> {
        let mut state = self.shared.lock();
        loop {
            let now = Instant::now();
            if state.ends.is_some_and(|deadline| now >= deadline) {
                return None;
            }
            let is_due = state.ends.is_some() || now >= state.not_before;
            if is_due && let Some(parcel) = state.pop() {
                if parcel.queued.elapsed() <= AGE_MAX {
                    return Some(parcel);
                }
                self.tally.add(Fate::Lost, parcel.profiles);
                continue;
            }
            if state.ends.is_some() {
                return None;
            }
            let due = state.not_before.saturating_duration_since(now);
            let limit = if state.queue.is_empty() { AGE_MAX } else { due };
            state = self.shared.wait(state, limit);
        }
    }

    /// Sends until it is taken, refused, or was tried for too long.
    fn deliver(&mut self, parcel: &Parcel) -> Fate {
        let begun = Instant::now();
        for n in 0.. {
            let asked = match self.post.send(PATH, &parcel.body) {
                Err(error) => {
                    self.tell(Told::Away, &error);
                    None
                }
                Ok(reply) => match judge(&reply, SystemTime::now()) {
                    Verdict::Taken => {
                        self.tell_well();
                        return Fate::Passed;
                    }
                    Verdict::Refused(words) => {
                        self.tell(Told::Refused, &words);
                        return Fate::Refused;
                    }
                    Verdict::Later { asked, words } => {
                        self.tell(Told::Away, &words);
                        asked
                    }
                },
            };
            let pause = pause(self.back_off, n, asked, chance());
            if begun.elapsed() + pause > TRIED_MAX || !self.rest(pause) {
                break;
            }
        }
        Fate::Lost
    }

    /// Waits; false when the server ends before that.
    fn rest(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.shared.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.ends.is_some_and(|deadline| deadline < until) {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            state = self.shared.wait(state, left);
        }
    }

    fn tell(&mut self, what: Told, words: &str) {
        if self.told.replace(what) != Some(what) {
            let (endpoint, words) = (&self.endpoint, words.trim_end_matches([':', ' ']));
            (self.trouble)(&match what {
                Told::Away => format!("Pyroscope at {endpoint} takes no profiles: {words}"),
                Told::Refused => format!("Pyroscope at {endpoint} refuses profiles: {words}"),
            });
        }
    }

    fn tell_well(&mut self) {
        if self.told.take().is_some() {
            (self.trouble)(&format!("Pyroscope at {} takes all again", self.endpoint));
        }
    }
}

/// Says that the thread has ended, even if by a panic.
struct Done(Arc<Shared>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.lock().is_done = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
