//! Recorded requests: kept in the server's memory for `samovar replay`, within limits of number and
//! size.
//!
//! A recording has conditions: a path, and slow or failed requests. The path is checked when a
//! request is submitted. The others are checked at its end, so its input is held until then. A
//! thread replaces the secrets of a request that is kept. While there is no recording, a request
//! costs one relaxed load.

mod recorded;
mod redact;
mod redaction_thread;
mod secret_names;
mod tap;
#[cfg(test)]
mod tests;
mod word_search;

pub use recorded::{RECORDED_BODY_BYTES_MAX, Recorded, RecordedInput, RecordedResponse};
pub(crate) use redact::response_head;
pub(crate) use secret_names::SecretNames;
pub(crate) use tap::ResponseTap;

use redaction_thread::{Job, RecordingPlace};
use samovar_insight::End;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of requests that one recording keeps.
pub const RECORDED_REQUESTS_MAX: usize = 1_000;
/// Maximum size of all recorded requests together, bytes. The oldest ones are dropped.
const TOTAL_BYTES_MAX: usize = 16 << 20;
/// Maximum number of requests whose input is held: until their end, or until their secrets are
/// replaced. So it is also the length of the queue of the thread that does it.
const HELD_MAX: usize = 64;
/// Timeout for the thread that replaces secrets, before requests are listed.
const REDACTION_LIMIT: Duration = Duration::from_secs(5);
/// Assumed size of a recorded request without its texts, bytes.
const BASE_BYTES: usize = 512;

/// Conditions and limits of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordOrder {
    /// Pattern of the path, in which `*` matches any characters; `None`: all paths.
    pub path: Option<String>,
    /// Keeps requests that take at least this time.
    pub slow: Option<Duration>,
    /// Keeps requests that fail: a status of 500 or more, or an incomplete response.
    pub is_failed: bool,
    /// Number of requests after which the recording ends.
    pub count: usize,
    /// Time after which it ends.
    pub limit: Duration,
    /// Secret values are kept.
    pub has_secrets: bool,
}

/// State of the recording, for `samovar record`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingState {
    /// Its conditions and limits.
    pub order: RecordOrder,
    /// Number of requests that are still wanted.
    pub left: usize,
    /// Time until it ends.
    pub remaining: Duration,
}

/// One of the places for held requests. Free again when dropped: a client may leave while its body
/// is read.
#[derive(Debug)]
pub(crate) struct HeldPlace {
    recordings: Arc<Recordings>,
    /// The recording that wants the request. A later one has other conditions.
    session_number: u64,
    /// Secret values are kept.
    has_secrets: bool,
}

impl HeldPlace {
    /// Holds the input of a request. `words`: of the setting `insight.redact`.
    pub(crate) fn draft(
        self,
        pool: &str,
        input: RecordedInput,
        words: Vec<String>,
    ) -> Box<RecordingDraft> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Box::new(RecordingDraft {
            place: self,
            pool: pool.to_owned(),
            at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            since: Instant::now(),
            input,
            words,
            tap: ResponseTap::default(),
        })
    }
}

impl RecordingPlace for HeldPlace {
    fn has_secrets(&self) -> bool {
        self.has_secrets
    }

    fn keep(&self, recorded: Recorded) {
        self.recordings.store().keep(recorded);
    }

    fn end(self, is_kept: bool) {
        let recordings = Arc::clone(&self.recordings);
        // It locks the store.
        drop(self);
        let mut store = recordings.store();
        store.done += 1;
        store.missed += u64::from(!is_kept);
        drop(store);
        recordings.has_done.notify_all();
    }
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        let mut store = self.recordings.store();
        store.held = store.held.saturating_sub(1);
    }
}

/// A request whose input is held until its end.
#[derive(Debug)]
pub(crate) struct RecordingDraft {
    place: HeldPlace,
    pool: String,
    at_ms: u64,
    since: Instant,
    input: RecordedInput,
    words: Vec<String>,
    pub(crate) tap: ResponseTap,
}

impl RecordingDraft {
    /// The request has ended: keeps it, if it meets the conditions. `status`: the client's.
    pub(crate) fn finish(self: Box<Self>, status: u16, end: End) {
        let took = self.since.elapsed();
        let mut response = self.tap.take().unwrap_or_default();
        if response.status == 0 {
            response.status = status;
        }
        let is_failed = status >= 500 || !matches!(end, End::Completed | End::Exit);
        let has_client_left = end == End::Aborted;
        // Its buffer has grown in steps.
        response.body.shrink_to_fit();
        let RecordingDraft { place, pool, at_ms, input, words, .. } = *self;
        let recordings = Arc::clone(&place.recordings);
        let mut store = recordings.store();
        let is_its = |session: &&mut Session| session.number == place.session_number;
        let session = store.session.as_mut().filter(is_its);
        let Some(session) = session.filter(|session| session.wants(took, is_failed)) else {
            return;
        };
        session.left -= 1;
        let queue = session.queue.clone();
        store.last_id += 1;
        store.queued += 1;
        let id = store.last_id;
        let recorded = Recorded { id, pool, at_ms, took, input, response, has_client_left };
        // Each job has a place, so there is room. It fails if the thread has panicked.
        let rejected = queue.try_send(Job::new(place, recorded, words));
        recordings.settle(&mut store);
        drop(store);
        // A job locks the store when it is dropped.
        drop(rejected);
    }
}

#[derive(Debug)]
struct Session {
    /// From 1.
    number: u64,
    order: RecordOrder,
    left: usize,
    until: Instant,
    /// Of the thread that replaces secrets. It ends with the session, after its last job.
    queue: SyncSender<Job<HeldPlace>>,
}

impl Session {
    fn is_over(&self) -> bool {
        self.left == 0 || Instant::now() >= self.until
    }

    fn wants(&self, took: Duration, is_failed: bool) -> bool {
        let order = &self.order;
        let is_slow = order.slow.is_some_and(|slow| took >= slow);
        let has_condition = order.slow.is_some() || order.is_failed;
        !self.is_over() && (!has_condition || is_slow || order.is_failed && is_failed)
    }
}

#[derive(Debug, Default)]
struct Store {
    session: Option<Session>,
    kept: VecDeque<Arc<Recorded>>,
    bytes: usize,
    held: usize,
    last_id: u64,
    last_session: u64,
    /// Number of requests that were given to the thread, and that it is done with.
    queued: u64,
    done: u64,
    /// Number of requests that the last recording wanted, but could not keep.
    missed: u64,
}

impl Store {
    fn keep(&mut self, recorded: Recorded) {
        self.bytes += size(&recorded);
        self.kept.push_back(Arc::new(recorded));
        while self.bytes > TOTAL_BYTES_MAX || self.kept.len() > RECORDED_REQUESTS_MAX {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
    }
}

fn size(of: &Recorded) -> usize {
    let Recorded { input, response, pool, .. } = of;
    let redacted: usize = input.redacted.iter().map(|name| name.len() + 24).sum();
    let texts = input.method.len() + input.target.len() + input.host.len() + pool.len();
    let bytes = input.head.len() + input.body.len() + response.head.len() + response.body.len();
    BASE_BYTES + redacted + texts + bytes
}

/// The recorded requests of all pools and threads.
#[derive(Debug, Default)]
pub struct Recordings {
    is_on: AtomicBool,
    store: Mutex<Store>,
    /// A job is done.
    has_done: Condvar,
}

impl Recordings {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there may be a recording.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Returns a place for the input of a request of that path, if it is wanted.
    pub(crate) fn hold(self: &Arc<Self>, path: &[u8]) -> Option<HeldPlace> {
        let mut store = self.store();
        self.settle(&mut store);
        let session = store.session.as_ref()?;
        let pattern = session.order.path.as_deref();
        let (session_number, has_secrets) = (session.number, session.order.has_secrets);
        let is_wanted = pattern.is_none_or(|pattern| matches(pattern.as_bytes(), path));
        if !is_wanted {
            return None;
        }
        if store.held >= HELD_MAX {
            store.missed += 1;
            return None;
        }
        store.held += 1;
        Some(HeldPlace { recordings: Arc::clone(self), session_number, has_secrets })
    }

    /// Ends a recording that is over.
    fn settle(&self, store: &mut Store) {
        if store.session.as_ref().is_none_or(Session::is_over) {
            store.session = None;
            self.is_on.store(false, Ordering::Relaxed);
        }
    }

    /// Starts a recording, which replaces the previous one. Recorded requests stay.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it cannot start a thread.
    pub fn begin(&self, order: RecordOrder) -> io::Result<()> {
        let queue = redaction_thread::start(HELD_MAX)?;
        let left = order.count.min(RECORDED_REQUESTS_MAX);
        let until = Instant::now() + order.limit;
        let mut store = self.store();
        store.last_session += 1;
        let number = store.last_session;
        store.missed = 0;
        store.session = Some(Session { number, order, left, until, queue });
        self.is_on.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the recording. Returns whether there was one.
    pub fn stop(&self) -> bool {
        let mut store = self.store();
        self.settle(&mut store);
        self.is_on.store(false, Ordering::Relaxed);
        store.session.take().is_some()
    }

    /// Returns the recording, if there is one.
    pub fn state(&self) -> Option<RecordingState> {
        let mut store = self.store();
        self.settle(&mut store);
        let session = store.session.as_ref()?;
        Some(RecordingState {
            order: session.order.clone(),
            left: session.left,
            remaining: session.until.saturating_duration_since(Instant::now()),
        })
    }

    /// Waits until the requests that have ended so far are kept.
    fn store_when_done(&self) -> MutexGuard<'_, Store> {
        let store = self.store();
        let queued = store.queued;
        let waits = |store: &mut Store| store.done < queued;
        let waited = self.has_done.wait_timeout_while(store, REDACTION_LIMIT, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns the number of requests that the last recording wanted, but could not keep.
    pub fn missed(&self) -> u64 {
        self.store().missed
    }

    /// Returns all recorded requests, the oldest first.
    pub fn all(&self) -> Vec<Arc<Recorded>> {
        self.store_when_done().kept.iter().cloned().collect()
    }

    /// Returns the recorded request with that number.
    pub fn get(&self, id: u64) -> Option<Arc<Recorded>> {
        self.store_when_done().kept.iter().find(|recorded| recorded.id == id).cloned()
    }

    /// Removes a recorded request; `None`: all. Returns the number of removed ones.
    pub fn remove(&self, id: Option<u64>) -> usize {
        let mut store = self.store_when_done();
        let before = store.kept.len();
        store.kept.retain(|recorded| id.is_some_and(|id| recorded.id != id));
        store.bytes = store.kept.iter().map(|recorded| size(recorded)).sum();
        before - store.kept.len()
    }
}

/// Whether a path matches a pattern in which `*` matches any characters.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // Position after the last `*` of the pattern, and the start of the text it is tried at.
    let (mut star, mut at, mut of) = (None, 0, 0);
    while at < path.len() {
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of + 1, at));
                of += 1;
            }
            Some(byte) if *byte == path[at] => {
                (of, at) = (of + 1, at + 1);
            }
            _ => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    (of, at) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|byte| *byte == b'*')
}
