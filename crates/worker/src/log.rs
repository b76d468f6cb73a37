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
    let line = Line { level: "", message: cut(message), context: "", request_id };
    put(&line);
}

/// The same with a level and an object in JSON, which may be empty.
pub(crate) fn write_event(level: &str, message: &str, context: &str, request_id: &str) {
    let context =
        if context.len() > MESSAGE_BYTES_MAX { r#"{"context":"too long"}"# } else { context };
    put(&Line { level, message: cut(message), context, request_id });
}

fn cut(message: &str) -> &str {
    message[..message.floor_char_boundary(message.len().min(MESSAGE_BYTES_MAX))].trim_end()
}

struct Line<'a> {
    /// Empty for PHP's own messages, which say it in words.
    level: &'a str,
    message: &'a str,
    context: &'a str,
    request_id: &'a str,
}

fn put(line: &Line) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let line = format_line(line, JSON.load(Ordering::Relaxed), SystemTime::now());
    // SAFETY: a live buffer with its length; a failing standard error has nobody to be told.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

fn format_line(line: &Line, json: bool, now: SystemTime) -> String {
    let Line { level, message, context, request_id } = *line;
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = utc(since.as_secs());
    let pid = std::process::id();
    if json {
        let level =
            if level.is_empty() { String::new() } else { format!("\"level\":\"{level}\",") };
        let context =
            if context.is_empty() { String::new() } else { format!(",\"context\":{context}") };
        return format!(
            "{{\"timestamp\":\"{time}.{:03}Z\",{level}\"target\":\"php\",\"pid\":{pid},\"request_id\":\"{}\",\"message\":\"{}\"{context}}}\n",
            since.subsec_millis(),
            escape(request_id),
            escape(message)
        );
    }
    let id =
        if request_id.is_empty() { String::new() } else { format!(" request_id={request_id}") };
    let level = if level.is_empty() { String::new() } else { format!(" [{level}]") };
    let context = if context.is_empty() { String::new() } else { format!(" {context}") };
    // Line breaks of a message stay visible, but do not begin a forged log line.
    format!(
        "{time}.{:03}Z php pid={pid}{id}{level} {}{context}\n",
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
    fn an_event_has_its_level_and_context() {
        let line = Line { level: "warn", message: "m", context: "{\"a\":1}", request_id: "" };
        let text = format_line(&line, false, UNIX_EPOCH);
        assert!(text.ends_with(" [warn] m {\"a\":1}\n"), "{text}");
        let json = format_line(&line, true, UNIX_EPOCH);
        assert!(json.contains("Z\",\"level\":\"warn\",\"target\""), "{json}");
        assert!(json.ends_with("\"message\":\"m\",\"context\":{\"a\":1}}\n"), "{json}");
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        let line = Line { level: "", message: "a\nb", context: "", request_id: "id" };
        let line = format_line(&line, false, UNIX_EPOCH);
        assert_eq!(line.matches('\n').count(), 2);
        assert!(line.contains("\n    b\n"));
        assert_eq!(escape("a\"\\\n\u{1}"), "a\\\"\\\\\\n\\u0001");
    }
}
