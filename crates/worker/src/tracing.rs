//! A template that traces: measures the cost of the instrumentation once. Each worker sends the
//! call graph of each request.
//!
//! A graph is sent as a sealed memory file (`sealed.rs`).

use crate::request_head::Head;
use crate::{os, sealed};
use samovar_channel::{GraphEnd, GraphNote};
use samovar_ring::Lane;
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn samovar_graph_costs_room() -> *mut c_void;
    fn samovar_graph_calibrate(costs: *mut c_void);
    fn samovar_graph_adopt(costs: *const c_void) -> bool;
    fn samovar_graph_install();
    fn samovar_graph_open();
    fn samovar_graph_close(head: *const Head, peak_bytes: usize, len: *mut usize) -> *const u8;
    fn samovar_graph_forked();
}

/// Maximum duration of the calibration, on a machine under heavy load.
const CALIBRATION_LIMIT: Duration = Duration::from_secs(20);
const CALIBRATION_LOOK: Duration = Duration::from_millis(2);

/// Socket for the call graphs. Empty in a template that does not trace. Set before the first fork.
static GRAPHS: OnceLock<GraphEnd> = OnceLock::new();

/// Turns tracing on in this template.
pub(crate) fn begin(graphs: GraphEnd) {
    // Set once per process.
    let _ = GRAPHS.set(graphs);
}

/// Returns true if this process belongs to a template that traces.
pub(crate) fn is_on() -> bool {
    GRAPHS.get().is_some()
}

/// Returns the socket for the call graphs.
pub(crate) fn socket() -> Option<&'static GraphEnd> {
    GRAPHS.get()
}

/// Returns the lanes from which this worker takes requests, where a worker that does not trace
/// takes them from `lanes`.
pub(crate) fn lanes(lanes: &'static [Lane]) -> &'static [Lane] {
    match (is_on(), lanes) {
        (false, lanes) => lanes,
        (true, [Lane::App]) => &[Lane::AppTrace],
        (true, [Lane::Script]) => &[Lane::ScriptTrace],
        (true, _) => &[Lane::AppTrace, Lane::ScriptTrace],
    }
}

/// Measures the cost of the instrumentation in a child. False: that failed, and no cost is
/// subtracted.
pub(crate) fn calibrate() -> bool {
    // SAFETY: allocates memory.
    let Some(costs) = NonNull::new(unsafe { samovar_graph_costs_room() }) else { return false };
    let parent = os::own_pid();
    // SAFETY: the process has one thread, so the child may continue as an ordinary process.
    match unsafe { libc::fork() } {
        0 => {
            os::die_with_parent(parent);
            // SAFETY: after `php_startup`, outside any request; `costs` is the room for it.
            unsafe { samovar_graph_calibrate(costs.as_ptr()) };
            // SAFETY: ends the process.
            unsafe { libc::_exit(0) }
        }
        -1 => return false,
        pid => wait_for(pid),
    }
    // SAFETY: the memory that the child, which has ended, has written to.
    unsafe { samovar_graph_adopt(costs.as_ptr()) }
}

/// Called when this process becomes a worker.
pub(crate) fn install() {
    if is_on() {
        // SAFETY: allocates memory.
        unsafe { samovar_graph_install() };
    }
}

/// Called when the worker has taken a request.
pub(crate) fn open() {
    if is_on() {
        // SAFETY: empties tables and reads clocks.
        unsafe { samovar_graph_open() };
    }
}

/// Called when the request is about to be finished. Sends its call graph, if there is one, to the
/// reader.
pub(crate) fn close(head: *const Head, peak_bytes: u64) {
    if !is_on() {
        return;
    }
    let mut len = 0;
    // SAFETY: the head is ours until the slot is finished; fills a local.
    let graph = unsafe { samovar_graph_close(head, peak_bytes as usize, &raw mut len) };
    if !graph.is_null() && len > 0 {
        // SAFETY: boundary.h: `len` bytes, which stay valid until the next request is taken.
        send(unsafe { std::slice::from_raw_parts(graph, len) });
    }
}

/// Called when this process is no longer a worker, but the child of a request.
pub(crate) fn forked() {
    // SAFETY: drops the pointers to the recorded call graph.
    unsafe { samovar_graph_forked() };
}

fn wait_for(pid: i32) {
    let begin = Instant::now();
    loop {
        // SAFETY: queries the state of our child; the status has no reader.
        let ended = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        if ended == pid
            || ended < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINTR)
        {
            return;
        }
        if begin.elapsed() > CALIBRATION_LIMIT {
            os::kill(pid);
        }
        std::thread::sleep(CALIBRATION_LOOK);
    }
}

/// Sends a graph, unless the socket is full. Workers do not wait for the reader.
fn send(report: &[u8]) {
    let Some(graphs) = GRAPHS.get() else { return };
    sealed::lend(c"samovar-graph", report, |file| {
        // If the socket is full, the graph is dropped.
        let _ = graphs.send_now(&GraphNote { bytes: report.len() as u64 }, Some(file));
    });
}
