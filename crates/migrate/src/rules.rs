//! The table of changes of PHP, from the files in `rules/`.
//!
//! A rule is a block of lines:
//!
//! ```text
//! rule utf8-encode
//! deprecated 8.2
//! function utf8_encode utf8_decode
//! says They convert only between ISO-8859-1 and UTF-8
//! use mb_convert_encoding()
//! see rfc/remove_utf8_decode_and_utf8_encode
//! ```
//!
//! `deprecated`, `changed`, `removed`, `reserved` and `syntax` are versions of a change. The other
//! lines select code: names (`function`, `constant`, `class`, `method`, `classconst`,
//! `property`, `variable`, `ini`, `extension`), calls with conditions on their arguments (`call`),
//! declarations (`declares-function`, `declares-class`, `overrides`, `returns-object`), or `code`
//! for a rule that is a function in `check/`.
//! `name=other` adds the replacement of a name. `rename`: this replacement is an alias, so that
//! `--fix` writes it.

mod calls;
mod names;
mod rule;

pub(crate) use calls::{Condition, Value};
pub(crate) use names::{Names, Target, lower};
pub use rule::Rule;

use crate::finding::Kind;
use crate::version::{KNOWN, Version};
use std::sync::LazyLock;

const FILES: [&str; 11] = [
    include_str!("../rules/php5.rules"),
    include_str!("../rules/php7.rules"),
    include_str!("../rules/extensions.rules"),
    include_str!("../rules/php8.0.rules"),
    include_str!("../rules/php8.1.rules"),
    include_str!("../rules/php8.2.rules"),
    include_str!("../rules/php8.3.rules"),
    include_str!("../rules/php8.4.rules"),
    include_str!("../rules/php8.5.rules"),
    include_str!("../rules/new-names.rules"),
    include_str!("../rules/signatures.rules"),
];

/// Returns all rules.
pub fn rules() -> &'static [Rule] {
    static RULES: LazyLock<Vec<Rule>> =
        LazyLock::new(|| FILES.iter().flat_map(|file| parse(file)).collect());
    &RULES
}

/// The rules by name.
pub(crate) fn names() -> &'static Names {
    static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(rules()));
    &NAMES
}

/// Returns the rule of a function in `check/`.
pub(crate) fn code(id: &str) -> &'static Rule {
    names().code(id)
}

/// Panics for a wrong line: the files are part of the binary, and a test reads them.
fn parse(file: &'static str) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for line in file.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        if word == "rule" {
            rules.push(Rule {
                id: rest,
                events: Vec::new(),
                says: "",
                action: "",
                url: String::new(),
                targets: Vec::new(),
                is_rename: false,
            });
            continue;
        }
        let rule = rules.last_mut().expect("a rule starts with `rule`");
        match word {
            "deprecated" => rule.events.push((Kind::Deprecated, version(rest))),
            "changed" => rule.events.push((Kind::Changed, version(rest))),
            "removed" => rule.events.push((Kind::Removed, version(rest))),
            "reserved" => rule.events.push((Kind::Reserved, version(rest))),
            "syntax" => rule.events.push((Kind::Syntax, version(rest))),
            "says" => rule.says = rest,
            "use" => rule.action = rest,
            "see" => rule.url = url(rest),
            "rename" => rule.is_rename = true,
            _ => rule.targets.push((word, rest)),
        }
        rule.events.sort_by_key(|(_, version)| std::cmp::Reverse(*version));
    }
    rules
}

fn version(text: &str) -> Version {
    let version = text
        .split_once('.')
        .and_then(|(major, minor)| Some(Version::new(major.parse().ok()?, minor.parse().ok()?)));
    version.filter(|version| KNOWN.contains(version)).expect("a known version")
}

/// `rfc/NAME` is a page of the wiki, `migration…` one of the manual.
fn url(text: &str) -> String {
    if text.starts_with("rfc/") {
        return format!("https://wiki.php.net/{text}");
    }
    if text.starts_with("https://") {
        return text.to_owned();
    }
    format!("https://www.php.net/manual/en/{text}.php")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rules_are_complete() {
        let mut ids = BTreeSet::new();
        for rule in rules() {
            assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            assert!(!rule.events.is_empty(), "{}: no version", rule.id);
            assert!(!rule.url.is_empty(), "{}: no page", rule.id);
            assert!(!rule.targets.is_empty(), "{}: selects nothing", rule.id);
            let is_named = rule.targets.iter().any(|(kind, names)| {
                matches!(*kind, "declares-function" | "declares-class") || names.contains('=')
            });
            assert!(!rule.action.is_empty() || is_named, "{}: no replacement", rule.id);
            let is_plain = rule.targets.iter().all(|(kind, _)| {
                matches!(
                    *kind,
                    "function"
                        | "constant"
                        | "class"
                        | "method"
                        | "ini"
                        | "variable"
                        | "classconst"
                        | "property"
                        | "extension"
                        | "declares-function"
                        | "declares-class"
                        | "overrides"
                        | "returns-object"
                )
            });
            assert!(is_plain || !rule.says.is_empty(), "{}: no message", rule.id);
        }
    }

    #[test]
    fn every_version_has_rules() {
        for version in KNOWN.iter().filter(|v| **v > KNOWN[0] && **v <= Version::newest()) {
            let has = |rule: &&Rule| rule.events.iter().any(|(_, event)| event == version);
            assert!(rules().iter().any(|rule| has(&rule)), "{version}");
        }
    }
}
