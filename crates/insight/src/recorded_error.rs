//! An exception or fatal error of one request, with its previous exceptions.

use crate::report::{Entry, ErrorKind, ReportedError};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Maximum number of recorded errors of one request, previous exceptions not counted.
const OF_REQUEST_MAX: usize = 4;
/// Maximum number of previous exceptions of one error.
const PREVIOUS_MAX: usize = 3;

/// An exception without its stack: the cause of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCause {
    /// Class.
    pub class: Box<str>,
    /// Message; secret values are redacted.
    pub message: Box<str>,
    /// File.
    pub file: Box<str>,
    /// Line.
    pub line: u32,
}

/// An exception or fatal error of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedError {
    /// Its fate.
    pub kind: ErrorKind,
    /// Class of the exception, or the name of PHP's error level, such as `E_ERROR`.
    pub class: Box<str>,
    /// Message; secret values are redacted.
    pub message: Box<str>,
    /// File.
    pub file: Box<str>,
    /// Line.
    pub line: u32,
    /// Stack, one line per frame, innermost first, without arguments.
    pub stack: Box<str>,
    /// Previous exceptions, each the cause of the one before it.
    pub previous: Vec<ErrorCause>,
}

impl RecordedError {
    fn new(of: &ReportedError) -> RecordedError {
        RecordedError {
            kind: of.kind,
            class: of.class.into(),
            message: of.message.as_ref().into(),
            file: of.file.into(),
            line: of.line,
            stack: of.stack.into(),
            previous: Vec::new(),
        }
    }

    /// Returns the position: `/srv/src/Shop.php:12`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns the text that PHP logs for an uncaught exception: class, message, place and stack,
    /// then those of the previous exceptions.
    #[must_use]
    pub fn trace(&self) -> String {
        let mut text = format!("{}: {} in {}:{}", self.class, self.message, self.file, self.line);
        if !self.stack.is_empty() {
            text.push_str("\nStack trace:\n");
            text.push_str(&self.stack);
        }
        for cause in &self.previous {
            let ErrorCause { class, message, file, line } = cause;
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\nCaused by {class}: {message} in {file}:{line}");
        }
        text
    }

    /// Returns the errors of a report, the reason for the end of the request first.
    #[must_use]
    pub fn of_entries(entries: &[Entry]) -> Vec<RecordedError> {
        let mut all: Vec<RecordedError> = Vec::new();
        for entry in entries {
            let Entry::Error(error) = entry else { continue };
            if error.kind == ErrorKind::Previous {
                let last = all.last_mut().filter(|last| last.previous.len() < PREVIOUS_MAX);
                if let Some(last) = last {
                    last.previous.push(ErrorCause {
                        class: error.class.into(),
                        message: error.message.as_ref().into(),
                        file: error.file.into(),
                        line: error.line,
                    });
                }
            } else if all.len() < OF_REQUEST_MAX {
                all.push(RecordedError::new(error));
            } else {
                break;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_REQUEST_MAX, RecordedError};
    use crate::report::{Entry, ErrorKind, ReportedError};

    fn error(kind: ErrorKind, class: &'static str, line: u32) -> Entry<'static> {
        let (file, message, stack) = ("/srv/a.php", "no stock".into(), "#0 /srv/a.php(3): f()");
        Entry::Error(ReportedError { kind, class, file, line, message, stack })
    }

    #[test]
    fn previous_exceptions_belong_to_the_error_before_them() {
        let entries = [
            error(ErrorKind::Previous, "Lost", 1),
            error(ErrorKind::Uncaught, "Outer", 2),
            error(ErrorKind::Previous, "Inner", 3),
            error(ErrorKind::Reported, "Other", 4),
        ];
        let all = RecordedError::of_entries(&entries);
        assert_eq!(all.iter().map(|e| &*e.class).collect::<Vec<_>>(), ["Outer", "Other"]);
        assert_eq!(
            all[0].trace(),
            "Outer: no stock in /srv/a.php:2\nStack trace:\n#0 /srv/a.php(3): f()\n\n\
             Caused by Inner: no stock in /srv/a.php:3"
        );
        let many: Vec<_> = (0..99).map(|n| error(ErrorKind::Reported, "E", n)).collect();
        assert_eq!(RecordedError::of_entries(&many).len(), OF_REQUEST_MAX);
    }
}
