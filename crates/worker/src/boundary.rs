//! The Rust half of csrc/boundary.h: ring functions that PHP calls, and calls into PHP.
//!
//! There is one process, one thread, one request. The exchange is a `static` that only these
//! functions reach. None of them calls PHP, so no longjmp can pass through a Rust frame.

mod libphp;
mod logs;

pub(crate) use libphp::{
    has_directive, jit, opcache, php_api_built_for, php_built_for, php_code, php_shutdown,
    php_startup, php_version, sessions, setup,
};

use crate::bytes::slice;
use crate::jobs;
use crate::meter::Meter;
use crate::os;
use crate::request_head::Head;
use crate::shared;
use crate::tracing;
use samovar_channel::EXIT_REPLACE;
use samovar_ring::RunPermit;
use samovar_ring::{
    Ending, Lane, LeaveReason, MessageLevel, Model, Overrun, SlotIndex, Take, Usage, UsageDetails,
    WorkerEnd, WorkerState, monotonic_ns,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

unsafe extern "C" {
    fn samovar_php_run(head: *const Head) -> c_int;
    fn samovar_php_boot(place: c_int) -> c_int;
    fn samovar_php_console(count: c_int, words: *const *const c_char) -> c_int;
    fn samovar_php_compile();
    fn samovar_php_tests(
        driver: *const c_char,
        script: *const c_char,
        binary: *const c_char,
    ) -> c_int;
    fn samovar_tainted() -> c_int;
    fn samovar_is_ours();
    fn samovar_may_take() -> c_int;
    fn samovar_request_accounting_install();
    fn samovar_request_accounting_open(
        head: *const Head,
        taken_ns: u64,
        boot_ago_ns: u64,
        boot_ns: u64,
    );
    fn samovar_request_accounting_close(len: *mut usize, ending: *mut u32) -> *const u8;
    fn samovar_request_accounting_client(times: u32, ns: u64);
    fn samovar_request_accounting_forked();
    fn samovar_idle_asked() -> bool;
    fn samovar_permit_open();
    fn samovar_permit_close();
}

/// The way in which a run of a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The script ran and ended.
    Done,
    /// The script was resident until the server stopped.
    Stop,
    /// The script was resident until a fatal error.
    Restart,
    /// The script was resident until its loop over requests ended.
    Ended,
}

impl Outcome {
    fn from_c(code: c_int) -> Outcome {
        match code {
            1 => Outcome::Stop,
            2 => Outcome::Restart,
            3 => Outcome::Ended,
            _ => Outcome::Done,
        }
    }
}

/// The worker's end of the ring and the request it runs.
struct Exchange {
    ring: WorkerEnd,
    lanes: &'static [Lane],
    slot: Option<SlotIndex>,
    submitted_ns: u64,
    taken_ns: u64,
    meter: &'static mut Meter,
    body: Vec<u8>,
    /// Set when this process met a checkpoint that it cannot provide: it leaves after its request.
    met_checkpoint: bool,
    /// Status of the response; 0: it has none yet.
    status: u16,
}

struct Global(UnsafeCell<Option<Exchange>>);
// SAFETY: the worker process has one thread. `with` hands out one reference at a time, because no
// function called inside it calls back into this file (none calls PHP).
unsafe impl Sync for Global {}
// Next to the other variables that each request writes (boundary.h).
#[unsafe(link_section = "samovar_of_request")]
static EXCHANGE: Global = Global(UnsafeCell::new(None));

/// The worker's run permit. It is separate from the exchange, because any wait may release it, also
/// a wait inside a function of this file.
static TURN: OnceLock<RunPermit> = OnceLock::new();

fn with<R>(f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
    // SAFETY: see `Global`: single thread, not re-entered.
    let exchange = unsafe { &mut *EXCHANGE.0.get() };
    exchange.as_mut().map(f)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_generation() -> u32 {
    with(|exchange| exchange.ring.generation()).unwrap_or(0)
}

/// Called after the fork: from now on PHP's calls use this end of the ring.
pub(crate) fn install(mut ring: WorkerEnd, lanes: &'static [Lane]) {
    // SAFETY: records the number of this process.
    unsafe { samovar_is_ours() };
    // SAFETY: allocates memory; no other function of the request accounting has been called in this
    // process.
    unsafe { samovar_request_accounting_install() };
    tracing::install();
    os::set_scheduling();
    // Before any rollback, so that the state which a rollback restores has already joined.
    ring.join(lanes);
    // Set once per process: no worker is forked from another.
    let _ = TURN.set(ring.turn());
    shared::begin();
    let exchange = Exchange {
        ring,
        lanes,
        slot: None,
        submitted_ns: 0,
        taken_ns: 0,
        meter: Meter::persistent(),
        body: Vec::with_capacity(samovar_ring::BODY_BYTES),
        met_checkpoint: false,
        status: 0,
    };
    // SAFETY: see `Global`; nothing else has run in this process yet.
    unsafe { *EXCHANGE.0.get() = Some(exchange) };
}

/// Takes a request from the worker's lanes. `None`: the server stops.
pub(crate) fn take() -> Option<*const Head> {
    with(Exchange::take).flatten()
}

/// Returns true if a script has met a checkpoint that only a booted worker can provide.
pub(crate) fn met_checkpoint() -> bool {
    with(|x| x.met_checkpoint).unwrap_or(false)
}

/// Returns the change that the last request made to this process and that no rollback undoes.
pub(crate) fn taint() -> Option<LeaveReason> {
    // SAFETY: reads the state of this process; calls neither PHP nor this file.
    LeaveReason::from_code(unsafe { samovar_tainted() }.unsigned_abs())
}

/// Ends this process. The supervisor replaces it at once.
pub(crate) fn leave(reason: LeaveReason) -> ! {
    with(|x| x.ring.report_leave(reason));
    // SAFETY: ends the process; nothing in it is needed any more.
    unsafe { libc::_exit(EXIT_REPLACE) }
}

/// Reports the state of the worker.
pub(crate) fn report(state: WorkerState) {
    with(|x| {
        x.ring.report_state(state);
        if state == WorkerState::Booting {
            x.meter.boots();
        }
    });
}

/// Reports the model that the application chose.
pub(crate) fn report_model(model: Model) {
    with(|x| x.ring.report_model(model));
}

/// Reports that the application is not resident, or no longer resident.
pub(crate) fn report_script_model(lanes: &'static [Lane]) {
    with(|x| {
        x.lanes = lanes;
        x.ring.report_model(Model::Script);
    });
    shared::scripts();
}

impl Exchange {
    fn take(&mut self) -> Option<*const Head> {
        self.meter.looks_for_work();
        // SAFETY: reads the state of this process's descriptors; calls neither PHP nor this file.
        match self.ring.take(self.lanes, || unsafe { samovar_may_take() } != 0) {
            Take::Request(slot, submitted_ns) => {
                self.slot = Some(slot);
                self.submitted_ns = submitted_ns;
                self.taken_ns = monotonic_ns();
                self.meter.idled(self.ring.take_idle_sleeps());
                let head = self.ring.request(slot).cast();
                let boot = self.meter.first_boot(self.taken_ns);
                // SAFETY: the head stays ours until the slot is finished.
                unsafe {
                    samovar_request_accounting_open(head, self.taken_ns, boot.ago_ns, boot.ns);
                };
                tracing::open();
                self.status = 0;
                jobs::open();
                if TURN.get().is_some_and(RunPermit::is_counted) {
                    // SAFETY: sets flags of this thread.
                    unsafe { samovar_permit_open() };
                }
                Some(head)
            }
            Take::Stop => None,
            // SAFETY: reads a flag.
            Take::Refused if unsafe { samovar_idle_asked() } => None,
            Take::Refused => {
                self.ring.report_leave(LeaveReason::Connection);
                // SAFETY: ends the process, which holds no request.
                unsafe { libc::_exit(EXIT_REPLACE) }
            }
        }
    }

    fn finish(&mut self, peak_bytes: u64, grown_bytes: i64) {
        shared::let_go();
        let Some(slot) = self.slot.take() else { return };
        let pushes = jobs::deferred(self.status);
        if !pushes.is_empty() {
            // The client does not wait for the store. It may have disconnected.
            let _ = self.ring.end_response(slot);
            jobs::push_deferred(&pushes);
        }
        tracing::close(self.ring.request(slot).cast(), peak_bytes);
        let (mut len, mut ending) = (0, 0);
        // SAFETY: clears flags of this thread.
        unsafe { samovar_permit_close() };
        // SAFETY: fills two locals.
        let report = unsafe { samovar_request_accounting_close(&raw mut len, &raw mut ending) };
        if len > 0 {
            // SAFETY: boundary.h: `len` bytes, which stay valid until the next request is taken.
            self.ring.put_report(slot, unsafe { std::slice::from_raw_parts(report, len) });
        }
        let run_ns = monotonic_ns().saturating_sub(self.taken_ns);
        let charge = self.meter.charge(run_ns);
        let usage = Usage {
            queue_ns: self.taken_ns.saturating_sub(self.submitted_ns),
            run_ns,
            cpu_ns: charge.cpu_ns,
            peak_bytes,
            ending: Ending::from_code(ending).unwrap_or_default(),
            details: UsageDetails { grown_bytes, ..charge.details },
            ..Usage::default()
        };
        self.ring.finish(slot, &usage);
    }

    /// Adds the time that the request has just waited for its client to the request accounting.
    fn note_client(&mut self) {
        let (times, ns) = self.ring.take_client_waits();
        if times > 0 {
            // SAFETY: reads and records the current position in PHP code; calls neither PHP nor
            // this file.
            unsafe { samovar_request_accounting_client(times, ns) };
        }
    }
}

// ---- Rust calls PHP ---------------------------------------------------------------------------

/// Runs the script of a request that [`take`] returned.
pub(crate) fn php_run(head: *const Head) -> Outcome {
    // SAFETY: `head` is the slot's request area, which stays ours until `samovar_finish`.
    Outcome::from_c(unsafe { samovar_php_run(head) })
}

/// Process in which the front controller is booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BootPlace {
    /// The process that workers are forked from.
    Image = 1,
    /// A worker, which keeps the application for itself.
    Worker = 2,
    /// A process that ends where the image would be taken.
    Rehearsal = 3,
}

/// Runs the front controller without a request.
pub(crate) fn php_boot(place: BootPlace) -> Outcome {
    // SAFETY: after `php_startup`, outside any request.
    Outcome::from_c(unsafe { samovar_php_boot(place as c_int) })
}

/// Runs a script as the PHP command line does, then shuts PHP down. Returns the exit status.
pub(crate) fn php_console(command: &[&CStr]) -> c_int {
    // argv ends with a null pointer.
    let mut words: Vec<_> = command.iter().map(|word| word.as_ptr()).collect();
    words.push(std::ptr::null());
    let count = c_int::try_from(command.len()).unwrap_or(0);
    // SAFETY: NUL-terminated strings that outlive the call; PHP runs in this process for the last
    // time.
    unsafe { samovar_php_console(count, words.as_ptr()) }
}

/// Runs the driver of a test run as the command line `script`. Returns the exit status, also in
/// each child that an order has forked.
pub(crate) fn php_tests(driver: &CStr, script: &CStr, binary: &CStr) -> c_int {
    // SAFETY: NUL-terminated strings that outlive the call; PHP runs in this process for the only
    // time.
    unsafe { samovar_php_tests(driver.as_ptr(), script.as_ptr(), binary.as_ptr()) }
}

/// Compiles the files of `samovar_next_source`.
pub(crate) fn php_compile() {
    // SAFETY: after `php_startup`; PHP compiles in this process only.
    unsafe { samovar_php_compile() }
}

// ---- PHP calls Rust ---------------------------------------------------------------------------

#[unsafe(no_mangle)]
extern "C" fn samovar_take() -> *const Head {
    take().unwrap_or(std::ptr::null())
}

#[unsafe(no_mangle)]
extern "C" fn samovar_resident(rolls_back: bool) {
    with(|x| {
        // A resident application cannot run other scripts: they would share its globals.
        x.lanes = tracing::lanes(&[Lane::App]);
        x.ring.report_model(if rolls_back { Model::Checkpoint } else { Model::Resident });
        x.meter.serves();
    });
    shared::resident(rolls_back);
}

#[unsafe(no_mangle)]
extern "C" fn samovar_place_among_workers() -> std::ffi::c_uint {
    with(|x| x.ring.place()).and_then(|place| place.try_into().ok()).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_met_checkpoint(is_sample: bool) {
    // A worker that takes only samples runs next to workers that are booted ahead.
    with(|x| x.met_checkpoint |= !is_sample || x.lanes.contains(&Lane::App));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_permit_pause() -> bool {
    TURN.get().is_some_and(RunPermit::pause)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_permit_pass() {
    if let Some(turn) = TURN.get() {
        turn.pass_on();
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_permit_resume() {
    if let Some(turn) = TURN.get() {
        turn.resume();
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_detach() {
    // SAFETY: clears flags of this thread: the run permit belongs to the parent.
    unsafe { samovar_permit_close() };
    // SAFETY: drops the state of the request accounting.
    unsafe { samovar_request_accounting_forked() };
    jobs::forked();
    tracing::forked();
    // SAFETY: see `Global`. Not dropped: the parent continues to use the resources it points to.
    std::mem::forget(unsafe { (*EXCHANGE.0.get()).take() });
    shared::forked();
}

#[unsafe(no_mangle)]
extern "C" fn samovar_leave(reason: c_int) {
    if let Some(reason) = LeaveReason::from_code(reason.unsigned_abs()) {
        with(|x| x.ring.report_leave(reason));
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_connection_was_reset() {
    with(|x| x.ring.report_connection_reset());
}

#[unsafe(no_mangle)]
extern "C" fn samovar_rolls_back() {
    with(|x| x.ring.report_return());
}

#[unsafe(no_mangle)]
extern "C" fn samovar_rolled_back(ns: u64, pages: usize, searched: bool) {
    with(|x| {
        x.ring.report_rollback(ns, pages, searched);
        x.meter.rolled_back(ns, pages);
    });
    shared::rolled_back();
}

#[unsafe(no_mangle)]
extern "C" fn samovar_count_message(level: u32) {
    if let Some(level) = MessageLevel::from_code(level) {
        with(|x| x.ring.report_message(level));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_read_body(to: *mut c_char, room: usize) -> usize {
    with(|x| {
        let Some(slot) = x.slot else { return 0 };
        let is_broken = x.ring.read_body(slot, room, &mut x.body).is_err();
        x.note_client();
        if is_broken {
            return 0;
        }
        // SAFETY: `read_body` appended at most `room` bytes, and the caller's buffer has that room.
        unsafe { std::ptr::copy_nonoverlapping(x.body.as_ptr(), to.cast(), x.body.len()) };
        x.body.len()
    })
    .unwrap_or(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_put_head(status: c_int, lines: *const c_char, len: usize) -> c_int {
    // SAFETY: boundary.h: `lines` has `len` bytes.
    let lines = unsafe { slice(lines, len) };
    let status = u16::try_from(status).unwrap_or(500);
    status_of(with(|x| {
        x.status = status;
        x.slot.is_some_and(|slot| x.ring.put_head(slot, status, lines))
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_put_interim(status: c_int, lines: *const c_char, len: usize) -> c_int {
    // SAFETY: boundary.h: `lines` has `len` bytes.
    let lines = unsafe { slice(lines, len) };
    let Ok(status) = u16::try_from(status) else { return -1 };
    status_of(with(|x| x.slot.is_some_and(|slot| x.ring.put_interim(slot, status, lines))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_write(bytes: *const c_char, len: usize) -> c_int {
    // SAFETY: boundary.h: `bytes` has `len` bytes.
    let bytes = unsafe { slice(bytes, len) };
    status_of(with(|x| {
        let done = x.slot.is_some_and(|slot| x.ring.write_body(slot, bytes).is_ok());
        x.note_client();
        done
    }))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_flush() -> c_int {
    status_of(with(|x| x.slot.is_some_and(|slot| x.ring.flush(slot).is_ok())))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_end_response() {
    // A client that has disconnected needs no end of the response.
    with(|x| x.slot.map(|slot| x.ring.end_response(slot)));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_abort_response() {
    with(|x| {
        if let Some(slot) = x.slot {
            x.ring.abort_response(slot);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_request_failed() {
    jobs::fail();
}

#[unsafe(no_mangle)]
extern "C" fn samovar_is_cancelled() -> c_int {
    c_int::from(with(|x| x.slot.is_some_and(|slot| x.ring.is_cancelled(slot))).unwrap_or(false))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_overrun() -> *const c_char {
    let overrun = with(|x| x.slot.and_then(|slot| x.ring.overrun(slot))).flatten();
    let name = overrun.map(|overrun| match overrun {
        Overrun::Response => c"timeouts.response",
        Overrun::Request => c"timeouts.request",
        Overrun::After => c"timeouts.post_response",
        Overrun::Drain => c"timeouts.drain",
    });
    name.map_or(std::ptr::null(), CStr::as_ptr)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_extend(more_ms: u64) -> u64 {
    with(|x| {
        let run_ms = monotonic_ns().saturating_sub(x.taken_ns) / 1_000_000;
        x.slot.map_or(0, |slot| x.ring.extend(slot, run_ms, more_ms))
    })
    .unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_outlive_client(outlives: bool) {
    with(|x| {
        if let Some(slot) = x.slot {
            x.ring.outlive_client(slot, outlives);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_finish(peak_bytes: usize, grown_bytes: i64) {
    with(|x| x.finish(peak_bytes as u64, grown_bytes));
}

/// `samovar_so_far` of boundary.h, which asserts its size.
#[repr(C)]
#[derive(Default)]
struct SoFar {
    wall_ns: u64,
    cpu_ns: u64,
    response_bytes: u64,
    requests: u64,
}

#[unsafe(no_mangle)]
extern "C" fn samovar_request_so_far() -> SoFar {
    let so_far = |x: &mut Exchange| SoFar {
        wall_ns: monotonic_ns().saturating_sub(x.taken_ns),
        cpu_ns: x.meter.so_far_ns(),
        response_bytes: x.ring.response_bytes(),
        requests: x.ring.requests(),
    };
    with(|x| x.slot.is_some().then(|| so_far(x))).flatten().unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn samovar_cpu_ns() -> u64 {
    with(|x| x.meter.charged_ns()).unwrap_or(0)
}

/// Converts a result to a C status. Without an exchange this is a warm-up request, or a process
/// that a request has forked. Its response has no reader, and it continues.
fn status_of(done: Option<bool>) -> c_int {
    if done.unwrap_or(true) { 0 } else { -1 }
}
