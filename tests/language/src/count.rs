//! The number of findings per area, which may only fall.

use crate::{Area, Finding};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Findings per area.
pub type Counts = BTreeMap<Area, usize>;

/// Counts findings.
pub fn count(findings: &[Finding]) -> Counts {
    let mut counts: Counts = Area::ALL.into_iter().map(|area| (area, 0)).collect();
    for finding in findings {
        *counts.entry(finding.area).or_default() += 1;
    }
    counts
}

/// Reads `allowed.tsv`: `area<TAB>count` per line. An area without a line may have none.
pub fn parse(text: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let wrong = || format!("`{line}` is not `area<TAB>count`");
        let (name, number) = line.split_once('\t').ok_or_else(wrong)?;
        let area = Area::ALL.into_iter().find(|area| area.name() == name).ok_or_else(wrong)?;
        counts.insert(area, number.trim().parse().map_err(|_| wrong())?);
    }
    Ok(counts)
}

/// What is wrong: an area has more findings than allowed, or fewer, so that the number must be lowered.
pub fn compare(now: &Counts, allowed: &Counts) -> Result<(), String> {
    let mut text = String::new();
    for (area, count) in now {
        let most = allowed.get(area).copied().unwrap_or(0);
        if *count > most {
            let _ = writeln!(text, "{}: {count} findings, {most} allowed", area.name());
        } else if *count < most {
            let _ = writeln!(
                text,
                "{}: {count} findings: lower the {most} in allowed.tsv",
                area.name()
            );
        }
    }
    if text.is_empty() { Ok(()) } else { Err(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_only_fall() {
        let allowed = parse("docs\t2\nnames\t1\n").unwrap();
        let now = |docs, names| Counts::from([(Area::Docs, docs), (Area::Names, names)]);
        assert_eq!(compare(&now(2, 1), &allowed), Ok(()));
        assert_eq!(compare(&now(3, 1), &allowed).unwrap_err(), "docs: 3 findings, 2 allowed\n");
        assert!(compare(&now(2, 0), &allowed).unwrap_err().contains("lower the 1"));
    }

    #[test]
    fn line_that_is_no_count_is_an_error() {
        assert!(parse("docs 2").is_err());
        assert!(parse("nothing\t2").is_err());
    }
}
