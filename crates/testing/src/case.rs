//! The result of one test.

/// End of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It was skipped, or is incomplete.
    Skipped,
    /// It did something risky, such as no assertion.
    Risky,
    /// It caused a warning.
    Warned,
    /// An assertion failed.
    Failed,
    /// It ended with an error; or its process crashed or was killed.
    Errored,
}

impl Verdict {
    /// Its mark in the progress.
    #[must_use]
    pub fn mark(self) -> char {
        match self {
            Verdict::Passed => '.',
            Verdict::Skipped => 'S',
            Verdict::Risky => 'R',
            Verdict::Warned => 'W',
            Verdict::Failed => 'F',
            Verdict::Errored => 'E',
        }
    }

    /// Its name in texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Skipped => "skipped",
            Verdict::Risky => "risky",
            Verdict::Warned => "warning",
            Verdict::Failed => "failure",
            Verdict::Errored => "error",
        }
    }

    /// Whether the test did not do its job.
    #[must_use]
    pub fn is_bad(self) -> bool {
        matches!(self, Verdict::Failed | Verdict::Errored)
    }
}

/// A reason why a bad verdict does not fail the run, or a remark about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It passed in a later run.
    Flaky {
        /// Number of the rerun that passed.
        rerun: u32,
    },
    /// It passes in the order of the source code, but not in the shuffled one.
    OrderDependent,
    /// It is in the quarantine.
    Quarantined {
        /// The responsible person.
        owner: String,
        /// The last day of the entry.
        until: String,
    },
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Class of the test, with its namespace.
    pub class: String,
    /// Name of the method, with the name of its data set.
    pub name: String,
    /// File of the class; empty if unknown.
    pub file: String,
    /// Line of the method; 0 if unknown.
    pub line: u32,
    /// Number of assertions.
    pub assertions: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Its end.
    pub verdict: Verdict,
    /// Class of the exception, or kind of the fault.
    pub kind: String,
    /// Arguments of its data set, as the framework prints them; empty without one.
    pub arguments: String,
    /// The framework's text about it.
    pub text: String,
    /// The start of the output of the test.
    pub output: String,
    /// Remark about a bad verdict.
    pub note: Option<Note>,
}

impl Case {
    /// A result without details.
    #[must_use]
    pub fn new(class: &str, name: &str, verdict: Verdict) -> Case {
        Case {
            class: class.to_owned(),
            name: name.to_owned(),
            file: String::new(),
            line: 0,
            assertions: 0,
            seconds: 0.0,
            verdict,
            kind: String::new(),
            arguments: String::new(),
            text: String::new(),
            output: String::new(),
            note: None,
        }
    }

    /// The test's name as frameworks print it: `Shop\CartTest::testTotal`.
    #[must_use]
    pub fn id(&self) -> String {
        match (self.class.as_str(), self.name.as_str()) {
            (class, "") => class.to_owned(),
            ("", name) => name.to_owned(),
            (class, name) => format!("{class}::{name}"),
        }
    }

    /// The name with the arguments of the data set: the title of the text about it.
    #[must_use]
    pub fn title(&self) -> String {
        match self.arguments.as_str() {
            "" => self.id(),
            arguments => format!("{} {arguments}", self.id()),
        }
    }

    /// Whether it fails the run.
    #[must_use]
    pub fn fails(&self) -> bool {
        let is_excused = matches!(self.note, Some(Note::Flaky { .. } | Note::Quarantined { .. }));
        self.verdict.is_bad() && !is_excused
    }
}
