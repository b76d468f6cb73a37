//! PHP's message about a failed boot, as it is in the log.

/// Beginnings of the messages that end a boot.
const FATAL: [&str; 5] = [
    "PHP Fatal error:  ",
    "PHP Parse error:  ",
    "PHP Compile error:  ",
    "PHP Core error:  ",
    "PHP Recoverable fatal error:  ",
];
/// Indentation of the further lines of a message.
const CONTINUED: &str = "    ";

/// An exception or a fatal error of a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BootError {
    /// Class of the exception, or the name of the error.
    pub(super) class: String,
    pub(super) message: String,
    pub(super) file: String,
    pub(super) line: u32,
    /// Stack, one line per frame.
    pub(super) stack: String,
}

impl BootError {
    /// Returns the first fatal error in lines of the log that belongs to no request.
    pub(super) fn in_lines(lines: &str) -> Option<BootError> {
        let mut lines = lines.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((head, kind, text)) = fatal(line) else { continue };
            if head.contains("request_id=") {
                continue;
            }
            let mut whole = text.to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with(CONTINUED)) {
                whole.push('\n');
                whole.push_str(&more[CONTINUED.len()..]);
            }
            return Some(BootError::of(kind, &whole));
        }
        None
    }

    /// Splits PHP's text: `Uncaught CLASS: MESSAGE in FILE:LINE` or `MESSAGE in FILE on line LINE`.
    fn of(kind: &str, text: &str) -> BootError {
        let (text, _) = text.split_once("\n  thrown in ").unwrap_or((text, ""));
        let (text, stack) = text.split_once("\nStack trace:\n").unwrap_or((text, ""));
        let place = |text: &str, between: &str| {
            let (message, place) = text.rsplit_once(" in ")?;
            let (file, line) = place.rsplit_once(between)?;
            Some((message.to_owned(), file.to_owned(), line.trim().parse().ok()?))
        };
        let found = place(text, " on line ").or_else(|| place(text, ":"));
        let (message, file, line) = found.unwrap_or_else(|| (text.to_owned(), String::new(), 0));
        let uncaught = message.strip_prefix("Uncaught ").and_then(|rest| rest.split_once(": "));
        let (class, message) = match uncaught {
            Some((class, message)) => (class.to_owned(), message.to_owned()),
            None => (kind.to_owned(), message),
        };
        BootError { class, message, file, line, stack: stack.to_owned() }
    }
}

/// Splits a line with a fatal error: the text before it, the error's name, the message.
fn fatal(line: &str) -> Option<(&str, &str, &str)> {
    FATAL.iter().find_map(|begin| {
        let (head, text) = line.split_once(begin)?;
        Some((head, begin.trim_start_matches("PHP ").trim_end_matches(":  "), text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_failed_boots_are_read() {
        let at = "2026-11-28T07:52:37.171731Z php pid=29341 ";
        let error = |class: &str, message: &str, stack: &str| BootError {
            class: class.to_owned(),
            message: message.to_owned(),
            file: "/srv/a.php".to_owned(),
            line: 7,
            stack: stack.to_owned(),
        };
        for (lines, expected) in [
            (
                format!(
                    "{at}PHP Parse error:  syntax error, unexpected \";\" in /srv/a.php on line 7\n"
                ),
                Some(error("Parse error", "syntax error, unexpected \";\"", "")),
            ),
            (
                format!(
                    "{at}PHP Fatal error:  Uncaught App\\Lost: not in: here in /srv/a.php:7\n    \
                     Stack trace:\n    #0 /srv/b.php(3): f()\n    #1 {{main}}\n      thrown in \
                     /srv/a.php on line 7\n"
                ),
                Some(error("App\\Lost", "not in: here", "#0 /srv/b.php(3): f()\n#1 {main}")),
            ),
            (format!("{at}request_id=1 PHP Fatal error:  x in /srv/a.php on line 7\n"), None),
            (format!("{at}PHP Warning:  x in /srv/a.php on line 7\n"), None),
            (
                format!("{at}PHP Fatal error:  out of luck\n"),
                Some(BootError {
                    class: "Fatal error".to_owned(),
                    message: "out of luck".to_owned(),
                    ..BootError::default()
                }),
            ),
        ] {
            assert_eq!(BootError::in_lines(&lines), expected, "{lines}");
        }
    }
}
