//! Panics: logs where a panic happened. Its effect is decided where it is caught (front's
//! `panic_guard.rs`).

use std::backtrace::Backtrace;
use std::panic::{PanicHookInfo, set_hook};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Minimum time between two backtraces: they are long, and a client that can cause one panic can
/// cause many.
const BACKTRACE_PERIOD: Duration = Duration::from_secs(10);

static LAST_BACKTRACE: Mutex<Option<Instant>> = Mutex::new(None);

/// Makes panics go to the log instead of standard error.
pub(crate) fn report_to_log() {
    set_hook(Box::new(report));
}

fn report(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let backtrace = is_backtrace_due().then(|| Backtrace::force_capture().to_string());
    tracing::error!(
        thread = thread.name().unwrap_or("?"),
        at = panic.location().map(ToString::to_string),
        backtrace,
        "bug in samovar: {} (hint: please report this line)",
        panic.payload_as_str().unwrap_or("no message")
    );
}

fn is_backtrace_due() -> bool {
    // A panic while this lock is held must not cause another one.
    let Ok(mut last) = LAST_BACKTRACE.try_lock() else { return false };
    let is_due = last.is_none_or(|last| last.elapsed() > BACKTRACE_PERIOD);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}
