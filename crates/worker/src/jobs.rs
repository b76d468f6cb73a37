//! `Samovar\queue()`: pushes jobs to the server, which stores them. None of these functions calls
//! PHP.
//!
//! C adds the jobs of a push one after another, then sends them together.

use crate::bytes::slice;
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

const STORED: c_int = 0;
const WRONG: c_int = 1;
const FAILED: c_int = 2;

struct State {
    jobs: Vec<NewJob>,
    ids: Vec<i64>,
    problem: Option<CString>,
}

struct Global(UnsafeCell<State>);
// SAFETY: the process has one thread. `with` hands out one reference at a time, because no function
// called inside it calls back into this file (none calls PHP).
unsafe impl Sync for Global {}
static STATE: Global =
    Global(UnsafeCell::new(State { jobs: Vec::new(), ids: Vec::new(), problem: None }));

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

/// Returns the id of a job of the last push; 0: it is a duplicate.
#[unsafe(no_mangle)]
extern "C" fn samovar_jobs_id(at: usize) -> i64 {
    with(|state| state.ids.get(at).copied().unwrap_or(0))
}
