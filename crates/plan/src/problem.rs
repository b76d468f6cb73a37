//! An input that cannot be used.

/// Reason why an input cannot be used, with its place and an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{message}\nhint: {hint}")]
pub struct Problem {
    /// `FILE:LINE: `, or empty.
    place: String,
    message: String,
    hint: String,
}

impl Problem {
    /// A problem without a line.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { place: String::new(), message: message.into(), hint: hint.into() }
    }

    /// The failure, without its place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// An action.
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// Adds the name of the input, and a line if it is not 0.
    #[must_use]
    pub fn at(mut self, name: &str, line: usize) -> Problem {
        self.place = if line == 0 { format!("{name}: ") } else { format!("{name}:{line}: ") };
        self
    }
}
