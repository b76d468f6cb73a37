//! Texts → unexpected differences.
//!
//! All texts are compared with the base, the first text of a script. A position where two scripts
//! differ is a *field*: any text is allowed there. Text of the booted application that differs
//! elsewhere is a difference.
//!
//! A field is also a difference if the booted application has the same text in all its responses,
//! while the scripts' texts vary. Then a varying value is frozen, for example a time or a token of
//! the boot.
//!
//! Only the changes of each text are stored, so that many rounds need little memory.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Maximum bytes of a text that is compared by words; longer texts are compared by lines.
const WORDS_BYTES_MAX: usize = 2 << 20;
/// Time limit of a diff; after it the rest counts as one change.
const DIFF_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of changes of a text; further ones are merged into the last.
const CHANGES_MAX: usize = 500;
/// Maximum bytes of a change's text.
const CHANGE_BYTES_MAX: usize = 4096;
/// Maximum number of words between two fields that are merged: the words of a varying sentence, and
/// the blanks between them.
const GAP_MAX: usize = 3;
/// Minimum number of responses per distinct text; with fewer, a repeated text is no proof.
const STILL_ANSWERS_MIN: usize = 3;
/// Maximum number of distinct frozen texts: the number of images, if each worker boots its own.
const STILL_TEXTS_MAX: usize = super::servers::WORKERS_MAX;
/// Maximum number of stored differences of a page.
const DIFFERENCES_MAX: usize = 20;
/// Bytes of context around a difference, and maximum bytes of the difference itself.
const CONTEXT_BYTES: usize = 30;
const EXCERPT_BYTES: usize = 100;

/// An unexpected difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Whether the booted application's text is frozen: it is the same in all responses, while each
    /// script's text differs.
    pub(crate) stands_still: bool,
    pub(crate) script: String,
    pub(crate) booted: String,
}

/// Texts of one part of a page's responses: the heads, or the bodies.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// First text of a script.
    base: Option<Vec<u8>>,
    scripts: Vec<Vec<Change>>,
    booted: Vec<Vec<Change>>,
}

/// A range of the base's words, and the text that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    from: usize,
    to: usize,
    text: Vec<u8>,
}

impl Texts {
    pub(crate) fn add_script(&mut self, text: Vec<u8>) {
        if self.base.is_none() {
            self.base = Some(text);
            self.scripts.push(Vec::new());
        } else {
            let changes = self.changes(&text);
            self.scripts.push(changes);
        }
    }

    /// Ignored before the first response of a script.
    pub(crate) fn add_booted(&mut self, text: &[u8]) {
        if self.base.is_some() {
            let changes = self.changes(text);
            self.booted.push(changes);
        }
    }

    pub(crate) fn differences(&self) -> Vec<Difference> {
        let Some(base) = &self.base else { return Vec::new() };
        let words = words(base);
        let wide = fields(&self.scripts, GAP_MAX);
        let is_excused = |change: &Change| {
            wide.iter().any(|field| field.start <= change.from && change.to <= field.end)
        };
        let found: BTreeSet<&Change> =
            self.booted.iter().flatten().filter(|change| !is_excused(change)).collect();
        let mut differences: Vec<_> = found
            .into_iter()
            .take(DIFFERENCES_MAX)
            .map(|change| Difference {
                stands_still: false,
                script: excerpt(&words, change, None),
                booted: excerpt(&words, change, Some(&change.text)),
            })
            .collect();
        // Each field is checked separately. Otherwise a frozen field next to a varying one would
        // not be detected.
        let narrow = fields(&self.scripts, 0);
        let still = narrow.iter().filter_map(|field| self.stands_still(&words, field));
        differences.extend(still.take(DIFFERENCES_MAX));
        differences
    }

    fn changes(&self, text: &[u8]) -> Vec<Change> {
        let base = self.base.as_deref().unwrap_or_default();
        if base == text { Vec::new() } else { changes(&words(base), &words(text)) }
    }

    fn stands_still(&self, words: &[&[u8]], field: &Range<usize>) -> Option<Difference> {
        let values = |of: &[Vec<Change>]| -> BTreeSet<Vec<u8>> {
            of.iter().map(|changes| value(words, field, changes)).collect()
        };
        let (scripts, booted) = (values(&self.scripts), values(&self.booted));
        let repeats = booted.len() <= STILL_TEXTS_MAX
            && self.booted.len() >= STILL_ANSWERS_MIN * booted.len()
            && scripts.len() > booted.len();
        if !repeats || !booted.is_disjoint(&scripts) {
            return None;
        }
        let whole = Change { from: field.start, to: field.end, text: Vec::new() };
        let text = booted.first()?;
        Some(Difference {
            stands_still: true,
            script: excerpt(words, &whole, None),
            booted: excerpt(words, &whole, Some(text)),
        })
    }
}

/// Returns the fields, as ranges of the base's words; in order, and more than `gap` words apart.
fn fields(scripts: &[Vec<Change>], gap: usize) -> Vec<Range<usize>> {
    let mut all: Vec<_> = scripts.iter().flatten().map(|change| change.from..change.to).collect();
    all.sort_by_key(|range| (range.start, range.end));
    let mut fields: Vec<Range<usize>> = Vec::new();
    for range in all {
        match fields.last_mut() {
            Some(last) if range.start <= last.end + gap => last.end = last.end.max(range.end),
            _ => fields.push(range),
        }
    }
    fields
}

/// Returns the text of a field after these changes.
fn value(words: &[&[u8]], field: &Range<usize>, changes: &[Change]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = field.start;
    for change in changes.iter().filter(|c| field.start <= c.from && c.to <= field.end) {
        text.extend(words[at..change.from.max(at)].concat());
        text.extend_from_slice(&change.text);
        at = change.to.max(at);
    }
    text.extend(words[at..field.end.max(at)].concat());
    text
}

/// Splits text, markup and numbers into words and the separators between them. A token or an id is
/// one word.
fn words(text: &[u8]) -> Vec<&[u8]> {
    if text.len() > WORDS_BYTES_MAX {
        return text.split_inclusive(|byte| *byte == b'\n').collect();
    }
    let is_space = |byte: u8| byte.is_ascii_whitespace();
    let ends = |byte: u8| is_space(byte) || b"<>(){}[]\"'`,;&?=|\\".contains(&byte);
    let mut words = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = |same: &dyn Fn(u8) -> bool| {
            rest.iter().position(|byte| !same(*byte)).unwrap_or(rest.len())
        };
        let len = match rest[0] {
            byte if is_space(byte) => length(&is_space),
            byte if ends(byte) => 1,
            _ => length(&|byte| !ends(byte)),
        };
        words.push(&rest[..len]);
        at += len;
    }
    words
}

fn changes(base: &[&[u8]], other: &[&[u8]]) -> Vec<Change> {
    let deadline = Some(Instant::now() + DIFF_LIMIT);
    let operations = capture_diff_slices_deadline(Algorithm::Myers, base, other, deadline);
    let mut changes: Vec<Change> = Vec::new();
    for operation in operations {
        let (from, to, text) = match operation {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { old_index, old_len, .. } => {
                (old_index, old_index + old_len, Vec::new())
            }
            DiffOp::Insert { old_index, new_index, new_len } => {
                (old_index, old_index, joined(&other[new_index..new_index + new_len]))
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                (old_index, old_index + old_len, joined(&other[new_index..new_index + new_len]))
            }
        };
        let is_full = changes.len() == CHANGES_MAX;
        match changes.last_mut() {
            Some(last) if is_full || last.to == from => {
                last.to = to;
                last.text.extend(text);
                last.text.truncate(CHANGE_BYTES_MAX);
            }
            _ => changes.push(Change { from, to, text }),
        }
    }
    changes
}

fn joined(words: &[&[u8]]) -> Vec<u8> {
    let mut text = words.concat();
    text.truncate(CHANGE_BYTES_MAX);
    text
}

/// Returns one line: the text before, the difference in brackets, the text after.
fn excerpt(words: &[&[u8]], change: &Change, text: Option<&[u8]>) -> String {
    let own = words[change.from..change.to].concat();
    let before = words[change.from.saturating_sub(CONTEXT_BYTES)..change.from].concat();
    let behind = words[change.to..words.len().min(change.to + CONTEXT_BYTES)].concat();
    let before = &before[before.len().saturating_sub(CONTEXT_BYTES)..];
    let behind = &behind[..behind.len().min(CONTEXT_BYTES)];
    let text = text.unwrap_or(&own);
    let shown = &text[..text.len().min(EXCERPT_BYTES)];
    let more = if text.len() > shown.len() { "…" } else { "" };
    format!("{}[{}{more}]{}", line(before), line(shown), line(behind))
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push('⏎'),
            c if samovar_log::is_unprintable(c) => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round is script, booted, script; the expected results are in the form `SCRIPT ->
    /// BOOTED`.
    fn check(rounds: &[[&str; 3]], expected: &[&str]) {
        let mut texts = Texts::default();
        for [before, booted, after] in rounds {
            texts.add_script(before.as_bytes().to_vec());
            texts.add_booted(booted.as_bytes());
            texts.add_script(after.as_bytes().to_vec());
        }
        let found: Vec<_> = texts
            .differences()
            .iter()
            .map(|d| {
                let mark = if d.stands_still { "still " } else { "" };
                format!("{mark}{} -> {}", d.script, d.booted)
            })
            .collect();
        assert_eq!(found, expected, "{rounds:?}");
    }

    #[test]
    fn equal_texts_have_no_difference() {
        check(&[["", "", ""], ["", "", ""]], &[]);
        check(&[["<p>Hello</p>"; 3]; 4], &[]);
    }

    #[test]
    fn another_word_is_a_difference() {
        check(
            &[["<p>Hello Ann</p>", "<p>Hello Bob</p>", "<p>Hello Ann</p>"]],
            &["<p>Hello [Ann]</p> -> <p>Hello [Bob]</p>"],
        );
        check(&[["a b", "a b c", "a b"]], &["a b[] -> a b[ c]"]);
        check(&[["a b c", "a c", "a b c"]], &["a [b ]c -> a []c"]);
        check(&[["", "Warning", ""]], &["[] -> [Warning]"]);
        check(&[["one", "two", "one"], ["one", "one", "one"]], &["[one] -> [two]"]);
    }

    #[test]
    fn text_varying_between_scripts_may_vary() {
        let page = |id: &str, time: &str| format!("<a href=\"?t={id}\">at {time} o'clock</a>");
        let texts: Vec<String> =
            (0..9).map(|n| page(&format!("x{}+/{n}==", n * 7), &format!("12:00:0{n}"))).collect();
        let rounds: Vec<[&str; 3]> =
            texts.chunks(3).map(|c| [c[0].as_str(), c[1].as_str(), c[2].as_str()]).collect();
        check(&rounds, &[]);
        // Other differences are not allowed.
        let wrong = texts[1].replace("clock", "cup");
        check(
            &[[&texts[0], &wrong, &texts[2]]],
            &["ef=\"?t=x0+/0==\">at 12:00:00 o'[clock]</a> -> ef=\"?t=x0+/0==\">at 12:00:00 \
                 o'[cup]</a>"],
        );
    }

    #[test]
    fn frozen_text_below_checkpoint_is_found() {
        let rounds: Vec<[String; 3]> = (0..4)
            .map(|n| [format!("id a{n} end"), "id boot end".to_owned(), format!("id b{n} end")])
            .collect();
        let rounds: Vec<[&str; 3]> =
            rounds.iter().map(|r| r.each_ref().map(String::as_str)).collect();
        check(&rounds, &["still id [a0] end -> id [boot] end"]);
        check(&rounds[..2], &[]);
        let beside: Vec<[String; 3]> = (0..4)
            .map(|n| {
                ["a", "b", "c"].map(|who| {
                    let token = if who == "b" { "boot".to_owned() } else { format!("{who}{n}") };
                    format!("{who}{n}</p>{token}")
                })
            })
            .collect();
        let rounds: Vec<[&str; 3]> =
            beside.iter().map(|r| r.each_ref().map(String::as_str)).collect();
        check(&rounds, &["still a0</p>[a0] -> a0</p>[boot]"]);
    }

    #[test]
    fn running_clock_is_not_a_difference() {
        // Slow: several rounds happen within one second.
        check(&[["5", "5", "5"], ["5", "5", "6"], ["6", "6", "6"], ["6", "6", "7"]], &[]);
        // Fast: a counter in a database, which each response increases.
        check(&[["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"], ["10", "11", "12"]], &[]);
        // One of a few values, at random.
        check(&[["a", "b", "c"], ["b", "b", "a"], ["c", "b", "b"]], &[]);
    }

    #[test]
    fn varying_sentence_is_one_field() {
        check(
            &[
                [
                    "<q>to be or not to be</q>",
                    "<q>once more</q>",
                    "<q>all the world is a stage</q>",
                ],
                ["<q>a horse, a horse</q>", "<q>the rest is silence and so on</q>", "<q>et tu</q>"],
            ],
            &[],
        );
    }

    #[test]
    fn long_texts_and_many_changes_have_limits() {
        let long = "line\n".repeat(WORDS_BYTES_MAX / 4);
        let other = long.replacen("line", "lime", 1);
        check(&[[&long, &long, &long]], &[]);
        let mut texts = Texts::default();
        texts.add_script(long.clone().into_bytes());
        texts.add_booted(other.as_bytes());
        texts.add_script(long.into_bytes());
        assert_eq!(texts.differences().len(), 1);
        let even: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
        let odd: Vec<_> =
            (0..5000).map(|n| if n % 9 == 0 { format!("-{n}") } else { n.to_string() }).collect();
        let mut texts = Texts::default();
        texts.add_script(even.join(" ").into_bytes());
        texts.add_booted(odd.join(" ").as_bytes());
        assert_eq!(texts.booted[0].len(), CHANGES_MAX);
        assert_eq!(texts.differences().len(), DIFFERENCES_MAX);
        let empty = Texts::default();
        assert!(empty.differences().is_empty());
    }

    #[test]
    fn excerpt_of_any_bytes_is_one_line() {
        let mut texts = Texts::default();
        texts.add_script(b"a\n\xff\x1b[2J b".to_vec());
        texts.add_booted(b"a\n\xff c");
        let found = &texts.differences()[0];
        assert!(!found.script.contains(char::is_control), "{found:?}");
        assert!(found.booted.starts_with("a⏎[") && found.booted.ends_with("] b"), "{found:?}");
    }
}
