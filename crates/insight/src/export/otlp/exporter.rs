//! Spans and figures → collector: OTLP over HTTP, on a thread of its own.
//!
//! The aggregation thread only queues data (`queue.rs`). The thread of this file makes batches,
//! sends them, and waits as the responses request (`reply.rs`, crates/outbound). A collector that
//! is away, hangs or rejects requests causes lost spans, which are counted, and no other harm.

use super::identity::Identity;
use super::job_spans::JobSpans;
use super::measures::{HistogramForm, Measures};
use super::outbox::{Parcel, Waiting, queue};
use super::queue::{BYTES_MAX, Queue};
use super::reply::{Verdict, judge};
use super::spans::{Spans, encode};
use crate::aggregate::Aggregate;
use crate::export::metrics::{metrics, ways};
use crate::finished::Model;
use crate::observation::Seen;
use crate::sink::{Fate, Sink, Tally};
use crate::store::ProblemSink;
use samovar_outbound::{Address, Attempt, Desk, Patience, Post, Road, Teller, Unusable};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum time for the attempts to send one batch; after it the next batch is tried.
const BATCH_AGE_MAX: Duration = Duration::from_mins(5);
/// Maximum time that the server's stop waits for queued data.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
/// Maximum size of a body with figures.
const FIGURES_BYTES_MAX: usize = 16 << 20;

/// Target of spans and figures, and its options.
pub struct OtlpOptions {
    /// URL such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are appended.
    pub endpoint: String,
    /// Headers sent with each request: `authorization` and others that a collector needs.
    pub headers: Vec<(String, String)>,
    /// Whether bodies are compressed with gzip.
    pub gzip: bool,
    /// Identity of this server.
    pub identity: Identity,
    /// Timeout for each step of a request: connect, send, wait for the response.
    pub timeout: Duration,
    /// Time for which spans are collected before they are sent.
    pub every: Duration,
    /// Interval at which figures are sent; `None`: never.
    pub figures_every: Option<Duration>,
    /// Form of histograms.
    pub histograms: HistogramForm,
    /// Maximum bytes of queued spans.
    pub bytes_max: usize,
    /// Pause after the first failure; doubles with each further one.
    pub back_off: Duration,
    /// File with trusted certificates; `None`: those of the machine.
    pub roots: Option<PathBuf>,
    /// Called with a message once when sending fails, and once when it works again.
    pub trouble: ProblemSink,
}

impl OtlpOptions {
    /// Creates options with the usual times; figures are sent each minute.
    #[must_use]
    pub fn new(endpoint: &str, identity: Identity, trouble: ProblemSink) -> OtlpOptions {
        OtlpOptions {
            endpoint: endpoint.to_owned(),
            headers: Vec::new(),
            gzip: true,
            identity,
            timeout: Duration::from_secs(10),
            every: Duration::from_secs(5),
            figures_every: Some(Duration::from_mins(1)),
            histograms: HistogramForm::default(),
            bytes_max: BYTES_MAX,
            back_off: Duration::from_secs(1),
            roots: None,
            trouble,
        }
    }
}

/// Sink that queues data for the thread.
pub struct Exporter {
    desk: Arc<Desk<Waiting>>,
    spans: Arc<Tally>,
    identity: Identity,
    figures_every: Option<Duration>,
    histograms: HistogramForm,
    figures_due: Instant,
    begun_ns: u64,
    /// Counters that are exported as figures too.
    tallies: Vec<Arc<Tally>>,
}

impl Exporter {
    /// Returns the receiver of spans of batches of jobs.
    #[must_use]
    pub fn job_spans(&self) -> JobSpans {
        JobSpans {
            desk: Arc::downgrade(&self.desk),
            tally: Arc::clone(&self.spans),
            releases: self.identity.releases.clone(),
        }
    }

    /// Checks whether requests can be sent with these options; sends none.
    pub fn check(options: &OtlpOptions) -> Result<(), Unusable> {
        post(options).map(|_| ())
    }

    /// Checks the options and starts the thread.
    pub fn start(options: OtlpOptions) -> Result<Exporter, Unusable> {
        let post = post(&options)?;
        let OtlpOptions { endpoint, identity, every, .. } = options;
        let spans = Tally::new("otlp_spans");
        let mut courier = Courier {
            post,
            endpoint,
            identity: identity.clone(),
            spans: Arc::clone(&spans),
            teller: Teller::new(options.trouble),
        };
        let queue = Queue::new(options.bytes_max);
        let waiting = Waiting::new(queue, every);
        let patience = Patience { back_off: options.back_off, tried_max: BATCH_AGE_MAX };
        let carry = move |parcel, road: &Road<Waiting>| courier.carry(parcel, road);
        let desk = Desk::open("otlp", waiting, patience, carry)?;
        let figures_due = Instant::now() + options.figures_every.unwrap_or_default();
        Ok(Exporter {
            desk: Arc::new(desk),
            tallies: vec![Arc::clone(&spans)],
            spans,
            identity,
            figures_every: options.figures_every,
            histograms: options.histograms,
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
        let (pool, generation) = (seen.finished.pool, seen.finished.numbers.generation);
        let release = self.identity.releases.label_of(pool, generation);
        self.spans.add(Fate::Lost, queue(&self.desk, release, spans.0));
    }

    /// Only traced requests have spans, and traced requests are never packed.
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
        let mut measures = Measures::new(self.begun_ns, unix_ns(), self.histograms);
        metrics(figures, lost, &mut measures);
        ways(&self.tallies, &mut measures);
        let body = measures.encode(&self.identity);
        if body.len() <= FIGURES_BYTES_MAX {
            self.desk.queue(|waiting| (waiting.figures = Some(body), true));
        }
    }

    fn finish(&mut self) {
        let left = self.desk.finish(FINISH_LIMIT, |waiting| waiting.queue.len() as u64);
        self.spans.add(Fate::Lost, left);
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.spans)
    }
}

/// Kind of the last report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastReport {
    Away,
    Refused,
    Partly,
}

/// Sends data; owned by the thread.
struct Courier {
    post: Post,
    endpoint: String,
    identity: Identity,
    spans: Arc<Tally>,
    teller: Teller<LastReport>,
}

/// Final result of a body.
enum Delivery {
    /// Accepted, except for this number of records.
    TakenBut(u64),
    Refused,
}

impl Courier {
    fn carry(&mut self, parcel: Parcel, road: &Road<Waiting>) {
        match parcel {
            Parcel::Spans(spans) => {
                let count = spans.iter().map(|(_, spans)| spans.len() as u64).sum();
                let body = encode(spans, &self.identity);
                match road.try_until_over(|| self.attempt("/v1/traces", &body)) {
                    Some(Delivery::TakenBut(rejected)) => {
                        let rejected = rejected.min(count);
                        self.spans.add(Fate::Passed, count - rejected);
                        self.spans.add(Fate::Refused, rejected);
                    }
                    Some(Delivery::Refused) => self.spans.add(Fate::Refused, count),
                    None => self.spans.add(Fate::Lost, count),
                }
            }
            // The next figures contain the same totals, so a loss is not counted.
            Parcel::Figures(body) => {
                road.try_until_over(|| self.attempt("/v1/metrics", &body));
            }
        }
    }

    fn attempt(&mut self, path: &str, body: &[u8]) -> Attempt<Delivery> {
        let reply = match self.post.send(path, body) {
            Ok(reply) => reply,
            Err(error) => {
                self.tell(LastReport::Away, &error);
                return Attempt::Later(None);
            }
        };
        match judge(&reply, SystemTime::now()) {
            Verdict::Taken { rejected: 0, .. } => {
                let endpoint = &self.endpoint;
                self.teller
                    .well(|| format!("the collector at {endpoint} accepts all records again"));
                Attempt::Over(Delivery::TakenBut(0))
            }
            Verdict::Taken { rejected, words } => {
                self.tell(LastReport::Partly, &format!("rejected {rejected} records: {words}"));
                Attempt::Over(Delivery::TakenBut(rejected))
            }
            Verdict::Refused(words) => {
                self.tell(LastReport::Refused, &words);
                Attempt::Over(Delivery::Refused)
            }
            Verdict::Later(asked) => {
                self.tell(LastReport::Away, &format!("returned status {}", reply.status));
                Attempt::Later(asked)
            }
        }
    }

    fn tell(&mut self, what: LastReport, words: &str) {
        let endpoint = &self.endpoint;
        let does = match what {
            LastReport::Away => "is unavailable",
            LastReport::Refused => "rejects the records",
            LastReport::Partly => "accepted only part of the records",
        };
        let line = || {
            format!("the collector at {endpoint} {does}: {}", words.trim_end_matches([':', ' ']))
        };
        self.teller.wrong(what, line);
    }
}
