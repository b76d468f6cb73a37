//! Each rule finds its example, and nothing in its counter-example.
//!
//! `corpus/*.txt` has a block per rule: `## id`, then lines of PHP. `+` must give a finding of the
//! rule, `-` must give none. `\n` in a line is a line break. A line is put after `<?php `; with
//! `raw` it is a whole file.

use samovar_migrate::{KNOWN, Range, Rule, Version, check_text, rules};
use std::collections::BTreeMap;

const FILES: [&str; 3] = [
    include_str!("corpus/php5-7.txt"),
    include_str!("corpus/php8.0.txt"),
    include_str!("corpus/php8.1-8.5.txt"),
];

#[derive(Debug, Default)]
struct Examples {
    found: Vec<String>,
    clean: Vec<String>,
}

fn corpus() -> BTreeMap<&'static str, Examples> {
    let mut all: BTreeMap<&str, Examples> = BTreeMap::new();
    let mut id = "";
    for line in FILES.iter().flat_map(|file| file.lines()) {
        if let Some(rest) = line.strip_prefix("## ") {
            id = rest.trim();
            assert!(!all.contains_key(id), "{id} is there twice");
            all.insert(id, Examples::default());
        } else if let Some(rest) = line.strip_prefix("+ ") {
            all.get_mut(id).expect("a block").found.push(file(rest));
        } else if let Some(rest) = line.strip_prefix("- ") {
            all.get_mut(id).expect("a block").clean.push(file(rest));
        }
    }
    all
}

fn file(line: &str) -> String {
    let line = line.replace("\\n", "\n");
    match line.strip_prefix("raw ") {
        Some(raw) => raw.to_owned(),
        None => format!("<?php {line}"),
    }
}

fn whole() -> Range {
    Range { from: Version::oldest(), to: Version::newest() }
}

fn before(version: Version) -> Version {
    let at = KNOWN.iter().position(|known| *known == version).expect("a known version");
    KNOWN[at.saturating_sub(1)]
}

fn finds(rule: &str, text: &str, range: Range) -> bool {
    check_text(text.as_bytes(), range).iter().any(|finding| finding.rule == rule)
}

#[test]
fn examples_are_found_and_counter_examples_are_not() {
    let mut wrong = Vec::new();
    for (id, examples) in corpus() {
        for text in &examples.found {
            if !finds(id, text, whole()) {
                wrong.push(format!("{id} misses: {text}"));
            }
        }
        for text in &examples.clean {
            if finds(id, text, whole()) {
                wrong.push(format!("{id} finds: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_about_code_has_an_example_and_a_counter_example() {
    let corpus = corpus();
    let mut missing = Vec::new();
    for rule in rules() {
        let is_named = !rule.selectors().any(|(kind, _)| {
            matches!(kind, "code" | "call" | "returns-object" | "overrides" | "nulls")
        });
        let examples = corpus.get(rule.id);
        if !is_named && examples.is_none_or(|e| e.found.is_empty() || e.clean.is_empty()) {
            missing.push(rule.id);
        }
    }
    for id in corpus.keys() {
        assert!(rules().iter().any(|rule| rule.id == *id), "{id} is no rule");
    }
    assert!(missing.is_empty(), "without examples: {missing:?}");
}

#[test]
fn examples_are_found_only_if_the_upgrade_contains_the_change() {
    let mut wrong = Vec::new();
    for (id, examples) in corpus() {
        let rule = rules().iter().find(|rule| rule.id == id).expect("a rule");
        for (_, version) in &rule.events {
            let step = Range { from: before(*version), to: *version };
            for text in &examples.found {
                if *version > Version::oldest() && !finds(id, text, step) {
                    wrong.push(format!("{id} misses in the step to {version}: {text}"));
                }
            }
        }
        let first = rule.events.iter().map(|(_, version)| *version).min().expect("an event");
        let earlier = Range { from: Version::oldest(), to: before(first) };
        for text in &examples.found {
            if finds(id, text, earlier) {
                wrong.push(format!("{id} finds before {first}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Code that uses a name, and code that uses another thing with this name.
fn uses(kind: &str, name: &str) -> Option<(String, String)> {
    let name = name.replace('*', "X");
    let member = name.split_once("::");
    let pair = match kind {
        "function" => (
            format!("{name}();"),
            format!("namespace A; function {name}() {{}} {name}(); $a->{name}(); A::{name}();"),
        ),
        "constant" => {
            (format!("echo {name};"), format!("namespace A; const {name} = 1; echo {name};"))
        }
        "class" if name.contains('-') => return None,
        "class" => (format!("new {name};"), format!("namespace A; new {name};")),
        "method" => {
            let (class, method) = member?;
            let class = if class == "*" { "PDO" } else { class };
            (
                format!("function f({class} $o) {{ $o->{method}(); }}"),
                format!("class Own {{ function {method}() {{}} }} (new Own)->{method}();"),
            )
        }
        "classconst" => (format!("echo {name};"), format!("namespace A; echo {name};")),
        "property" => {
            let (class, property) = member?;
            (
                format!("function f({class} $o) {{ return $o->{property}; }}"),
                format!("function f(Own $o) {{ return $o->{property}; }}"),
            )
        }
        "variable" => (format!("echo {name};"), format!("echo '{name}';")),
        "ini" => (format!("ini_set('{name}', '1');"), format!("own_set('{name}', '1');")),
        "declares-function" => {
            let guarded = format!("if (!function_exists('{name}')) {{ function {name}() {{}} }}");
            (format!("function {name}() {{}}"), guarded)
        }
        "declares-class" => {
            (format!("class {name} {{}}"), format!("namespace A; class {name} {{}}"))
        }
        _ => return None,
    };
    Some((format!("<?php {}", pair.0), format!("<?php {}", pair.1)))
}

fn names(rule: &Rule) -> Vec<(&'static str, &'static str)> {
    let mut names = Vec::new();
    for (kind, text) in rule.selectors() {
        let words = text.split(' ').map(|word| word.split('=').next().unwrap_or(word));
        names.extend(words.map(|word| (kind, word)));
    }
    names
}

#[test]
fn every_name_is_found_and_other_things_with_this_name_are_not() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for (kind, name) in names(rule) {
            let Some((found, clean)) = uses(kind, name) else { continue };
            if !finds(rule.id, &found, whole()) {
                wrong.push(format!("{} misses: {found}", rule.id));
            }
            if finds(rule.id, &clean, whole()) {
                wrong.push(format!("{} finds: {clean}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
