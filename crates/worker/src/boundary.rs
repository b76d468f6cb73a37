//! The Rust half of csrc/boundary.h: what PHP calls of the ring, and the calls into PHP.
//!
//! One process, one thread, one request: the exchange lives in a `static` that only these functions reach.
//! None of them calls PHP, so that no longjmp can pass through a Rust frame.

mod libphp;
mod logs;

pub(crate) use libphp::{
    has_directive, jit, php_api_built_for, php_built_for, php_code, php_shutdown, php_startup,
    php_version, sessions,
};

use crate::meter::Meter;
use crate::shared;
use crate::tracing;
use samovar_channel::EXIT_REPLACE;
use samovar_ring::Turn;
use samovar_ring::{
    Ending, Lane, LeaveReason, Model, Overrun, SlotIndex, Take, Usage, WorkerEnd, WorkerState,
    monotonic_ns,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

/// An opaque request head in the slot.
#[repr(C)]
pub(crate) struct Head {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn samovar_php_run(head: *const Head) -> c_int;
    fn samovar_php_boot(place: c_int) -> c_int;
    fn samovar_php_console(count: c_int, words: *const *const c_char) -> c_int;
    fn samovar_stained() -> c_int;
    fn samovar_is_ours();
    fn samovar_may_take() -> c_int;
    fn samovar_ledger_install();
    fn samovar_ledger_open(head: *const Head, taken_ns: u64, boot_ago_ns: u64, boot_ns: u64);
    fn samovar_ledger_close(len: *mut usize, ending: *mut u32) -> *const u8;
    fn samovar_ledger_client(times: u32, ns: u64);
    fn samovar_ledger_forked();
    fn samovar_idle_asked() -> bool;
    fn samovar_turn_open();
    fn samovar_turn_close();
}

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
    meter: &'static mut Meter,
    body: Vec<u8>,
    /// Set when this process met a checkpoint that it cannot have: it leaves after its request.
    met_checkpoint: bool,
}

struct Global(UnsafeCell<Option<Exchange>>);
// SAFETY: the worker process has one thread; `with` hands out one reference at a time, because no function
// called inside it comes back here (none calls PHP).
unsafe impl Sync for Global {}
// Beside what else each request writes (boundary.h).
#[unsafe(link_section = "samovar_of_request")]
static EXCHANGE: Global = Global(UnsafeCell::new(None));

/// The worker's turn, beside the exchange: the waits that end it may be anybody's, a call of this file's too.
static TURN: OnceLock<Turn> = OnceLock::new();

fn with<R>(f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
    // SAFETY: see `Global`: single thread, not re-entered.
    let exchange = unsafe { &mut *EXCHANGE.0.get() };
    exchange.as_mut().map(f)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_generation() -> u32 {
    with(|exchange| exchange.ring.generation()).unwrap_or(0)
}

/// After the fork: from now on PHP's calls go to this end of the ring.
pub(crate) fn install(mut ring: WorkerEnd, lanes: &'static [Lane]) {
    // SAFETY: notes the number of this process.
    unsafe { samovar_is_ours() };
    // SAFETY: asks for memory; nothing else of it has been called in this process.
    unsafe { samovar_ledger_install() };
    tracing::install();
    // Now, so that what a rollback brings back has joined already.
    ring.join(lanes);
    // The only time in this process: no worker is forked from another.
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

/// What the last request has changed of this process and nobody puts back.
pub(crate) fn stain() -> Option<LeaveReason> {
    // SAFETY: looks at this process; calls no PHP and comes not back here.
    LeaveReason::from_code(unsafe { samovar_stained() }.unsigned_abs())
}

/// Ends this process; the supervisor replaces it at once.
pub(crate) fn leave(reason: LeaveReason) -> ! {
    with(|x| x.ring.report_leave(reason));
    // SAFETY: ends the process; nothing of it is needed any more.
    unsafe { libc::_exit(EXIT_REPLACE) }
}

/// Reports what the worker does.
pub(crate) fn report(state: WorkerState) {
    with(|x| {
        x.ring.report_state(state);
        if state == WorkerState::Booting {
            x.meter.boots();
        }
    });
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
    shared::scripts();
}

impl Exchange {
    fn take(&mut self) -> Option<*const Head> {
        self.meter.looks_for_work();
        // SAFETY: looks at descriptors of this process; calls no PHP and comes not back here.
        match self.ring.take(self.lanes, || unsafe { samovar_may_take() } != 0) {
            Take::Request(slot, submitted_ns) => {
                self.slot = Some(slot);
                self.submitted_ns = submitted_ns;
                self.taken_ns = monotonic_ns();
                self.meter.idled(self.ring.take_idle_sleeps());
                let head = self.ring.request(slot).cast();
                let boot = self.meter.first_boot(self.taken_ns);
                // SAFETY: the head stays ours until the slot is finished.
                unsafe { samovar_ledger_open(head, self.taken_ns, boot.ago_ns, boot.ns) };
                tracing::open();
                if TURN.get().is_some_and(Turn::is_counted) {
                    // SAFETY: sets flags of this thread.
                    unsafe { samovar_turn_open() };
                }
                Some(head)
            }
            Take::Stop => None,
            // SAFETY: looks at a flag.
            Take::Refused if unsafe { samovar_idle_asked() } => None,
            Take::Refused => {
                self.ring.report_leave(LeaveReason::Connection);
                // SAFETY: ends the process, which holds no request.
                unsafe { libc::_exit(EXIT_REPLACE) }
            }
        }
    }

    fn finish(&mut self, peak_bytes: u64) {
        shared::let_go();
        let Some(slot) = self.slot.take() else { return };
        tracing::close(self.ring.request(slot).cast(), peak_bytes);
        let (mut len, mut ending) = (0, 0);
        // SAFETY: clears flags of this thread.
        unsafe { samovar_turn_close() };
        // SAFETY: fills two locals.
        let report = unsafe { samovar_ledger_close(&raw mut len, &raw mut ending) };
        if len > 0 {
            // SAFETY: boundary.h: so many bytes, which stay until the next request is taken.
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
            details: charge.details,
            ..Usage::default()
        };
        self.ring.finish(slot, &usage);
    }

    /// Tells the ledger of the time that the request has just waited for its client.
    fn note_client(&mut self) {
        let (times, ns) = self.ring.take_client_waits();
        if times > 0 {
            // SAFETY: looks at where PHP stands, and notes it; calls no PHP and comes not back here.
            unsafe { samovar_ledger_client(times, ns) };
        }
    }
}

// ---- Rust calls PHP ------------------------------------------------------------------------------

/// Runs the script of a request that [`take`] returned.
pub(crate) fn php_run(head: *const Head) -> Outcome {
    // SAFETY: `head` is the slot's request area, which stays ours until `samovar_finish`.
    Outcome::from_c(unsafe { samovar_php_run(head) })
}

/// Where the front controller is booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BootPlace {
    /// In the process that workers are forked from.
    Image = 1,
    /// In a worker, which keeps the application for itself.
    Worker = 2,
    /// In a process that ends where the image would be taken.
    Rehearsal = 3,
}

/// Runs the front controller without a request.
pub(crate) fn php_boot(place: BootPlace) -> Outcome {
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
    // Who runs samples alone runs beside workers that are booted ahead.
    with(|x| x.met_checkpoint |= !is_sample || x.lanes.contains(&Lane::App));
}

#[unsafe(no_mangle)]
extern "C" fn samovar_turn_pause() -> bool {
    TURN.get().is_some_and(Turn::pause)
}

#[unsafe(no_mangle)]
extern "C" fn samovar_turn_pass() {
    if let Some(turn) = TURN.get() {
        turn.pass_on();
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_turn_resume() {
    if let Some(turn) = TURN.get() {
        turn.resume();
    }
}

#[unsafe(no_mangle)]
extern "C" fn samovar_detach() {
    // SAFETY: clears flags of this thread: the turn is the parent's.
    unsafe { samovar_turn_close() };
    // SAFETY: forgets what the ledger was.
    unsafe { samovar_ledger_forked() };
    tracing::forked();
    // SAFETY: see `Global`. Not dropped: the parent goes on with what it points to.
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
extern "C" fn samovar_overrun() -> *const c_char {
    let overrun = with(|x| x.slot.and_then(|slot| x.ring.overrun(slot))).flatten();
    let name = overrun.map(|overrun| match overrun {
        Overrun::Answer => c"timeouts.answer",
        Overrun::Request => c"timeouts.request",
        Overrun::After => c"timeouts.after",
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
extern "C" fn samovar_finish(peak_bytes: usize) {
    with(|x| x.finish(peak_bytes as u64));
}

/// `samovar_so_far` of boundary.h, which asserts its size.
#[repr(C)]
#[derive(Default)]
struct SoFar {
    wall_ns: u64,
    cpu_ns: u64,
    answer_bytes: u64,
    requests: u64,
}

#[unsafe(no_mangle)]
extern "C" fn samovar_request_so_far() -> SoFar {
    let so_far = |x: &mut Exchange| SoFar {
        wall_ns: monotonic_ns().saturating_sub(x.taken_ns),
        cpu_ns: x.meter.so_far_ns(),
        answer_bytes: x.ring.answer_bytes(),
        requests: x.ring.requests(),
    };
    with(|x| x.slot.is_some().then(|| so_far(x))).flatten().unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn samovar_cpu_ns() -> u64 {
    with(|x| x.meter.charged_ns()).unwrap_or(0)
}

/// Without an exchange there is a warm-up request, or a process that a request has forked: nobody reads what it
/// answers, and it goes on.
fn status_of(done: Option<bool>) -> c_int {
    if done.unwrap_or(true) { 0 } else { -1 }
}

/// # Safety
/// `at` must have `len` readable bytes while the result is used.
pub(crate) unsafe fn slice<'a>(at: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(at.cast(), len) }
}

#[cfg(test)]
mod tests {
    use samovar_ring::request::{FLAG_APP, RequestHead, encode};

    unsafe extern "C" {
        static samovar_head_offsets: [usize; 22];
    }

    /// request.h has every field where crates/ring puts it.
    #[test]
    #[allow(clippy::needless_update)] // A field that is not listed here is C's by ring.h, which is generated.
    fn c_finds_each_field_of_a_head() {
        let texts: [&[u8]; 16] = std::array::from_fn(|at| &b"abcdefghijklmnop"[at..]);
        let head = RequestHead {
            method: texts[0],
            target: texts[1],
            query: texts[2],
            protocol: texts[3],
            script_filename: texts[4],
            script_name: texts[5],
            document_uri: texts[6],
            path_info: texts[7],
            document_root: texts[8],
            server_name: texts[9],
            server_addr: texts[10],
            remote_addr: texts[11],
            request_id: texts[12],
            content_type: Some(texts[13]),
            cookie: Some(texts[14]),
            authorization: Some(texts[15]),
            content_length: Some(0x1234_5678_9abc),
            server_port: 81,
            remote_port: 82,
            flags: FLAG_APP,
            ..RequestHead::default()
        };
        let (mut bytes, header) = (Vec::new(), (&b"name"[..], &b"value"[..]));
        encode(&head, [header; 3], &mut bytes).expect("it is short");
        // SAFETY: a constant of the C part, of that length (boundary.h).
        let offsets = unsafe { &samovar_head_offsets };
        let number = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let text = |at: usize| {
            let (from, len) = (number(at) as usize, number(at + 4) as usize);
            &bytes[from..from + len]
        };
        for (at, expected) in texts.into_iter().enumerate() {
            assert_eq!(text(offsets[at]), expected, "field {at}");
        }
        let length = std::array::from_fn(|i| bytes[offsets[16] + i]);
        assert_eq!(i64::from_ne_bytes(length), 0x1234_5678_9abc);
        let numbers = [17, 18, 19, 20].map(|field| number(offsets[field]));
        assert_eq!(numbers, [81, 82, FLAG_APP, 3]);
        let table = number(offsets[21]) as usize;
        assert_eq!((text(table), text(table + 8)), header);
    }
}
