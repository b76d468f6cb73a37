//! Mistakes in the typed values, with hints.

use std::io;

/// One mistake: its place, a description, and a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\nhint: {hint}")]
pub struct Problem {
    /// One line that starts with the place: ``samovar.toml:3: `workers = 0` is not allowed``.
    pub message: String,
    /// Allowed values, or the action to take; one line.
    pub hint: String,
    /// Line in the file, counted from 1. Problems from other sources are listed after those of the
    /// file.
    pub(crate) line: usize,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { message: message.into(), hint: hint.into(), line: usize::MAX }
    }

    /// Returns its line in the file, counted from 1; `None`: it is about another source, or about
    /// several settings.
    pub fn line(&self) -> Option<usize> {
        (self.line != usize::MAX).then_some(self.line)
    }

    pub(crate) fn at_line(self, line: usize) -> Problem {
        Problem { line, ..self }
    }
}

/// All mistakes in the settings: first those of the file in its order, then those of the
/// environment and the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Problems {
        problems.sort_by_key(|problem| problem.line);
        Problems(problems)
    }

    /// Returns the mistakes, at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Problems {
        Problems(vec![problem])
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The system's error text without the error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        kind => kind.to_string(),
    }
}
