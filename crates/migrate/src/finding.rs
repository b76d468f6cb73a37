//! One place in the code that a rule applies to.

use crate::version::Version;
use serde::Serialize;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It still works, with a deprecation message.
    Deprecated,
    /// It works in another way.
    Changed,
    /// It no longer exists.
    Removed,
    /// PHP uses the name itself.
    Reserved,
    /// The file no longer compiles.
    Syntax,
}

/// Effect of a finding on the new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Works, and is deprecated.
    Notice,
    /// Works in another way, or fails for some values.
    Warning,
    /// Fails.
    Error,
}

impl Kind {
    /// Severity of a change of this kind.
    pub fn severity(self) -> Severity {
        match self {
            Self::Deprecated => Severity::Notice,
            Self::Changed => Severity::Warning,
            Self::Removed | Self::Reserved | Self::Syntax => Severity::Error,
        }
    }

    /// Word in the rule files and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deprecated => "deprecated",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Reserved => "reserved",
            Self::Syntax => "syntax",
        }
    }
}

impl Severity {
    /// Word in reports and flags.
    pub fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Replacement of a part of a file that removes a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// First byte that is replaced.
    pub start: u32,
    /// Byte after the last one that is replaced.
    pub end: u32,
    /// New text.
    pub text: Vec<u8>,
}

/// A place that a rule applies to.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the rule.
    pub rule: &'static str,
    /// Version of the change; `None`: the file has a parse error.
    pub version: Option<Version>,
    /// Kind of the change.
    pub kind: Kind,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// The problem in one sentence.
    pub message: String,
    /// Action that removes the finding.
    pub action: String,
    /// Page that describes the change.
    pub url: &'static str,
    /// The line without leading and repeated white space: part of the fingerprint.
    pub text: String,
    /// Replacements that remove the finding safely.
    pub edits: Vec<Edit>,
}

impl Finding {
    /// Effect on the new version.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}
