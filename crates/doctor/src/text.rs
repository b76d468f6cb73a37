//! Output for a terminal.

use crate::check::Group;
use crate::checks;
use crate::examination::Examination;
use crate::finding::{Finding, Severity};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Additional output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Only findings.
    #[default]
    Findings,
    /// Also the checks without a finding, and those that could not be made.
    All,
}

/// Formats the findings: the group with the worst one first.
#[must_use]
pub fn text(of: &Examination, shown: Shown) -> String {
    let mut out = verdict(of);
    let in_group = |group: Group| of.findings.iter().filter(move |f| f.group == group.name());
    let mut groups: Vec<_> =
        Group::ALL.into_iter().filter(|group| in_group(*group).next().is_some()).collect();
    groups.sort_by_key(|group| Reverse(in_group(*group).map(|found| found.severity).max()));
    for group in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{}", group.name());
        let mut found: Vec<_> = in_group(group).collect();
        found.sort_by_key(|finding| Reverse(finding.severity));
        for finding in found {
            add(&mut out, finding);
        }
    }
    if shown == Shown::All {
        let _ = writeln!(out, "\nwithout a finding: {}", list(&of.passed));
        if !of.ignored.is_empty() {
            let _ = writeln!(out, "ignored: {}", list(&of.ignored));
        }
        for not in &of.not_checked {
            let _ = writeln!(out, "not checked  {:<20} {}", not.code, not.why);
        }
    }
    out
}

/// Returns the codes in lines of less than 100 columns.
fn list(codes: &[&str]) -> String {
    const WIDTH: usize = 76;
    if codes.is_empty() {
        return "none".to_owned();
    }
    let (mut out, mut width) = (String::new(), 0);
    for (n, code) in codes.iter().enumerate() {
        let comma = if n + 1 < codes.len() { "," } else { "" };
        if width + code.len() > WIDTH {
            out.push_str("\n   ");
            width = 0;
        }
        if n > 0 {
            out.push(' ');
        }
        out.push_str(code);
        out.push_str(comma);
        width += code.len() + 2;
    }
    out
}

fn verdict(of: &Examination) -> String {
    let made = checks::all().len() - of.ignored.len() - of.not_checked.len();
    let count = |severity: Severity| {
        let n = of.findings.iter().filter(|found| found.severity == severity).count();
        let s = if n == 1 { "" } else { "s" };
        format!("{n} {}{s}", severity.name())
    };
    let findings = if of.findings.is_empty() {
        "no findings".to_owned()
    } else {
        Severity::ALL.map(count).join(", ")
    };
    let missing = match of.not_checked.len() {
        0 => String::new(),
        n => format!("; {n} not made or not complete (--verbose has the reasons)"),
    };
    format!("{findings}; {made} checks{missing}\n")
}

fn add(out: &mut String, found: &Finding) {
    let Finding { code, severity, text, value, place, pool, hint, gain, trial, .. } = found;
    let value = if value.is_empty() { String::new() } else { format!(": {value}") };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {:<8} {text}{value}", severity.name());
    let mut details = Vec::new();
    if !place.is_empty() && !text.contains(&**place) {
        details.push(format!("at {place}"));
    }
    if !pool.is_empty() {
        details.push(format!("pool {pool}"));
    }
    details.push(format!("check {code}"));
    let _ = writeln!(out, "           {}", details.join(", "));
    if !gain.is_empty() {
        let _ = writeln!(out, "           measured: {gain}");
    }
    let _ = writeln!(out, "           hint: {hint}");
    if !trial.is_empty() {
        let _ = writeln!(out, "           measure it: samovar try {trial}");
    }
}

/// Formats all checks with their explanations.
#[must_use]
pub fn explanations() -> String {
    let mut out = String::new();
    for group in Group::ALL {
        let _ = writeln!(out, "{}", group.name());
        for check in checks::all().iter().filter(|check| check.group == group) {
            let _ = writeln!(out, "  {:<20} {}\n{:23}{}", check.code, check.finds, "", check.why);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Shown, list, text};
    use crate::examination::{Examination, NotChecked};
    use crate::finding::{Findings, Severity};

    #[test]
    fn worst_group_is_first_and_each_finding_has_its_evidence() {
        let mut requests = Findings::new("sleeps", "requests");
        requests.note("/a sleeps", "poll in the client");
        let mut php = Findings::new("display-errors", "php");
        php.problem("visitors see errors", "set it")
            .value("On")
            .place("display_errors")
            .pool("blog")
            .gain("3 ms");
        let findings = [requests.all, php.all].concat();
        let of = Examination {
            findings,
            passed: vec!["backlog"],
            not_checked: vec![NotChecked { code: "jit", why: "unknown" }],
            ignored: vec!["xdebug"],
        };
        assert_eq!(of.worst(), Some(Severity::Problem));
        let shown = text(&of, Shown::All);
        let (first, rest) = shown.split_once('\n').expect("lines");
        assert!(first.starts_with("1 problem, 0 warnings, 1 note; "), "{shown}");
        assert_eq!(
            rest,
            "
php
  problem  visitors see errors: On
           at display_errors, pool blog, check display-errors
           measured: 3 ms
           hint: set it

requests
  note     /a sleeps
           check sleeps
           hint: poll in the client

without a finding: backlog
ignored: xdebug
not checked  jit                  unknown
"
        );
        assert!(!text(&of, Shown::Findings).contains("backlog"));
        let none = text(&Examination::default(), Shown::Findings);
        assert!(none.starts_with("no findings; "), "{none}");
    }

    #[test]
    fn long_list_is_wrapped() {
        let codes = ["opcache-timestamps"; 30];
        let wrapped = list(&codes);
        assert!(wrapped.lines().count() > 5 && wrapped.lines().all(|line| line.len() < 90));
    }
}
