//! Finds the rows and settings that a text names, and formats them.

use super::pages::Entry;
use samovar_config::names;
use samovar_config::setting::{OnReload, Preset, Setting};
use samovar_config::table::SETTINGS;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Minimum number of letters in the fixed words of a message that is recognized by them.
const LETTERS_MIN: usize = 8;
/// Maximum number of explanations of one message.
const SHOWN_MAX: usize = 3;
/// Maximum number of similar messages that are suggested.
const SUGGESTED_MAX: usize = 3;
/// Maximum number of words in the reason phrase of a status.
const REASON_WORDS_MAX: usize = 4;
/// Letters of a word that counts for the similarity of messages.
const WORD_LETTERS_MIN: usize = 4;

/// Returns the explanation, or a hint with similar codes and messages.
pub(super) fn explain(text: &str, entries: &[Entry]) -> Result<String, String> {
    let text = without_escapes(text);
    let asked = text.trim().trim_matches('`');
    let asked = status(asked).unwrap_or(asked);
    let mut out = String::new();
    for setting in SETTINGS.iter().filter(|setting| is_name(setting, asked)) {
        describe_setting(&mut out, setting);
    }
    let by_code = entries.iter().filter(|entry| codes(entry).any(|code| code == asked));
    for entry in by_code {
        describe(&mut out, entry);
    }
    if out.is_empty() {
        for entry in by_message(asked, entries) {
            describe(&mut out, entry);
        }
    }
    if out.is_empty() { Err(suggestions(asked, entries)) } else { Ok(out) }
}

/// Removes the escape sequences of a terminal: a message may be copied with its colours.
fn without_escapes(text: &str) -> String {
    let (mut out, mut characters) = (String::with_capacity(text.len()), text.chars());
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            if !character.is_control() || character.is_whitespace() {
                out.push(character);
            }
            continue;
        }
        // A control sequence ends with a letter or a sign; others end after one character.
        if characters.next() == Some('[') {
            let _ended = characters.find(|character| ('@'..='~').contains(character));
        }
    }
    out
}

/// Returns the code of a status as servers and clients write it: `HTTP 503`, `HTTP/1.1 503 Service
/// Unavailable`, `503 Service Unavailable`.
fn status(asked: &str) -> Option<&str> {
    let mut words = asked.split_ascii_whitespace();
    let first = words.next()?;
    let is_protocol = first.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("http"))
        && first[4..].bytes().all(|byte| b"/.:0123456789".contains(&byte));
    let code = if is_protocol { words.next()? } else { first };
    let is_code = |code: &str| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let code = code.trim_end_matches([':', ',', '.']);
    let reason: Vec<_> = words.collect();
    let is_reason = reason.len() <= REASON_WORDS_MAX
        && reason.iter().all(|word| word.chars().all(|c| c.is_alphabetic() || "-'".contains(c)));
    (is_code(code) && is_reason).then_some(code)
}

fn is_name(setting: &Setting, asked: &str) -> bool {
    let (name, _) = asked.split_once('=').unwrap_or((asked, ""));
    let is_short = |short| name.strip_prefix('-').is_some_and(|rest| rest.chars().eq([short]));
    setting.key == name
        || name.strip_prefix("--") == Some(setting.flag)
        || setting.short.is_some_and(is_short)
        || setting.env() == name
}

fn describe_setting(out: &mut String, setting: &Setting) {
    let (Preset::Text(default) | Preset::Derived(default)) = setting.default;
    let reload = match setting.on_reload {
        OnReload::Applied => "applied",
        OnReload::Kept(_) => "needs a restart",
    };
    let text = format!("{}. {}", setting.doc, setting.long);
    let allowed = setting.kind.allowed();
    let facts = [
        ("meaning", text.trim_end()),
        ("allowed", &allowed),
        ("default", default),
        ("reload", reload),
        ("see", "docs/reference/settings.md"),
    ];
    paragraph(out, &format!("setting {}", setting.key), &facts);
}

fn describe(out: &mut String, entry: &Entry) {
    let mut facts: Vec<(&str, &str)> = entry.cells.clone();
    // The hint of such a message differs from case to case.
    facts.retain(|(_, text)| !text.is_empty() && *text != "…");
    let see = format!("{}, {}", entry.page, entry.heading);
    facts.push(("see", &see));
    paragraph(out, entry.subject, &facts);
}

fn paragraph(out: &mut String, subject: &str, facts: &[(&str, &str)]) {
    if !out.is_empty() {
        out.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", plain(subject));
    for (name, text) in facts {
        let _ = writeln!(out, "  {}: {}", plain(name), plain(text));
    }
}

/// Removes the marks of Markdown: code, links, escapes.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (target, after) = after.split_once(')').unwrap_or((after, ""));
        let (outside, name) = before.rsplit_once('[').unwrap_or(("", before));
        let page = target.rsplit('/').next().unwrap_or(target);
        let _ = if page.starts_with('#') {
            write!(out, "{outside}{name}")
        } else {
            write!(out, "{outside}{name} ({page})")
        };
        rest = after;
    }
    out.push_str(rest);
    out.replace("\\|", "|").replace('`', "")
}

/// Returns the codes in the first cell: words in backticks without spaces, and numbers.
fn codes(entry: &Entry) -> impl Iterator<Item = &str> {
    let quoted = entry.subject.split('`').skip(1).step_by(2);
    let is_code = |code: &&str| !code.contains([' ', '…']);
    let outside = entry.subject.split('`').step_by(2);
    let numbers = outside
        .flat_map(|text| text.split([' ', ',']))
        .filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    quoted.filter(is_code).chain(numbers)
}

/// Returns the entries whose fixed words occur in the text in this order, the longest ones first.
fn by_message<'a>(asked: &str, entries: &'a [Entry]) -> Vec<&'a Entry> {
    let asked = normal(asked);
    let mut found: Vec<(usize, &Entry)> = entries
        .iter()
        .filter_map(|entry| {
            Some((letters_in_order(&entry.subject.replace('`', ""), &asked)?, entry))
        })
        .collect();
    found.sort_by_key(|(letters, _)| Reverse(*letters));
    found.truncate(SHOWN_MAX);
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// Returns the number of letters in the fixed parts of the pattern if all occur in the text.
fn letters_in_order(pattern: &str, text: &str) -> Option<usize> {
    let (mut rest, mut letters) = (text, 0);
    for part in pattern.split('…').map(normal).filter(|part| !part.is_empty()) {
        let at = rest.find(part.as_str())?;
        rest = &rest[at + part.len()..];
        letters += part.chars().filter(|character| character.is_alphabetic()).count();
    }
    (letters >= LETTERS_MIN).then_some(letters)
}

/// Lower case, without backticks and repeated spaces.
fn normal(text: &str) -> String {
    let text = text.replace('`', "").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn suggestions(asked: &str, entries: &[Entry]) -> String {
    let all = entries.iter().flat_map(codes).chain(SETTINGS.iter().map(|setting| setting.key));
    if let Some(nearest) = names::nearest(asked, all) {
        return format!("did you mean `{nearest}`?");
    }
    let words: Vec<_> = words(asked).collect();
    let shared = |entry: &Entry| {
        let subject: Vec<_> = self::words(entry.subject).collect();
        words.iter().filter(|word| subject.contains(word)).count()
    };
    let mut similar: Vec<_> = entries
        .iter()
        .map(|entry| (shared(entry), entry))
        .filter(|(count, _)| *count > 0)
        .collect();
    similar.sort_by_key(|(count, _)| Reverse(*count));
    similar.truncate(SUGGESTED_MAX);
    if similar.is_empty() {
        return "pass a status such as 503, a word of the log, or a whole message".to_owned();
    }
    let similar: Vec<_> =
        similar.iter().map(|(_, entry)| format!("`{}`", plain(entry.subject))).collect();
    format!("similar: {}", similar.join("; "))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| word.chars().count() >= WORD_LETTERS_MIN)
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::super::pages::entries;
    use super::*;

    fn found(text: &str, parts: &[&str]) {
        let said = explain(text, &entries()).unwrap_or_else(|near| panic!("{text}: {near}"));
        for part in parts {
            assert!(said.contains(part), "{text}: `{part}` is not in:\n{said}");
        }
    }

    #[test]
    fn codes_are_explained() {
        found("503", &["cause: overload", "docs/guide/troubleshooting.md"]);
        found("507", &["no disk space"]);
        for text in ["HTTP 503", "http/1.1 503 Service Unavailable", "503 Service Unavailable"] {
            found(text, &["cause: overload"]);
        }
        found("\u{1b}[1m\u{1b}[31mHTTP 503\u{1b}[0m", &["cause: overload"]);
        found("late", &["meaning: at the current rate", "docs/guide/limits.md, Overload"]);
        found("kernel-object", &["fall-back: whole scripts", "epoll"]);
        found("watchdog", &["no heartbeat within timeouts.watchdog"]);
        found("timeouts.queue", &["setting timeouts.queue", "default: ", "reload: applied"]);
        for text in ["--workers", "--workers=4", "-w", "SAMOVAR_WORKERS"] {
            found(text, &["setting workers"]);
        }
    }

    #[test]
    fn messages_are_explained() {
        found("samovar: cannot bind `0.0.0.0:80`: permission denied", &["cannot bind …"]);
        found(
            "\u{1b}[31mcannot bind `\u{1b}[1m0.0.0.0:80\u{1b}[0m`: permission denied",
            &["cannot bind …"],
        );
        found("built for PHP 8.2.1, but libphp is 8.2.2", &["rebuild samovar-php for this PHP"]);
        found(
            "Table: the table `users` is full: it has 9 rows",
            &["delete rows, or define the table with more rows"],
        );
    }

    /// Every message on the page of errors is found.
    #[test]
    fn every_listed_error_is_explained() {
        let all = entries();
        for entry in all.iter().filter(|entry| entry.page.ends_with("errors.md")) {
            let text = entry.subject.replace('…', "x");
            let letters = entry.subject.chars().filter(|c| c.is_alphabetic()).count();
            if letters >= LETTERS_MIN {
                assert!(explain(&text, &all).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn unknown_code_suggests_near_ones() {
        let near = |text| explain(text, &entries()).unwrap_err();
        assert_eq!(near("kernel-objekt"), "did you mean `kernel-object`?");
        assert_eq!(near("timeouts.queu"), "did you mean `timeouts.queue`?");
        assert!(near("the libphp differs somehow").starts_with("similar: `"));
        assert!(near("qqqqqqqqqqqq").starts_with("pass a status"));
    }

    #[test]
    fn markdown_is_removed() {
        assert_eq!(
            plain("see [the guide](../a.md#x) and [y](#z): `a` \\| b"),
            "see the guide (a.md#x) and y: a | b"
        );
    }
}
