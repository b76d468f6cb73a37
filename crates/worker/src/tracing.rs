//! A template that traces: what its instrument costs is found out once; each worker sends the call graph of each request.
//!
//! A graph goes as a sealed memory file (`sealed.rs`).

use crate::boundary::Head;
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

/// How long the calibration may take, on a machine that has much else to do.
const CALIBRATION_LIMIT: Duration = Duration::from_secs(20);
const CALIBRATION_LOOK: Duration = Duration::from_millis(2);

/// Where graphs go; nothing in a template that does not trace. Set before the first fork.
static GRAPHS: OnceLock<GraphEnd> = OnceLock::new();

/// This template traces.
pub(crate) fn begin(graphs: GraphEnd) {
    // The only time in this process.
    let _ = GRAPHS.set(graphs);
}

/// Whether this process is of a template that traces.
pub(crate) fn is_on() -> bool {
    GRAPHS.get().is_some()
}

/// Where graphs go.
pub(crate) fn socket() -> Option<&'static GraphEnd> {
    GRAPHS.get()
}

/// The lanes that this worker takes from where others take from `lanes`.
pub(crate) fn lanes(lanes: &'static [Lane]) -> &'static [Lane] {
    match (is_on(), lanes) {
        (false, lanes) => lanes,
        (true, [Lane::App]) => &[Lane::AppTrace],
        (true, [Lane::Script]) => &[Lane::ScriptTrace],
        (true, _) => &[Lane::AppTrace, Lane::ScriptTrace],
    }
}

/// Finds out, in a child, what the instrument costs. False: it has not come about, and nothing is subtracted.
pub(crate) fn calibrate() -> bool {
    // SAFETY: asks for memory.
    let Some(costs) = NonNull::new(unsafe { samovar_graph_costs_room() }) else { return false };
    let parent = os::own_pid();
    // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
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
    // SAFETY: the room that the child, which has ended, has written to.
    unsafe { samovar_graph_adopt(costs.as_ptr()) }
}

/// This process is a worker from now on.
pub(crate) fn install() {
    if is_on() {
        // SAFETY: asks for memory.
        unsafe { samovar_graph_install() };
    }
}

/// The worker has taken a request.
pub(crate) fn open() {
    if is_on() {
        // SAFETY: empties tables and reads clocks.
        unsafe { samovar_graph_open() };
    }
}

/// The request is about to be finished: what it has called goes to its reader, if one is there.
pub(crate) fn close(head: *const Head, peak_bytes: u64) {
    if !is_on() {
        return;
    }
    let mut len = 0;
    // SAFETY: the head is ours until the slot is finished; fills a local.
    let graph = unsafe { samovar_graph_close(head, peak_bytes as usize, &raw mut len) };
    if !graph.is_null() && len > 0 {
        // SAFETY: boundary.h: so many bytes, which stay until the next request is taken.
        send(unsafe { std::slice::from_raw_parts(graph, len) });
    }
}

/// This process is no worker any more: it is a request's child.
pub(crate) fn forked() {
    // SAFETY: forgets where graphs are taken down.
    unsafe { samovar_graph_forked() };
}

fn wait_for(pid: i32) {
    let begin = Instant::now();
    loop {
        // SAFETY: asks after a child of ours; the status has no reader.
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

/// Sends a graph, unless there is no room: nobody waits for a reader.
fn send(report: &[u8]) {
    let Some(graphs) = GRAPHS.get() else { return };
    sealed::lend(c"samovar-graph", report, |file| {
        // Without room nobody reads it: that is all.
        let _ = graphs.send_now(&GraphNote { bytes: report.len() as u64 }, Some(file));
    });
}
