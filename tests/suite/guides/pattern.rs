//! Comparison of an output with the output promised by a page.

/// Matches any text within a line; as the only character of a line, any number of lines.
const ANYTHING: char = '…';

/// Compares line by line. Blanks at the ends of lines are ignored; several blanks between words
/// count as one.
pub(crate) fn matches(expected: &[String], actual: &str) -> bool {
    let actual: Vec<String> = actual.trim_end().lines().map(squeezed).collect();
    let expected: Vec<String> = expected.iter().map(|line| squeezed(line)).collect();
    lines_match(&expected, &actual)
}

/// Like [`matches()`], for an output that may continue.
pub(crate) fn begins(expected: &[String], actual: &str) -> bool {
    let mut open = expected.to_vec();
    open.push(ANYTHING.to_string());
    matches(&open, actual)
}

fn lines_match(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if is_anything(first) => {
            (0..=actual.len()).any(|skipped| lines_match(rest, &actual[skipped..]))
        }
        Some((first, rest)) => match actual.split_first() {
            Some((line, others)) => line_matches(first, line) && lines_match(rest, others),
            None => false,
        },
    }
}

fn is_anything(line: &str) -> bool {
    line.chars().eq([ANYTHING])
}

fn line_matches(expected: &str, actual: &str) -> bool {
    match expected.split_once(ANYTHING) {
        None => expected == actual,
        Some((before, after)) => actual.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_matches(after, &rest[at..]))
        }),
    }
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
