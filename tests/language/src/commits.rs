//! Commit subjects: `component: imperative`, at most 72 characters, since the rule was made.

use crate::{Area, Finding};
use std::path::Path;
use std::process::Command;

/// Characters of a subject.
const SUBJECT_MAX: usize = 72;

/// The last commit before the rule.
const SINCE: &str = "ce7fc555455ddd0645f39cc63e0363c2e8bec3f9";

/// The findings of the repository's history; none where there is no history.
pub fn judge(root: &Path) -> Vec<Finding> {
    let range = format!("{SINCE}..HEAD");
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .current_dir(root)
        .output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(commit, subject)| Some(finding(commit, &problem(subject)?))).collect()
}

fn finding(commit: &str, message: &str) -> Finding {
    Finding { file: commit.to_owned(), line: 0, area: Area::Commits, message: message.to_owned() }
}

/// What is wrong with a subject.
fn problem(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT_MAX {
        return Some(format!("{length} characters, at most {SUBJECT_MAX}"));
    }
    let Some((component, rest)) = subject.split_once(": ") else {
        return Some("no component: write `component: imperative`".to_owned());
    };
    let is_component = !component.is_empty()
        && component
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/, ".contains(c));
    if !is_component {
        return Some(format!("unknown component `{component}`"));
    }
    let is_imperative =
        rest.chars().next().is_some_and(|c| c.is_lowercase() || c.is_ascii_digit() || c == '`');
    if !is_imperative || rest.ends_with('.') {
        return Some("after the component: lower case, no full stop".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_name_a_component() {
        assert_eq!(problem("front: reject requests without a host"), None);
        assert_eq!(problem("tests, docs: use leased ports"), None);
        assert!(problem("Reject requests").is_some());
        assert!(problem("front: Reject requests").is_some());
        assert!(problem(&format!("front: {}", "x".repeat(80))).is_some());
    }
}
