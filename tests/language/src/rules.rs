//! Retired words and constructions.
//!
//! A rule is a sequence of words. A `^` in front of it restricts it to the beginning of a sentence.

use crate::Area;

/// Words, and what to write instead.
const RETIRED: &[(&str, &str)] = &[
    ("told", "say which component logs, reports or returns what"),
    ("tells", "`reports`, `shows`, `says` with a component as subject"),
    ("beside", "`next to` or `compared with`"),
    ("stands", "`is`"),
    ("lies", "`is`"),
    ("anew", "`again`"),
    ("likewise", "name the thing again"),
    ("its like", "name the things"),
    ("by itself", "`automatically`"),
    ("so many", "`this number of`, or the number"),
    ("sign of life", "`heartbeat`"),
    ("signs of life", "`heartbeats`"),
    ("has come", "`arrived`"),
    ("have come", "`arrived`"),
    ("nobody", "the component as subject, with `no`"),
    ("somebody", "the component as subject"),
    ("anybody", "the component as subject"),
    ("everybody", "the component as subject"),
    ("whoever", "a noun: client, caller, operator"),
    ("whomever", "a noun"),
    ("whom", "a noun"),
    ("whatever", "a noun"),
    ("what", "a noun in place of the relative clause"),
    ("who", "a noun in place of the relative clause"),
    ("he", "the component's name"),
    ("him", "the component's name"),
    ("his", "the component's name"),
    ("himself", "the component's name"),
    ("^whose", "a noun in front"),
    ("^those that", "a noun"),
    ("^those of", "a noun"),
    ("behind", "`after`, or name the proxy: `behind nginx`"),
];

/// People do what persons do: `operators who`.
const PERSONS: &[&str] = &[
    "attacker",
    "attackers",
    "client",
    "clients",
    "developer",
    "developers",
    "engineer",
    "engineers",
    "operator",
    "operators",
    "people",
    "person",
    "reader",
    "readers",
    "somebody",
    "user",
    "users",
    "visitor",
    "visitors",
];

/// What may stand after `behind`: servers in front of Samovar.
const FRONTS: &[&str] = &[
    "a",
    "an",
    "another",
    "apache",
    "caddy",
    "cloudflare",
    "haproxy",
    "its",
    "nginx",
    "proxies",
    "that",
    "the",
    "this",
    "tls",
    "traefik",
];

/// Questions may ask what and who.
const QUESTION: &[&str] = &["what", "who", "whom", "whose"];

/// A sentence's words in lower case, and whether it is a question.
#[derive(Debug)]
struct Sentence {
    words: Vec<(usize, String)>,
    is_question: bool,
}

/// The findings of a text: line within the text (from 0), and message.
pub fn judge(area: Area, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for sentence in sentences(area, text) {
        for at in 0..sentence.words.len() {
            let (line, _) = sentence.words[at];
            for (pattern, instead) in RETIRED {
                if fits(&sentence, at, pattern) {
                    let shown = pattern.trim_start_matches('^');
                    found.push((line, format!("`{shown}`: write {instead}")));
                }
            }
        }
    }
    found
}

fn fits(sentence: &Sentence, at: usize, pattern: &str) -> bool {
    let (pattern, is_first) = match pattern.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    if is_first && at > 0 {
        return false;
    }
    let word = |place: usize| sentence.words.get(place).map(|(_, word)| word.as_str());
    let mut length = 0;
    for (place, part) in pattern.split(' ').enumerate() {
        if word(at + place) != Some(part) {
            return false;
        }
        length = place + 1;
    }
    if sentence.is_question && QUESTION.contains(&pattern) {
        return false;
    }
    let before = at.checked_sub(1).and_then(word);
    match pattern {
        "who" => !before.is_some_and(|before| PERSONS.contains(&before)),
        "behind" => !word(at + length).is_some_and(|after| FRONTS.contains(&after)),
        _ => true,
    }
}

fn sentences(area: Area, text: &str) -> Vec<Sentence> {
    let mut all = Vec::new();
    let mut words = Vec::new();
    let mut word = String::new();
    let mut line = 0;
    let is_name = area == Area::TestNames;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_apostrophe =
            c == '\'' && !word.is_empty() && chars.peek().is_some_and(|c| c.is_alphabetic());
        if c.is_alphanumeric()
            || is_apostrophe
            || (c == '_' && !is_name)
            || c == '-' && !word.is_empty()
        {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push((line, std::mem::take(&mut word)));
        }
        if c == '\n' {
            line += 1;
        }
        let is_end = matches!(c, '.' | '?' | '!') && chars.peek().is_none_or(|c| c.is_whitespace());
        if is_end && !words.is_empty() {
            all.push(Sentence { words: std::mem::take(&mut words), is_question: c == '?' });
        }
    }
    if !word.is_empty() {
        words.push((line, word));
    }
    if !words.is_empty() {
        all.push(Sentence { words, is_question: false });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, words: &[&str]) {
        let found: Vec<String> = judge(Area::Docs, text)
            .into_iter()
            .map(|(_, message)| message.split('`').nth(1).unwrap_or_default().to_owned())
            .collect();
        assert_eq!(found, words, "{text}");
    }

    #[test]
    fn retired_words_are_found() {
        check("Nobody is told anew.", &["nobody", "told", "anew"]);
        check("It gives no sign of life.", &["sign of life"]);
        check("The worker reports its state.", &[]);
    }

    #[test]
    fn relative_clauses_are_found_and_questions_are_not() {
        check("It does what is asked.", &["what"]);
        check("What does it cost?", &[]);
        check("Operators who deploy need this.", &[]);
        check("Who deploys needs this.", &["who"]);
        check("Whose end can be seen.", &["whose"]);
        check("A worker whose request ended.", &[]);
    }

    #[test]
    fn behind_names_a_proxy() {
        check("Run it behind nginx or behind a proxy.", &[]);
        check("The text behind commas.", &["behind"]);
    }

    #[test]
    fn lines_are_counted_from_the_beginning_of_the_text() {
        let found = judge(Area::Comments, "first\nsecond is told\n");
        assert_eq!(found[0].0, 1);
    }

    #[test]
    fn test_names_are_split_into_words() {
        assert_eq!(judge(Area::TestNames, "nobody_is_told").len(), 2);
    }
}
