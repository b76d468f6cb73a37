//! Writes PHP's messages to standard error, one line each, with the request they belong to.

use crate::os;
use samovar_log::{Detail, Format, Line, Process};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

static SILENT: AtomicBool = AtomicBool::new(false);
static JSON: AtomicBool = AtomicBool::new(false);
/// Set once, before the first fork.
static POOL: OnceLock<(&str, Detail)> = OnceLock::new();

/// Maximum wait for room in a full pipe. After that time the server has ended, or is stopped.
const ROOM_LIMIT: Duration = Duration::from_secs(1);

/// Maximum length of a message. The rest is cut off, so that one line cannot fill a disk.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// Replacement for an object longer than that.
const TOO_LONG: &str = r#"{"context":"too long"}"#;

/// Selects the format of lines: JSON objects or text.
pub(crate) fn use_json(json: bool) {
    JSON.store(json, Ordering::Relaxed);
}

/// Adds the pool's name to all lines. Empty: there is only one pool.
pub(crate) fn name(pool: &str) {
    if !pool.is_empty() {
        let _only_once = POOL.set(("pool", Detail::Quoted(pool.to_owned())));
    }
}

/// Stops all log output of this process.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes one line. Each worker has its own pipe, so lines do not mix.
pub(crate) fn write(message: &str, request_id: &str) {
    put(None, cut(message), "", request_id);
}

/// Writes one line with a level and a JSON object, which may be empty.
pub(crate) fn write_event(level: &str, message: &str, context: &str, request_id: &str) {
    let context = if context.len() > MESSAGE_BYTES_MAX { TOO_LONG } else { context };
    put(Some(level), cut(message), context, request_id);
}

fn cut(message: &str) -> &str {
    message[..message.floor_char_boundary(message.len().min(MESSAGE_BYTES_MAX))].trim_end()
}

fn put(level: Option<&str>, message: &str, context: &str, request_id: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let format = if JSON.load(Ordering::Relaxed) { Format::Json } else { Format::Text };
    let process = Some(Process { pid: std::process::id(), request_id });
    let at = SystemTime::now();
    let details = POOL.get().map_or(&[][..], std::slice::from_ref);
    let line = Line { at, level, target: "php", process, message, details, context };
    write_all(line.render(format).as_bytes());
}

/// Writes all bytes. The server reads this pipe at once, even when nothing reads the server's own
/// output. If standard error fails, there is no place to report the failure.
fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: a live buffer with its length.
        let written = unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => match io::Error::last_os_error().kind() {
                io::ErrorKind::Interrupted => {}
                // A script has set `O_NONBLOCK`.
                io::ErrorKind::WouldBlock if os::wait_for_room(io::stderr(), ROOM_LIMIT) => {}
                _ => return,
            },
        }
    }
}
