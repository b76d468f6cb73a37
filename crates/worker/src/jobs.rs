//! `Samovar\queue()`: pushes jobs to the server, which stores them. None of these functions calls
//! PHP.
//!
//! C adds the jobs of a push one after another, then sends them together.

use crate::bytes::slice;
use crate::log;
use samovar_channel::{NewJob, Push, PushReply, TraceContext};
use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

/// Socket to the server. Empty if there is no queue. Set before the first fork.
static SOCKET: OnceLock<OwnedFd> = OnceLock::new();

/// Sets the socket to the server.
pub(crate) fn begin(socket: OwnedFd) {
    // Set once per process.
    let _ = SOCKET.set(socket);
}

/// Returns the socket to the server.
pub(crate) fn socket() -> Option<&'static OwnedFd> {
    SOCKET.get()
}

/// `samovar_new_job` of jobs.h.
#[repr(C)]
struct CJob {
    payload: *const c_char,
    payload_len: usize,
    key: *const c_char,
    key_len: usize,
    priority: i32,
    attempts: u32,
    delay_ms: u64,
    unique_ms: u64,
}

unsafe extern "C" {
    /// interpose/network.h
    static samovar_network_refused: bool;
}

const STORED: c_int = 0;
const WRONG: c_int = 1;
const FAILED: c_int = 2;

/// Maximum number and bytes of the jobs that one request keeps for the time after its response.
const DEFERRED_JOBS_MAX: usize = 1_000;
const DEFERRED_BYTES_MAX: usize = 4 << 20;

struct State {
    jobs: Vec<NewJob>,
    /// Pushes for the time after the response of the request that runs.
    deferred: Vec<Push>,
    has_failed: bool,
    /// Whether this process runs a request.
    is_open: bool,
    ids: Vec<i64>,
    problem: Option<CString>,
}

struct Global(UnsafeCell<State>);
// SAFETY: the process has one thread. `with` hands out one reference at a time, because no function
// called inside it calls back into this file (none calls PHP).
unsafe impl Sync for Global {}
static STATE: Global = Global(UnsafeCell::new(State {
    jobs: Vec::new(),
    deferred: Vec::new(),
    has_failed: false,
    is_open: false,
    ids: Vec::new(),
    problem: None,
}));

fn with<R>(f: impl FnOnce(&mut State) -> R) -> R {
    // SAFETY: see `Global`: single thread, not re-entered.
    f(unsafe { &mut *STATE.0.get() })
}

/// Adds a job to the next push.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_jobs_add(job: *const CJob) {
    // SAFETY: jobs.h: one job.
    let job = unsafe { &*job };
    let text = |at, len| {
        // SAFETY: jobs.h: `at` has `len` bytes.
        String::from_utf8_lossy(unsafe { slice(at, len) }).into_owned()
    };
    let key = (!job.key.is_null()).then(|| text(job.key, job.key_len));
    let new = NewJob {
        payload: text(job.payload, job.payload_len),
        key,
        priority: job.priority,
        delay_ms: job.delay_ms,
        attempts: job.attempts,
        unique_ms: job.unique_ms,
        trace: TraceContext::default(),
    };
    with(|state| state.jobs.push(new));
}

/// Returns the maximum number of jobs of a push.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_max() -> usize {
    samovar_channel::PUSHED_JOBS_MAX
}

/// Drops the jobs that were added.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_drop() {
    with(|state| state.jobs = Vec::new());
}

/// Sets the trace of the jobs that were added. Both texts may be empty.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_jobs_trace(
    traceparent: *const c_char,
    traceparent_len: usize,
    tracestate: *const c_char,
    tracestate_len: usize,
) {
    let text = |at, len| {
        // SAFETY: jobs.h: `at` has `len` bytes.
        String::from_utf8_lossy(unsafe { slice(at, len) }).into_owned()
    };
    let trace = TraceContext {
        traceparent: text(traceparent, traceparent_len),
        tracestate: text(tracestate, tracestate_len),
    };
    with(|state| state.jobs.iter_mut().for_each(|job| job.trace = trace.clone()));
}

/// Whether the request is a replay whose network traffic is refused.
fn is_refused() -> bool {
    // SAFETY: interpose/network.h: a flag of this process, which has one thread.
    unsafe { samovar_network_refused }
}

const REFUSED: &str = "the request is a replay, whose writes to sockets are refused";

/// Sends the jobs that were added, and waits until the server has stored them.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_jobs_push(queue: *const c_char, len: usize) -> c_int {
    // SAFETY: jobs.h: `queue` has `len` bytes.
    let queue = String::from_utf8_lossy(unsafe { slice(queue, len) }).into_owned();
    with(|state| {
        let push = Push { queue, jobs: std::mem::take(&mut state.jobs) };
        let Some(socket) = SOCKET.get() else {
            let why = "this server has no queue\nhint: add a table [[queue]] to the settings";
            return state.fail(WRONG, why);
        };
        if is_refused() {
            return state.fail(FAILED, REFUSED);
        }
        match samovar_channel::push(socket.as_fd(), &push) {
            Ok(PushReply::Stored(ids)) => {
                state.ids = ids;
                STORED
            }
            Ok(PushReply::Depth(depth)) => {
                let count = |of: u64| i64::try_from(of).unwrap_or(i64::MAX);
                state.ids = depth.into_iter().map(count).collect();
                STORED
            }
            Ok(PushReply::Wrong(why)) => state.fail(WRONG, &why),
            Ok(PushReply::Refused(why)) => state.fail(FAILED, &why),
            Err(error) => state.fail(FAILED, &error.to_string()),
        }
    })
}

/// Keeps the jobs that were added until the request has succeeded.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_jobs_defer(queue: *const c_char, len: usize) -> c_int {
    if !with(|state| state.is_open) {
        // SAFETY: the same requirement.
        return unsafe { samovar_jobs_push(queue, len) };
    }
    // SAFETY: jobs.h: `queue` has `len` bytes.
    let queue = String::from_utf8_lossy(unsafe { slice(queue, len) }).into_owned();
    with(|state| {
        let push = Push { queue, jobs: std::mem::take(&mut state.jobs) };
        state.ids = Vec::new();
        if SOCKET.get().is_none() {
            let why = "this server has no queue\nhint: add a table [[queue]] to the settings";
            return state.fail(WRONG, why);
        }
        if is_refused() {
            return state.fail(FAILED, REFUSED);
        }
        let all = || state.deferred.iter().chain([&push]).flat_map(|push| &push.jobs);
        let bytes: usize = all().map(|job| job.payload.len()).sum();
        if all().count() > DEFERRED_JOBS_MAX || bytes > DEFERRED_BYTES_MAX {
            let why = format!(
                "a request pushes at most {DEFERRED_JOBS_MAX} jobs with {DEFERRED_BYTES_MAX} bytes \
                 after its response\nhint: push them without afterResponse"
            );
            return state.fail(FAILED, &why);
        }
        state.deferred.push(push);
        STORED
    })
}

/// A request begins.
pub(crate) fn open() {
    with(|state| {
        (state.has_failed, state.is_open) = (false, true);
        // Of a request that has lost its slot.
        if !state.deferred.is_empty() {
            state.deferred = Vec::new();
        }
    });
}

/// The request has failed.
pub(crate) fn fail() {
    with(|state| {
        state.has_failed = true;
        state.deferred = Vec::new();
    });
}

/// This process was forked by a request, whose jobs its parent pushes.
pub(crate) fn forked() {
    with(|state| {
        state.is_open = false;
        state.deferred = Vec::new();
    });
}

/// The request ends. Returns the pushes to make after the response, if the request has succeeded.
pub(crate) fn deferred(status: u16) -> Vec<Push> {
    with(|state| {
        state.is_open = false;
        let pushes = std::mem::take(&mut state.deferred);
        if state.has_failed || !(100..500).contains(&status) { Vec::new() } else { pushes }
    })
}

/// Pushes jobs after the response. Errors are logged.
pub(crate) fn push_deferred(pushes: &[Push]) {
    let Some(socket) = SOCKET.get() else { return };
    for push in pushes {
        let why = match samovar_channel::push(socket.as_fd(), push) {
            Ok(PushReply::Wrong(why) | PushReply::Refused(why)) => why,
            Ok(PushReply::Stored(_) | PushReply::Depth(_)) => continue,
            Err(error) => error.to_string(),
        };
        let (queue, jobs) = (push.queue.escape_debug(), push.jobs.len());
        log::write(
            &format!("PHP Samovar: {jobs} jobs for the queue `{queue}` were not stored: {why}"),
            "",
        );
    }
}

impl State {
    fn fail(&mut self, kind: c_int, why: &str) -> c_int {
        self.problem = CString::new(why.replace('\0', "?")).ok();
        kind
    }
}

/// Returns the reason why the last push failed.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_problem() -> *const c_char {
    with(|state| state.problem.as_deref().unwrap_or_default().as_ptr())
}

/// Returns the number of ids of the last push; 0: its jobs are stored after the response.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_count() -> usize {
    with(|state| state.ids.len())
}

/// Returns the id of a job of the last push; 0: it is a duplicate.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_id(at: usize) -> i64 {
    with(|state| state.ids.get(at).copied().unwrap_or(0))
}
