//! Completed minutes → Pyroscope, over its push API, on a thread of its own.
//!
//! The thread that stores minutes makes request bodies of each (`push/bodies.rs`) and queues them
//! within a limit; the oldest are dropped first. The thread of this file sends them and waits as
//! the responses request. A Pyroscope that is away, hangs or rejects requests causes lost profiles,
//! which are counted, and no other harm.

mod bodies;
mod verdict;

use crate::current_minute::Minute;
use samovar_insight::{Fate, Tally};
use samovar_outbound::waits::chance;
use samovar_outbound::{
    Address, Attempt, Desk, Next, Outbox, Patience, Post, ProblemSink, Road, Teller, Unusable,
};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use verdict::{Verdict, judge};

/// Path of the push API: <https://grafana.com/docs/pyroscope/latest/reference-server-api/>.
const PATH: &str = "/push.v1.PusherService/Push";
/// Maximum time for the attempts to send one body; after it the next body is tried.
const TRIED_MAX: Duration = Duration::from_mins(5);
/// Maximum age of a body: Pyroscope rejects data older than an hour.
const AGE_MAX: Duration = Duration::from_mins(50);
/// Maximum time that the server's stop waits for queued bodies. The limit for the thread that
/// stores minutes is slightly longer.
const FINISH_LIMIT: Duration = Duration::from_millis(1_500);

/// Target of the push, and its options.
pub struct PushOptions {
    /// URL, such as `http://127.0.0.1:4040`.
    pub endpoint: String,
    /// Headers sent with each request: `authorization`, `x-scope-orgid`.
    pub headers: Vec<(String, String)>,
    /// Labels of each profile, in addition to those that identify its origin.
    pub labels: Vec<(String, String)>,
    /// Name of the site: the label `service_name`.
    pub service: String,
    /// Name of the machine: the label `hostname`, unless `labels` has one.
    pub host: String,
    /// Timeout for each step of a request: connect, send, wait for the response.
    pub timeout: Duration,
    /// Maximum bytes of queued bodies.
    pub bytes_max: usize,
    /// Pause after the first failure; doubles with each further one.
    pub back_off: Duration,
    /// Maximum random delay after a minute ends, so that servers do not all send at the same time.
    pub spread: Duration,
    /// File with trusted certificates; `None`: those of the machine.
    pub roots: Option<PathBuf>,
    /// Called with a message once when sending fails, and once when it works again.
    pub trouble: ProblemSink,
}

/// A queued body.
#[derive(Debug)]
struct Parcel {
    body: Vec<u8>,
    profiles: u64,
    queued: Instant,
}

/// Queued bodies.
#[derive(Debug)]
struct Waiting {
    queue: VecDeque<Parcel>,
    bytes: usize,
    bytes_max: usize,
    /// Time before which no body is sent.
    not_before: Instant,
    tally: Arc<Tally>,
}

impl Waiting {
    /// Adds a body; the oldest are dropped to make room for it.
    fn put(&mut self, parcel: Parcel) {
        self.bytes += parcel.body.len();
        self.queue.push_back(parcel);
        while self.bytes > self.bytes_max {
            self.pop().inspect(|parcel| self.tally.add(Fate::Lost, parcel.profiles));
        }
    }

    fn pop(&mut self) -> Option<Parcel> {
        let parcel = self.queue.pop_front()?;
        self.bytes -= parcel.body.len();
        Some(parcel)
    }
}

impl Outbox for Waiting {
    type Parcel = Parcel;

    fn next(&mut self, now: Instant, is_ending: bool) -> Next<Parcel> {
        if is_ending || now >= self.not_before {
            while let Some(parcel) = self.pop() {
                if now.saturating_duration_since(parcel.queued) <= AGE_MAX {
                    return Next::Now(parcel);
                }
                self.tally.add(Fate::Lost, parcel.profiles);
            }
        }
        let due = self.not_before.saturating_duration_since(now);
        Next::In(if self.queue.is_empty() { AGE_MAX } else { due })
    }
}

/// Accepts minutes; another thread sends them.
#[derive(Debug)]
pub struct Pusher {
    desk: Desk<Waiting>,
    labels: Vec<(String, String)>,
    spread: Duration,
    tally: Arc<Tally>,
}

impl Pusher {
    /// Checks whether requests can be sent with these options; sends none.
    pub fn check(options: &PushOptions) -> Result<(), Unusable> {
        post(options).map(|_| ())
    }

    /// Checks the options and starts the thread.
    pub fn start(options: PushOptions) -> Result<Pusher, Unusable> {
        let post = post(&options)?;
        let tally = Tally::new("pyroscope_profiles");
        let waiting = Waiting {
            queue: VecDeque::new(),
            bytes: 0,
            bytes_max: options.bytes_max,
            not_before: Instant::now(),
            tally: Arc::clone(&tally),
        };
        let labels = bodies::labels(&options.service, &options.host, &options.labels);
        let mut courier = Courier {
            post,
            endpoint: options.endpoint,
            tally: Arc::clone(&tally),
            teller: Teller::new(options.trouble),
        };
        let patience = Patience { back_off: options.back_off, tried_max: TRIED_MAX };
        let carry = move |parcel, road: &Road<Waiting>| courier.carry(&parcel, road);
        let desk = Desk::open("pyroscope", waiting, patience, carry)?;
        Ok(Pusher { desk, labels, spread: options.spread, tally })
    }

    /// Queues a minute. Takes the time to encode it and never blocks on the network.
    pub(crate) fn put(&self, minute: &Minute, now: u64) {
        for (body, profiles) in bodies::of(minute, &self.labels, now) {
            self.desk.queue(|waiting| {
                if waiting.queue.is_empty() {
                    waiting.not_before = Instant::now() + self.spread.mul_f64(chance());
                }
                waiting.put(Parcel { body, profiles, queued: Instant::now() });
                ((), true)
            });
        }
    }

    /// Sends the queued bodies within a limit and drops the rest, for the server's stop.
    pub(crate) fn finish(&self) {
        self.desk.finish(FINISH_LIMIT, |waiting| {
            while let Some(parcel) = waiting.pop() {
                self.tally.add(Fate::Lost, parcel.profiles);
            }
        });
    }

    /// Returns the counters.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn post(options: &PushOptions) -> Result<Post, Unusable> {
    Post::new(&Address {
        endpoint: &options.endpoint,
        example: "http://127.0.0.1:4040, without /push.v1…",
        headers: &options.headers,
        content_type: "application/proto",
        // Each profile is compressed separately.
        gzip: false,
        timeout: options.timeout,
        roots: options.roots.as_deref(),
    })
}

/// Kind of the last report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastReport {
    Away,
    Refused,
}

/// Sends bodies; owned by the thread.
struct Courier {
    post: Post,
    endpoint: String,
    tally: Arc<Tally>,
    teller: Teller<LastReport>,
}

impl Courier {
    fn carry(&mut self, parcel: &Parcel, road: &Road<Waiting>) {
        let fate = road.try_until_over(|| self.attempt(&parcel.body)).unwrap_or(Fate::Lost);
        self.tally.add(fate, parcel.profiles);
    }

    fn attempt(&mut self, body: &[u8]) -> Attempt<Fate> {
        let reply = match self.post.send(PATH, body) {
            Ok(reply) => reply,
            Err(error) => {
                self.tell(LastReport::Away, &error);
                return Attempt::Later(None);
            }
        };
        match judge(&reply, SystemTime::now()) {
            Verdict::Taken => {
                let endpoint = &self.endpoint;
                self.teller.well(|| format!("Pyroscope at {endpoint} accepts profiles again"));
                Attempt::Over(Fate::Passed)
            }
            Verdict::Refused(words) => {
                self.tell(LastReport::Refused, &words);
                Attempt::Over(Fate::Refused)
            }
            Verdict::Later { asked, words } => {
                self.tell(LastReport::Away, &words);
                Attempt::Later(asked)
            }
        }
    }

    fn tell(&mut self, what: LastReport, words: &str) {
        let endpoint = &self.endpoint;
        let does = match what {
            LastReport::Away => "does not accept profiles",
            LastReport::Refused => "rejects profiles",
        };
        let words = words.trim_end_matches([':', ' ']);
        self.teller.wrong(what, || format!("Pyroscope at {endpoint} {does}: {words}"));
    }
}

#[cfg(test)]
mod tests;
