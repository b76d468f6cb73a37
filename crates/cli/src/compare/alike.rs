//! Texts → what differs that should not.
//!
//! All are compared with one of them, the first that a script gave. Where two scripts differ is a *field*: its text may be
//! any. What the booted application has different elsewhere is a difference. So is a field that has the same text in each
//! of its answers, and another in each script's: what varies by nature stands still there, a time or a token of the boot.
//!
//! Only changes are kept of each text, so that many rounds take little memory.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Longer texts are compared by lines, not by words.
const WORDS_BYTES_MAX: usize = 2 << 20;
/// After that the rest counts as one change.
const DIFF_LIMIT: Duration = Duration::from_secs(2);
/// Of one text; what comes after them counts as one change.
const CHANGES_MAX: usize = 500;
/// Of a change's own text.
const CHANGE_BYTES_MAX: usize = 4096;
/// Fields so near to each other are one: words of a sentence that varies, with the blanks between them.
const GAP_MAX: usize = 3;
/// Fewer answers with the same text are no proof that it always stands there.
const STILL_ANSWERS_MIN: usize = 3;
/// As many images as there are, where each worker boots by itself.
const STILL_TEXTS_MAX: usize = super::servers::WORKERS_MAX;
/// Kept of one page, from the first on.
const DIFFERENCES_MAX: usize = 20;
/// Around what differs, and of it.
const CONTEXT_BYTES: usize = 30;
const EXCERPT_BYTES: usize = 100;

/// What should be alike and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where each script has another text, the booted application always has this one.
    pub(super) stands_still: bool,
    pub(super) script: String,
    pub(super) booted: String,
}

/// The texts of one part of a page's answers: heads, or bodies.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The first of a script.
    base: Option<Vec<u8>>,
    scripts: Vec<Vec<Change>>,
    booted: Vec<Vec<Change>>,
}

/// Words of the base have others in their place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    from: usize,
    to: usize,
    text: Vec<u8>,
}

impl Texts {
    pub(super) fn add_script(&mut self, text: Vec<u8>) {
        if self.base.is_none() {
            self.base = Some(text);
            self.scripts.push(Vec::new());
        } else {
            let changes = self.changes(&text);
            self.scripts.push(changes);
        }
    }

    /// Nothing is known of it before a script has answered.
    pub(super) fn add_booted(&mut self, text: &[u8]) {
        if self.base.is_some() {
            let changes = self.changes(text);
            self.booted.push(changes);
        }
    }

    pub(super) fn differences(&self) -> Vec<Difference> {
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
        // Each by itself: beside one that varies, one that stands still would not be seen.
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

/// What varies from script to script, as ranges of the base's words; in order, and further apart than `gap`.
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

/// What stands in a field after these changes.
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

/// Text, markup and numbers fall into words and what stands between them; a token or an id is one word.
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

/// One line: what stands before, what differs in brackets, what stands behind.
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
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of script, booted, script → what is found, as `SCRIPT -> BOOTED`.
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
    fn equal_texts_are_alike() {
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
    fn what_varies_from_script_to_script_may_vary() {
        let page = |id: &str, time: &str| format!("<a href=\"?t={id}\">at {time} o'clock</a>");
        let texts: Vec<String> =
            (0..9).map(|n| page(&format!("x{}+/{n}==", n * 7), &format!("12:00:0{n}"))).collect();
        let rounds: Vec<[&str; 3]> =
            texts.chunks(3).map(|c| [c[0].as_str(), c[1].as_str(), c[2].as_str()]).collect();
        check(&rounds, &[]);
        // And nothing else may.
        let wrong = texts[1].replace("clock", "cup");
        check(
            &[[&texts[0], &wrong, &texts[2]]],
            &[
                "ef=\"?t=x0+/0==\">at 12:00:00 o'[clock]</a> -> ef=\"?t=x0+/0==\">at 12:00:00 o'[cup]</a>",
            ],
        );
    }

    #[test]
    fn what_stands_still_below_the_checkpoint_is_found() {
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
    fn a_clock_that_goes_is_no_difference() {
        // Slow: some rounds fall into one second.
        check(&[["5", "5", "5"], ["5", "5", "6"], ["6", "6", "6"], ["6", "6", "7"]], &[]);
        // Fast: a counter in a database, of which each answer is the next.
        check(&[["1", "2", "3"], ["4", "5", "6"], ["7", "8", "9"], ["10", "11", "12"]], &[]);
        // One of few, by chance.
        check(&[["a", "b", "c"], ["b", "b", "a"], ["c", "b", "b"]], &[]);
    }

    #[test]
    fn sentences_that_vary_are_one_field() {
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
    fn bytes_of_any_kind_are_shown_on_one_line() {
        let mut texts = Texts::default();
        texts.add_script(b"a\n\xff\x1b[2J b".to_vec());
        texts.add_booted(b"a\n\xff c");
        let found = &texts.differences()[0];
        assert!(!found.script.contains(char::is_control), "{found:?}");
        assert!(found.booted.starts_with("a⏎[") && found.booted.ends_with("] b"), "{found:?}");
    }
}
