//! The Rust half of csrc/boundary.h: what PHP calls of the ring, and the calls into PHP.
//!
//! One process, one thread, one request: the exchange lives in a `static` that only these functions reach.
//! None of them calls PHP, so that no longjmp can pass through a Rust frame.

use crate::log;
use samovar_ring::{
    Lane, LeaveReason, Ledger, Model, SlotIndex, Take, WorkerEnd, WorkerState, monotonic_ns,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};

#[repr(C)]
struct RawOptions {
    ini_file: *const c_char,
    ini_entries: *const c_char,
    app_script: *const c_char,
    root: *const c_char,
    checkpoint_after: *const c_char,
    growth_bytes_max: usize,
    rollback_every: i64,
    frankenphp_worker: bool,
    log_debug: bool,
}

/// An opaque request head in the slot.
#[repr(C)]
pub(crate) struct Head {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn samovar_php_startup(options: *const RawOptions) -> c_int;
    fn samovar_php_shutdown();
    fn samovar_php_version() -> *const c_char;
    fn samovar_php_built_for() -> *const c_char;
    fn samovar_php_run(head: *const Head) -> c_int;
    fn samovar_php_boot(place: c_int) -> c_int;
    fn samovar_php_console(count: c_int, words: *const *const c_char) -> c_int;
    fn samovar_may_take() -> c_int;
    fn samovar_shared_memory(len: usize) -> *mut std::ffi::c_void;
}

/// Exit status of a worker that is to be replaced at once (`SAMOVAR_EXIT_REPLACE` in boundary.h).
const EXIT_REPLACE: c_int = 83;

/// How a run of a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and ended.
    Done,
    /// It was resident until the server stopped.
    Stop,
    /// It was resident until a fatal error.
    Restart,
    /// It was resident until it ended by itself.
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
    cpu: &'static mut CpuMeter,
    body: Vec<u8>,
    /// Set when this process met a checkpoint that it cannot have: it leaves after its request.
    met_checkpoint: bool,
}

/// Whose CPU time is whose. Reading the CPU clock is a system call that costs as much as a short request, so a
/// request shorter than [`CLOCK_WORTH_NS`] is charged the time it took; the next longer one settles the difference.
#[allow(clippy::struct_field_names)] // The unit stands last in every name.
struct CpuMeter {
    /// What the CPU clock said when it was last read.
    read_ns: u64,
    /// Charged since then without reading it.
    guessed_ns: u64,
    /// Charged in all.
    charged_ns: u64,
}

/// Fifty times what reading the CPU clock costs.
const CLOCK_WORTH_NS: u64 = 20_000;

impl CpuMeter {
    fn new() -> CpuMeter {
        CpuMeter { read_ns: thread_cpu_ns(), guessed_ns: 0, charged_ns: 0 }
    }

    /// In memory of its own that no rollback brings back.
    fn surviving() -> &'static mut CpuMeter {
        let meter = CpuMeter::new();
        // SAFETY: no pointers; asks for zeroed memory.
        let at = unsafe { samovar_shared_memory(size_of::<CpuMeter>()) }.cast::<CpuMeter>();
        // SAFETY: page-aligned and large enough, mapped for the life of the process; or null.
        unsafe { at.as_mut() }.map_or_else(
            || Box::leak(Box::new(CpuMeter::new())),
            |place| {
                *place = meter;
                place
            },
        )
    }

    /// The CPU time of a request that took `run_ns`.
    fn charge(&mut self, run_ns: u64) -> u64 {
        let cost = if run_ns < CLOCK_WORTH_NS {
            self.guessed_ns += run_ns;
            run_ns
        } else {
            let now = thread_cpu_ns();
            let cost = now.saturating_sub(self.read_ns).saturating_sub(self.guessed_ns);
            (self.read_ns, self.guessed_ns) = (now, 0);
            // What was guessed too low before is not this request's: it used no more CPU than time.
            cost.min(run_ns)
        };
        self.charged_ns += cost;
        cost
    }
}

struct Global(UnsafeCell<Option<Exchange>>);
// SAFETY: the worker process has one thread; `with` hands out one reference at a time, because no function
// called inside it comes back here (none calls PHP).
unsafe impl Sync for Global {}
static EXCHANGE: Global = Global(UnsafeCell::new(None));

fn with<R>(f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
    // SAFETY: see `Global`: single thread, not re-entered.
    let exchange = unsafe { &mut *EXCHANGE.0.get() };
    exchange.as_mut().map(f)
}

/// After the fork: from now on PHP's calls go to this end of the ring.
pub(crate) fn install(mut ring: WorkerEnd, lanes: &'static [Lane]) {
    // Now, so that what a rollback brings back has joined already.
    ring.join(lanes);
    let exchange = Exchange {
        ring,
        lanes,
        slot: None,
        submitted_ns: 0,
        taken_ns: 0,
        cpu: CpuMeter::surviving(),
        body: Vec::with_capacity(samovar_ring::BODY_BYTES),
        met_checkpoint: false,
    };
    // SAFETY: see `Global`; nothing else has run in this process yet.
    unsafe { *EXCHANGE.0.get() = Some(exchange) };
}

/// Takes a request from the worker's lanes; `None` when the server stops.
pub(crate) fn take() -> Option<*const Head> {
    with(Exchange::take).flatten()
}

/// Whether a script has met a checkpoint that only a booted worker can give it.
pub(crate) fn met_checkpoint() -> bool {
    with(|x| x.met_checkpoint).unwrap_or(false)
}

/// Ends this process; the supervisor replaces it at once.
pub(crate) fn leave(reason: LeaveReason) -> ! {
    with(|x| x.ring.report_leave(reason));
    // SAFETY: ends the process; nothing of it is needed any more.
    unsafe { libc::_exit(EXIT_REPLACE) }
}

/// Reports what the worker does.
pub(crate) fn report(state: WorkerState) {
    with(|x| x.ring.report_state(state));
}

/// Reports which model the application chose.
pub(crate) fn report_model(model: Model) {
    with(|x| x.ring.report_model(model));
}

/// Reports that the application is not resident (any more).
pub(crate) fn report_script_model(lanes: &'static [Lane]) {
    with(|x| {
        x.lanes = lanes;
        x.ring.report_model(Model::Script);
    });
}

impl Exchange {
    fn take(&mut self) -> Option<*const Head> {
        // SAFETY: looks at descriptors of this process; calls no PHP and comes not back here.
        match self.ring.take(self.lanes, || unsafe { samovar_may_take() } != 0) {
            Take::Request(slot, submitted_ns) => {
                self.slot = Some(slot);
                self.submitted_ns = submitted_ns;
                self.taken_ns = monotonic_ns();
                Some(self.ring.request(slot).cast())
            }
            Take::Stop => None,
            Take::Refused => {
                self.ring.report_leave(LeaveReason::Connection);
                // SAFETY: ends the process, which holds no request.
                unsafe { libc::_exit(EXIT_REPLACE) }
            }
        }
    }

    fn finish(&mut self, peak_bytes: u64) {
        let Some(slot) = self.slot.take() else { return };
        let run_ns = monotonic_ns().saturating_sub(self.taken_ns);
        let ledger = Ledger {
            queue_ns: self.taken_ns.saturating_sub(self.submitted_ns),
            run_ns,
            cpu_ns: self.cpu.charge(run_ns),
            peak_bytes,
        };
        self.ring.finish(slot, &ledger);
    }
}

fn thread_cpu_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a local; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

// ---- Rust calls PHP ------------------------------------------------------------------------------

/// The C strings that PHP keeps pointers to for the life of the process.
pub(crate) struct PhpOptions {
    pub(crate) ini_file: Option<CString>,
    pub(crate) ini_entries: CString,
    pub(crate) app: CString,
    pub(crate) root: CString,
    pub(crate) checkpoint_after: CString,
    pub(crate) growth_bytes_max: usize,
    pub(crate) rollback_every: u32,
    pub(crate) frankenphp_worker: bool,
    pub(crate) log_debug: bool,
}

/// Starts the engine. The options are leaked: PHP points into them for ever.
pub(crate) fn php_startup(options: PhpOptions) -> Result<(), &'static str> {
    let options: &'static PhpOptions = Box::leak(Box::new(options));
    let raw = RawOptions {
        ini_file: options.ini_file.as_ref().map_or(std::ptr::null(), |f| f.as_ptr()),
        ini_entries: options.ini_entries.as_ptr(),
        app_script: options.app.as_ptr(),
        root: options.root.as_ptr(),
        checkpoint_after: options.checkpoint_after.as_ptr(),
        growth_bytes_max: options.growth_bytes_max,
        rollback_every: options.rollback_every.into(),
        frankenphp_worker: options.frankenphp_worker,
        log_debug: options.log_debug,
    };
    // SAFETY: all strings live for ever; called once, before any other PHP call, on the only thread.
    match unsafe { samovar_php_startup(&raw const raw) } {
        0 => Ok(()),
        _ => Err("PHP did not start; its messages stand above"),
    }
}

/// Ends the engine.
pub(crate) fn php_shutdown() {
    // SAFETY: after `php_startup`, outside any request.
    unsafe { samovar_php_shutdown() };
}

/// Version of the loaded libphp.
pub(crate) fn php_version() -> String {
    // SAFETY: after `php_startup`.
    let version = unsafe { samovar_php_version() };
    // SAFETY: a NUL-terminated string of the running engine, or a literal.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// Version of the headers this binary was compiled with.
pub(crate) fn php_built_for() -> String {
    // SAFETY: only returns a literal.
    let version = unsafe { samovar_php_built_for() };
    // SAFETY: a literal of the C part.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// Runs the script of a request that [`take`] returned.
pub(crate) fn php_run(head: *const Head) -> Outcome {
    // SAFETY: `head` is the slot's request area, which stays ours until `samovar_finish`.
    Outcome::from_c(unsafe { samovar_php_run(head) })
}

/// Where the front controller is booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the process that workers are forked from.
    Image = 1,
    /// In a worker.
    Worker = 2,
    /// In a process that ends where the image would be taken.
    Rehearsal = 3,
}

/// Runs the front controller without a request.
pub(crate) fn php_boot(place: Place) -> Outcome {
    // SAFETY: after `php_startup`, outside any request.
    Outcome::from_c(unsafe { samovar_php_boot(place as c_int) })
}

/// Runs a script as the command line does, and ends PHP; the exit status.
pub(crate) fn php_console(command: &[&CStr]) -> c_int {
    // argv ends with a null pointer.
    let mut words: Vec<_> = command.iter().map(|word| word.as_ptr()).collect();
    words.push(std::ptr::null());
    let count = c_int::try_from(command.len()).unwrap_or(0);
    // SAFETY: strings with an end that outlive the call; PHP runs in this process for the last time.
    unsafe { samovar_php_console(count, words.as_ptr()) }
}

// ---- PHP calls Rust ------------------------------------------------------------------------------

#[unsafe(no_mangle)]
extern "C" fn samovar_take() -> *const Head {
    take().unwrap_or(std::ptr::null())
}

#[unsafe(no_mangle)]
extern "C" fn samovar_resident(rolls_back: bool) {
    with(|x| {
        // A resident application cannot run other scripts: they would share its globals.
        x.lanes = &[Lane::App];
        x.ring.report_model(if rolls_back { Model::Checkpoint } else { Model::Resident });
    });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_met_checkpoint() {
    with(|x| x.met_checkpoint = true);
}

#[unsafe(no_mangle)]
extern "C" fn samovar_detach() {
    // SAFETY: see `Global`. Not dropped: the parent goes on with what it points to.
    std::mem::forget(unsafe { (*EXCHANGE.0.get()).take() });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_leave(reason: c_int) {
    if let Some(reason) = LeaveReason::from_bits(reason.unsigned_abs()) {
        with(|x| x.ring.report_leave(reason));
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_rolled_back(ns: u64, pages: usize) {
    with(|x| x.ring.report_rollback(ns, pages));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_read_body(to: *mut c_char, room: usize) -> usize {
    with(|x| {
        let Some(slot) = x.slot else { return 0 };
        if x.ring.read_body(slot, room, &mut x.body).is_err() {
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
    status_of(with(|x| x.slot.is_some_and(|slot| x.ring.put_head(slot, status, lines))))
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
    status_of(with(|x| x.slot.is_some_and(|slot| x.ring.write_body(slot, bytes).is_ok())))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_flush() -> c_int {
    status_of(with(|x| x.slot.is_some_and(|slot| x.ring.flush(slot).is_ok())))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_end_answer() {
    // A client that has gone needs no end.
    with(|x| x.slot.map(|slot| x.ring.end_answer(slot)));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_abort_answer() {
    with(|x| {
        if let Some(slot) = x.slot {
            x.ring.abort_answer(slot);
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn samovar_is_cancelled() -> c_int {
    c_int::from(with(|x| x.slot.is_some_and(|slot| x.ring.is_cancelled(slot))).unwrap_or(false))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_finish(peak_bytes: usize) {
    with(|x| x.finish(peak_bytes as u64));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_cpu_ns() -> u64 {
    with(|x| x.cpu.charged_ns).unwrap_or(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_log(message: *const c_char, len: usize, id: *const c_char) {
    // SAFETY: boundary.h: `message` has `len` bytes.
    let message = String::from_utf8_lossy(unsafe { slice(message, len) });
    // SAFETY: boundary.h: `id` is NUL-terminated.
    let id = unsafe { CStr::from_ptr(id) }.to_string_lossy();
    log::write(&message, &id);
}

/// `samovar_event` of boundary.h.
#[repr(C)]
struct RawEvent {
    level: *const c_char,
    message: *const c_char,
    message_len: usize,
    context: *const c_char,
    context_len: usize,
    request_id: *const c_char,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_log_event(event: *const RawEvent) {
    // SAFETY: boundary.h: a live struct.
    let event = unsafe { &*event };
    // SAFETY: boundary.h: NUL-terminated.
    let level = unsafe { CStr::from_ptr(event.level) }.to_string_lossy();
    // SAFETY: boundary.h: NUL-terminated.
    let id = unsafe { CStr::from_ptr(event.request_id) }.to_string_lossy();
    // SAFETY: boundary.h: `message` has `message_len` bytes.
    let message = unsafe { slice(event.message, event.message_len) };
    // SAFETY: boundary.h: `context` has `context_len` bytes.
    let context = unsafe { slice(event.context, event.context_len) };
    let (message, context) = (String::from_utf8_lossy(message), String::from_utf8_lossy(context));
    log::write_event(&level, &message, &context, &id);
}

/// Without an exchange there is a warm-up request, or a process that a request has forked: nobody reads what it
/// answers, and it goes on.
fn status_of(done: Option<bool>) -> c_int {
    if done.unwrap_or(true) { 0 } else { -1 }
}

/// # Safety
/// `at` must have `len` readable bytes while the result is used.
unsafe fn slice<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_requests_are_charged_their_time_and_long_ones_the_clock() {
        let mut meter = CpuMeter::new();
        assert_eq!(meter.charge(5_000), 5_000);
        assert_eq!(meter.charge(6_000), 6_000);
        let begin = std::time::Instant::now();
        while thread_cpu_ns() - meter.read_ns < 3_000_000 {}
        let run_ns = begin.elapsed().as_nanos() as u64;
        let cost = meter.charge(run_ns);
        assert!(cost <= run_ns && cost >= 2_900_000 - 11_000, "{cost} of {run_ns}");
        assert_eq!(meter.charged_ns, 11_000 + cost);
        // A request that slept used little CPU.
        assert!(meter.charge(1_000_000_000) < 500_000_000);
    }
}
