//! diff: compares two texts line by line.

use std::fmt::Write as _;

/// Longer lines are cut in the output.
const LINE_CHARS_MAX: usize = 160;
/// Texts with more lines are compared by line number instead of by content.
const LINES_MAX: usize = 1500;

/// The differing lines, with one line of context: `-` is the reference server's, `+` is Samovar's.
pub(crate) fn diff(theirs: &str, ours: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (theirs.lines().collect(), ours.lines().collect());
    let marked =
        if a.len().max(b.len()) > LINES_MAX { by_number(&a, &b) } else { by_content(&a, &b) };
    let mut out = String::new();
    for (at, (mark, line)) in marked.iter().enumerate() {
        let near = &marked[at.saturating_sub(1)..(at + 2).min(marked.len())];
        if near.iter().any(|(mark, _)| *mark != ' ') {
            let line: String = line.chars().take(LINE_CHARS_MAX).collect();
            let _ = writeln!(out, "    {mark} {line}");
        }
    }
    out
}

fn by_number<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    let differing = a.iter().zip(b).filter(|(a, b)| a != b).take(20);
    let mut out: Vec<_> = differing.flat_map(|(a, b)| [('-', *a), ('+', *b)]).collect();
    if a.len() != b.len() {
        out.push(('-', "another number of lines"));
    }
    out
}

/// Compares through the longest common subsequence.
fn by_content<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut common = vec![vec![0u16; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push((' ', a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || i < a.len() && common[i + 1][j] >= common[i][j + 1] {
            out.push(('-', a[i]));
            i += 1;
        } else {
            out.push(('+', b[j]));
            j += 1;
        }
    }
    out
}
