//! Spans and figures → collector: OTLP over HTTP, on a thread of its own.
//!
//! The thread that adds up only queues (`queue.rs`); this one batches, sends, and waits as the answers say
//! (`reply.rs`). A collector that is away, hangs or refuses costs spans, which are counted, and nothing else.

use super::measures::Measures;
use super::message::Span;
use super::queue::{BYTES_MAX, Queue};
use super::reply::{Verdict, judge};
use super::{Identity, Spans};
use crate::aggregate::Aggregate;
use crate::export::post::{Address, Post, Unusable};
use crate::export::waits::{chance, pause};
use crate::export::{metrics, ways};
use crate::finished::Model;
use crate::sink::{Fate, Seen, Sink, Tally};
use crate::store::Trouble;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a batch is tried; then others have their turn.
const BATCH_AGE_MAX: Duration = Duration::from_mins(5);
/// How long the end of the server waits for what is queued.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
/// The largest body of figures that is sent.
const FIGURES_BYTES_MAX: usize = 16 << 20;

/// Where spans and figures go, and how.
pub struct OtlpOptions {
    /// `http://127.0.0.1:4318`: `/v1/traces` and `/v1/metrics` are added.
    pub endpoint: String,
    /// Sent with each request: `authorization` and what else a collector wants.
    pub headers: Vec<(String, String)>,
    /// Whether bodies are packed.
    pub gzip: bool,
    /// As whom.
    pub identity: Identity,
    /// How long each step of a request may take: connect, send, wait for the answer.
    pub timeout: Duration,
    /// How long spans are collected before they are sent.
    pub every: Duration,
    /// How often figures are sent; none if `None`.
    pub figures_every: Option<Duration>,
    /// Bytes of spans that wait at most.
    pub bytes_max: usize,
    /// The pause after the first failure; doubles with each.
    pub back_off: Duration,
    /// A file with certificates to trust; those of the machine if `None`.
    pub roots: Option<PathBuf>,
    /// Whom to tell what goes wrong: once, and once when it goes well again.
    pub trouble: Trouble,
}

impl OtlpOptions {
    /// With the usual times; figures each minute.
    #[must_use]
    pub fn new(endpoint: &str, identity: Identity, trouble: Trouble) -> OtlpOptions {
        OtlpOptions {
            endpoint: endpoint.to_owned(),
            headers: Vec::new(),
            gzip: true,
            identity,
            timeout: Duration::from_secs(10),
            every: Duration::from_secs(5),
            figures_every: Some(Duration::from_mins(1)),
            bytes_max: BYTES_MAX,
            back_off: Duration::from_secs(1),
            roots: None,
            trouble,
        }
    }
}

/// The sink: queues what the thread sends.
pub struct Exporter {
    shared: Arc<Shared>,
    spans: Arc<Tally>,
    identity: Identity,
    figures_every: Option<Duration>,
    figures_due: Instant,
    begun_ns: u64,
    /// What the figures say of it too.
    tallies: Vec<Arc<Tally>>,
}

/// Between the two threads.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    /// When the oldest in the queue came.
    since: Option<Instant>,
    /// The latest figures, encoded: older ones are of no use beside them.
    figures: Option<Vec<u8>>,
    /// The server ends, and waits until then.
    ends: Option<Instant>,
    /// The thread has ended.
    is_done: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn end(&self, deadline: Instant) {
        self.lock().ends.get_or_insert(deadline);
        self.changed.notify_all();
    }
}

impl Exporter {
    /// Whether anything could be sent with these; sends nothing.
    pub fn check(options: &OtlpOptions) -> Result<(), Unusable> {
        post(options).map(|_| ())
    }

    /// Checks the options and starts the thread.
    pub fn start(options: OtlpOptions) -> Result<Exporter, Unusable> {
        let post = post(&options)?;
        let OtlpOptions { endpoint, identity, every, .. } = options;
        let shared = Arc::<Shared>::default();
        shared.lock().queue = Queue::new(options.bytes_max);
        let spans = Tally::new("otlp_spans");
        let mut courier = Courier {
            shared: Arc::clone(&shared),
            post,
            endpoint,
            identity: identity.clone(),
            every,
            back_off: options.back_off,
            spans: Arc::clone(&spans),
            trouble: options.trouble,
            told: None,
        };
        std::thread::Builder::new().name("otlp".to_owned()).spawn(move || courier.run())?;
        let figures_due = Instant::now() + options.figures_every.unwrap_or_default();
        Ok(Exporter {
            shared,
            tallies: vec![Arc::clone(&spans)],
            spans,
            identity,
            figures_every: options.figures_every,
            figures_due,
            begun_ns: unix_ns(),
        })
    }
}

fn post(options: &OtlpOptions) -> Result<Post, Unusable> {
    Post::new(&Address {
        endpoint: &options.endpoint,
        example: "http://127.0.0.1:4318, without /v1/traces",
        headers: &options.headers,
        content_type: "application/x-protobuf",
        gzip: options.gzip,
        timeout: options.timeout,
        roots: options.roots.as_deref(),
    })
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

impl Sink for Exporter {
    fn take(&mut self, seen: &Seen) {
        let mut spans = Spans::default();
        if seen.finished.numbers.model != Model::Elsewhere {
            spans.add(seen.finished, seen.route, seen.entries);
        }
        if spans.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        let was_empty = state.queue.is_empty();
        if was_empty {
            state.since = Some(Instant::now());
        }
        let dropped = state.queue.put(spans.0);
        let is_news = was_empty || state.queue.is_full();
        drop(state);
        self.spans.add(Fate::Lost, dropped as u64);
        if is_news {
            self.shared.changed.notify_all();
        }
    }

    /// Spans are those of traces, and requests of traces are special.
    fn wants_from_ns(&self) -> u64 {
        u64::MAX
    }

    fn look(&mut self, figures: &Aggregate, lost: u64, _: u64) {
        let Some(every) = self.figures_every else { return };
        let now = Instant::now();
        if now < self.figures_due {
            return;
        }
        self.figures_due = now + every;
        let mut measures = Measures::new(self.begun_ns, unix_ns());
        metrics(figures, lost, &mut measures);
        ways(&self.tallies, &mut measures);
        let body = measures.encode(&self.identity);
        if body.len() <= FIGURES_BYTES_MAX {
            self.shared.lock().figures = Some(body);
            self.shared.changed.notify_all();
        }
    }

    fn finish(&mut self) {
        let deadline = Instant::now() + FINISH_LIMIT;
        self.shared.end(deadline);
        let mut state = self.shared.lock();
        while !state.is_done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The thread is in a request that hangs: it ends with the process.
                break;
            }
            state = self.shared.wait(state, left);
        }
        let left = state.queue.len() as u64;
        drop(state);
        self.spans.add(Fate::Lost, left);
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.spans)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shared.end(Instant::now());
    }
}

/// What is to be sent.
enum Parcel {
    Spans(Vec<Span>),
    Figures(Vec<u8>),
}

/// What was told last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Away,
    Refused,
    Partly,
}

/// The thread.
struct Courier {
    shared: Arc<Shared>,
    post: Post,
    endpoint: String,
    identity: Identity,
    every: Duration,
    back_off: Duration,
    spans: Arc<Tally>,
    trouble: Trouble,
    told: Option<Told>,
}

impl Courier {
    fn run(&mut self) {
        let done = Done(Arc::clone(&self.shared));
        while let Some(parcel) = self.next() {
            match parcel {
                Parcel::Spans(spans) => {
                    let count = spans.len() as u64;
                    let body = Spans(spans).encode(&self.identity);
                    let tally = Arc::clone(&self.spans);
                    self.deliver("/v1/traces", &body, |fate, all_but| match fate {
                        Fate::Passed => {
                            let rejected = all_but.min(count);
                            tally.add(Fate::Passed, count - rejected);
                            tally.add(Fate::Refused, rejected);
                        }
                        other => tally.add(other, count),
                    });
                }
                // The next are as good: nobody counts them.
                Parcel::Figures(body) => self.deliver("/v1/metrics", &body, |_, _| ()),
            }
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
            let due = state.since.map(|since| since + self.every);
            let is_due =
                state.ends.is_some() || state.queue.is_full() || due.is_some_and(|due| now >= due);
            if is_due && !state.queue.is_empty() {
                let batch = state.queue.batch();
                state.since = (!state.queue.is_empty()).then_some(now);
                return Some(Parcel::Spans(batch));
            }
            if let Some(figures) = state.figures.take() {
                return Some(Parcel::Figures(figures));
            }
            if state.ends.is_some() {
                return None;
            }
            let limit = due.map_or(self.every, |due| due.saturating_duration_since(now));
            state = self.shared.wait(state, limit);
        }
    }

    /// Sends until it is taken, refused, or too old; `tell` hears its fate, and how many of it were rejected.
    fn deliver(&mut self, path: &str, body: &[u8], tell: impl Fn(Fate, u64)) {
        let begun = Instant::now();
        for n in 0.. {
            let verdict = match self.post.send(path, body) {
                Ok(reply) => {
                    let verdict = judge(&reply, SystemTime::now());
                    if let Verdict::Later(_) = verdict {
                        self.tell(Told::Away, &format!("it answers with status {}", reply.status));
                    }
                    verdict
                }
                Err(error) => {
                    self.tell(Told::Away, &error);
                    Verdict::Later(None)
                }
            };
            let asked = match verdict {
                Verdict::Taken { rejected, words } => {
                    if rejected == 0 {
                        self.tell_well();
                    } else {
                        self.tell(
                            Told::Partly,
                            &format!("it rejected {rejected} records: {words}"),
                        );
                    }
                    return tell(Fate::Passed, rejected);
                }
                Verdict::Refused(words) => {
                    self.tell(Told::Refused, &words);
                    return tell(Fate::Refused, 0);
                }
                Verdict::Later(asked) => asked,
            };
            let pause = pause(self.back_off, n, asked, chance());
            if begun.elapsed() + pause > BATCH_AGE_MAX || !self.rest(pause) {
                return tell(Fate::Lost, 0);
            }
        }
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
                Told::Away => format!("the collector at {endpoint} takes nothing: {words}"),
                Told::Refused => format!("the collector at {endpoint} refuses: {words}"),
                Told::Partly => format!("the collector at {endpoint} takes not all: {words}"),
            });
        }
    }

    fn tell_well(&mut self) {
        if self.told.take().is_some() {
            (self.trouble)(&format!("the collector at {} takes all again", self.endpoint));
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
