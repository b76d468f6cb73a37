//! Lines of an input, with their numbers and a maximum length.

use crate::problem::Problem;
use std::io::{BufRead, Read};

/// Maximum length of a line in bytes.
const LINE_MAX: u64 = 64 * 1024;

/// Reads lines.
pub(crate) struct Lines<R> {
    input: R,
    name: String,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(name: &str, input: R) -> Lines<R> {
        Lines { input, name: name.to_owned(), number: 0 }
    }

    /// Returns the next line without its end.
    pub(crate) fn next(&mut self) -> Result<Option<String>, Problem> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes);
        self.number += 1;
        let count = read.map_err(|error| {
            let hint = "check the file and its permissions";
            self.problem(format!("cannot read the file: {error}"), hint)
        })?;
        if count as u64 == LINE_MAX && bytes.last() != Some(&b'\n') {
            let hint = "check that the file is text, with one line per interval";
            return Err(self.problem(format!("the line is longer than {LINE_MAX} bytes"), hint));
        }
        if count == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &*text };
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }

    /// A problem with the last line.
    pub(crate) fn problem(&self, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(message, hint).at(&self.name, self.number)
    }

    /// A problem with the whole input.
    pub(crate) fn whole(&self, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(message, hint).at(&self.name, 0)
    }
}
