//! A change of PHP.

use crate::finding::Kind;
use crate::version::{Range, Version};

/// A change of PHP.
#[derive(Debug)]
pub struct Rule {
    /// Name of the rule in reports.
    pub id: &'static str,
    /// Kinds and versions of its changes, the newest first.
    pub events: Vec<(Kind, Version)>,
    /// Explanation; may be empty for a removed name.
    pub says: &'static str,
    /// Replacement.
    pub action: &'static str,
    /// Page that describes the change.
    pub url: String,
    pub(crate) targets: Vec<(&'static str, &'static str)>,
    /// Whether the replacement of a name is an alias.
    pub(crate) is_rename: bool,
}

impl Rule {
    /// The lines that select code: the kind, and the names or conditions.
    pub fn selectors(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.targets.iter().copied()
    }

    /// Returns the newest change within an upgrade.
    pub(crate) fn event(&self, range: Range, below: u32) -> Option<(Kind, Version)> {
        let applies =
            |(_, version): &&(Kind, Version)| range.contains(*version) && version.id() < below;
        self.events.iter().find(applies).copied()
    }

    /// Action that removes a finding.
    pub(crate) fn advice(&self, replacement: Option<&str>) -> String {
        match (replacement, self.action.strip_prefix("nothing")) {
            (Some(replacement), _) => format!("use {replacement}"),
            (None, Some(rest)) => format!("remove it{rest}"),
            (None, None) if self.action.is_empty() => String::new(),
            (None, None) => format!("use {}", self.action),
        }
    }
}
