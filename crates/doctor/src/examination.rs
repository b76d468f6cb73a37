//! All checks on some facts.

use crate::check::Check;
use crate::checks;
use crate::facts::Facts;
use crate::finding::{Finding, Findings, Severity};
use serde::Serialize;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Maximum number of findings of one check; the others are counted.
const FINDINGS_MAX: usize = 10;

/// Result of all checks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Examination {
    /// The findings, the worst first within a group.
    pub findings: Vec<Finding>,
    /// Checks that were made without a finding.
    pub passed: Vec<&'static str>,
    /// Checks that could not be made, or not completely.
    pub not_checked: Vec<NotChecked>,
    /// Checks that were left out on request.
    pub ignored: Vec<&'static str>,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// Code of the check.
    pub code: &'static str,
    /// The missing fact.
    pub why: &'static str,
}

/// Makes all checks, except the ignored ones.
#[must_use]
pub fn examine(facts: &Facts, ignored: &[&str]) -> Examination {
    let mut result = Examination::default();
    for check in checks::all() {
        if ignored.contains(&check.code) {
            result.ignored.push(check.code);
            continue;
        }
        result.add(&check, facts);
    }
    result
}

impl Examination {
    fn add(&mut self, check: &Check, facts: &Facts) {
        let mut found = Findings::new(check.code, check.group.name());
        let checked = (check.run)(facts, &mut found);
        let mut found = found.all;
        match checked {
            Err(why) => self.not_checked.push(NotChecked { code: check.code, why }),
            Ok(()) if found.is_empty() => self.passed.push(check.code),
            Ok(()) => {}
        }
        found.sort_by_key(|finding| Reverse(finding.severity));
        if let Some(more) = found.len().checked_sub(FINDINGS_MAX).filter(|more| *more > 0) {
            found.truncate(FINDINGS_MAX);
            let last = found.last_mut().expect("there are several");
            // Writing to a string cannot fail.
            let _ = write!(last.text, " (and {more} more findings of this check)");
        }
        self.findings.extend(found);
    }

    /// Returns the worst severity of the findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
