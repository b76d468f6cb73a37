//! PHP's messages → standard error, one line each, with the request they belong to.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

static SILENT: AtomicBool = AtomicBool::new(false);
static JSON: AtomicBool = AtomicBool::new(false);

/// Longest message; the rest is cut, so that one line cannot fill a disk.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// From now on lines are JSON objects.
pub(crate) fn use_json(json: bool) {
    JSON.store(json, Ordering::Relaxed);
}

/// From now on nothing is written.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Writes one line in one system call, so that lines of several workers do not mix.
pub(crate) fn write(message: &str, request_id: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let cut = message.floor_char_boundary(message.len().min(MESSAGE_BYTES_MAX));
    let line = format_line(message[..cut].trim_end(), request_id, SystemTime::now());
    // SAFETY: a live buffer with its length; a failing standard error has nobody to be told.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

fn format_line(message: &str, request_id: &str, now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = utc(since.as_secs());
    let pid = std::process::id();
    if JSON.load(Ordering::Relaxed) {
        return format!(
            "{{\"timestamp\":\"{time}.{:03}Z\",\"target\":\"php\",\"pid\":{pid},\"request_id\":\"{}\",\"message\":\"{}\"}}\n",
            since.subsec_millis(),
            escape(request_id),
            escape(message)
        );
    }
    let id =
        if request_id.is_empty() { String::new() } else { format!(" request_id={request_id}") };
    // Line breaks of a message stay visible, but do not begin a forged log line.
    format!(
        "{time}.{:03}Z php pid={pid}{id} {}\n",
        since.subsec_millis(),
        message.replace('\n', "\n    ")
    )
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// `2026-11-21T05:00:00` of Unix seconds (days to civil date after Howard Hinnant's algorithm).
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_795_244_400, "2026-11-21T07:00:00"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        let line = format_line("a\nb", "id", UNIX_EPOCH);
        assert_eq!(line.matches('\n').count(), 2);
        assert!(line.contains("\n    b\n"));
        assert_eq!(escape("a\"\\\n\u{1}"), "a\\\"\\\\\\n\\u0001");
    }
}
