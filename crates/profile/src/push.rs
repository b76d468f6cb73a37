//! Minutes that are over → Pyroscope, by its push API, on a thread of its own.
//!
//! The thread that keeps minutes makes bodies of one (`push/bodies.rs`) and queues them, within a limit: the oldest make room.
//! This one sends, and waits as the answers say. A Pyroscope that is away, hangs or refuses costs profiles, which are counted,
//! and nothing else.

mod bodies;
mod verdict;

use crate::profiles::Trouble;
use crate::running::Minute;
use samovar_insight::{Fate, Tally};
use samovar_outbound::waits::chance;
use samovar_outbound::{
    Address, Attempt, Desk, Next, Outbox, Patience, Post, Road, Teller, Unusable,
};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
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

/// What waits to be sent.
#[derive(Debug)]
struct Waiting {
    queue: VecDeque<Parcel>,
    bytes: usize,
    bytes_max: usize,
    /// Nothing is sent before that.
    not_before: Instant,
    tally: Arc<Tally>,
}

impl Waiting {
    /// Adds a body; the oldest make room for it.
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

/// Takes minutes in; another thread sends them.
#[derive(Debug)]
pub struct Pusher {
    desk: Desk<Waiting>,
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

    /// Queues a minute. Takes as long as it takes to write it down; waits for nobody.
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

    /// The end of the server: what is queued is sent now or never.
    pub(crate) fn finish(&self) {
        self.desk.finish(FINISH_LIMIT, |waiting| {
            while let Some(parcel) = waiting.pop() {
                self.tally.add(Fate::Lost, parcel.profiles);
            }
        });
    }

    /// How they fare.
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

/// What the thread does with a body.
struct Courier {
    post: Post,
    endpoint: String,
    tally: Arc<Tally>,
    teller: Teller<Told>,
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
                self.tell(Told::Away, &error);
                return Attempt::Later(None);
            }
        };
        match judge(&reply, SystemTime::now()) {
            Verdict::Taken => {
                let endpoint = &self.endpoint;
                self.teller.well(|| format!("Pyroscope at {endpoint} takes all again"));
                Attempt::Over(Fate::Passed)
            }
            Verdict::Refused(words) => {
                self.tell(Told::Refused, &words);
                Attempt::Over(Fate::Refused)
            }
            Verdict::Later { asked, words } => {
                self.tell(Told::Away, &words);
                Attempt::Later(asked)
            }
        }
    }

    fn tell(&mut self, what: Told, words: &str) {
        let endpoint = &self.endpoint;
        let does = match what {
            Told::Away => "takes no profiles",
            Told::Refused => "refuses profiles",
        };
        let words = words.trim_end_matches([':', ' ']);
        self.teller.wrong(what, || format!("Pyroscope at {endpoint} {does}: {words}"));
    }
}

#[cfg(test)]
mod tests;
