//! A finding of a check: its severity, its evidence, and a hint.

use serde::Serialize;

/// Severity of a finding, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// An improvement that costs nothing now.
    Note,
    /// A measured cost or a risk.
    Warning,
    /// Requests fail, wait or expose data, or soon will.
    Problem,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Severity; 3] = [Severity::Problem, Severity::Warning, Severity::Note];

    /// Returns the name in JSON and flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Problem => "problem",
        }
    }

    /// Returns the severity of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Code of the check.
    pub code: &'static str,
    /// Group of the check.
    pub group: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// Description.
    pub text: String,
    /// Measured value; empty: the text is all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// File, line, route or setting; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Pool; empty: the server has one pool, or the finding is about the whole server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pool: String,
    /// Action for the operator.
    pub hint: String,
    /// Measured cost, which is the most that the change can gain; empty: not measured.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gain: String,
    /// Change that `samovar try` measures; empty: none.
    #[serde(rename = "try", skip_serializing_if = "str::is_empty")]
    pub trial: &'static str,
}

/// Changes that `samovar try` measures on the operator's own requests, by code of the check.
pub const TRIALS: [(&str, &str); 11] = [
    ("assertions", "zend.assertions=-1"),
    ("boot-gain", "disable_checkpoint=true"),
    ("checkpoint-early", "checkpoint_after=FILE"),
    ("composer-classmap", "root=PATH_OF_A_COPY_WITH_THE_CLASS_MAP"),
    ("jit", "opcache.jit=disable"),
    ("opcache-off", "opcache.enable=1"),
    ("opcache-timestamps", "opcache.validate_timestamps=0"),
    ("output-compression", "zlib.output_compression=0"),
    ("realpath-cache", "realpath_cache_size=4M"),
    ("session-lazy-write", "session.lazy_write=1"),
    ("superglobals", "auto_globals_jit=1"),
];

fn trial(code: &str) -> &'static str {
    TRIALS.iter().find(|(of, _)| *of == code).map_or("", |(_, change)| change)
}

impl Finding {
    /// Sets the measured value.
    pub(crate) fn value(&mut self, value: impl Into<String>) -> &mut Finding {
        self.value = value.into();
        self
    }

    /// Sets the place.
    pub(crate) fn place(&mut self, place: impl Into<String>) -> &mut Finding {
        self.place = place.into();
        self
    }

    /// Sets the pool.
    pub(crate) fn pool(&mut self, pool: &str) -> &mut Finding {
        pool.clone_into(&mut self.pool);
        self
    }

    /// Sets the measured cost.
    pub(crate) fn gain(&mut self, gain: impl Into<String>) -> &mut Finding {
        self.gain = gain.into();
        self
    }
}

/// Receives the findings of one check.
#[derive(Debug)]
pub(crate) struct Findings {
    code: &'static str,
    group: &'static str,
    pub(crate) all: Vec<Finding>,
}

impl Findings {
    pub(crate) fn new(code: &'static str, group: &'static str) -> Findings {
        Findings { code, group, all: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        severity: Severity,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> &mut Finding {
        self.all.push(Finding {
            code: self.code,
            group: self.group,
            severity,
            text: text.into(),
            value: String::new(),
            place: String::new(),
            pool: String::new(),
            hint: hint.into(),
            gain: String::new(),
            trial: trial(self.code),
        });
        self.all.last_mut().expect("one was pushed")
    }

    pub(crate) fn problem(
        &mut self,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Problem, text, hint)
    }

    pub(crate) fn warning(
        &mut self,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Warning, text, hint)
    }

    pub(crate) fn note(
        &mut self,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> &mut Finding {
        self.add(Severity::Note, text, hint)
    }
}
