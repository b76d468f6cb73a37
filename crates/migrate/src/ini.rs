//! Settings in php.ini and .user.ini, `php_value` in .htaccess, and the extensions that php.ini
//! loads or composer.json requires.

use crate::finding::Finding;
use crate::project::{Candidate, FileFacts, Need};
use crate::rules::{Target, lower, names};
use crate::source::Source;
use crate::version::Range;

/// Directives that have the name of a setting as their first word.
const DIRECTIVES: [&str; 4] = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"];

/// Name of the file with the extensions that a project needs.
const COMPOSER: &str = "composer.json";

/// Whether a file of this name contains settings of PHP, or needs extensions.
pub(crate) fn is_settings(name: &str) -> bool {
    match name.to_ascii_lowercase().rsplit_once('.') {
        Some((start, "ini")) => start == ".user" || start.starts_with("php"),
        Some((start, "htaccess")) => start.is_empty(),
        _ => name == COMPOSER,
    }
}

/// Checks a file with settings.
pub(crate) fn check(name: &str, text: &[u8], range: Range) -> FileFacts {
    let source = Source::new(text);
    let mut facts = FileFacts { lines: source.line_count(), ..FileFacts::default() };
    let mut offset = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = offset;
        offset += line.len() as u32;
        let found = if name == COMPOSER {
            required(line).map(|name| (Target::Extension, name))
        } else {
            match setting(line) {
                Some((name, value)) if name == "extension" => {
                    Some((Target::Extension, extension(&value)))
                }
                Some((name, _)) => Some((Target::Ini, name)),
                None => None,
            }
        };
        let Some((target, name)) = found else { continue };
        for entry in names().find(target, &name) {
            let Some((kind, version)) = entry.rule.event(range, u32::MAX) else { continue };
            let (number, column) = source.position(start);
            let colon = if entry.rule.says.is_empty() { "" } else { ": " };
            let subject = if target == Target::Ini { "ini setting" } else { "extension" };
            let finding = Finding {
                rule: entry.rule.id,
                version: Some(version),
                kind,
                line: number,
                column,
                message: format!(
                    "the {subject} {name} is {} in PHP {version}{colon}{}",
                    kind.word(),
                    entry.rule.says
                ),
                action: entry.rule.advice(entry.replacement),
                url: &entry.rule.url,
                text: source.line_text(start),
                edits: Vec::new(),
            };
            facts.candidates.push(Candidate { finding, need: Need::Nothing });
        }
    }
    facts
}

/// Name of the extension in a line such as `"ext-mcrypt": "*"` of a composer.json.
fn required(line: &[u8]) -> Option<String> {
    let line = lower(line);
    let name = line.trim().strip_prefix("\"ext-")?;
    let (name, rest) = name.split_once('"')?;
    rest.trim_start().starts_with(':').then(|| name.to_owned())
}

/// Name of the extension in a value such as `mcrypt.so`.
fn extension(value: &str) -> String {
    let file = value.trim().trim_matches('"').rsplit(['/', '\\']).next().unwrap_or_default();
    let name = file.strip_prefix("php_").unwrap_or(file);
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Name and value of the setting in a line.
fn setting(line: &[u8]) -> Option<(String, String)> {
    let line = lower(line);
    let line = line.trim();
    if line.starts_with([';', '#', '[']) {
        return None;
    }
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    if words.next().is_some_and(|word| DIRECTIVES.contains(&word)) {
        let name = words.next()?.trim_matches('"').to_owned();
        return Some((name, words.next().unwrap_or_default().to_owned()));
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    // `php_admin_value[name] = value`
    let name = match name.split_once('[') {
        Some((directive, rest)) if DIRECTIVES.contains(&directive) => rest.strip_suffix(']')?,
        _ => name,
    };
    (!name.is_empty() && !name.contains(' ')).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_settings_are_found() {
        let cases = [
            ("safe_mode = On", Some("safe_mode")),
            ("  php_value  magic_quotes_gpc 1", Some("magic_quotes_gpc")),
            ("php_admin_value[safe_mode] = on", Some("safe_mode")),
            ("; safe_mode = On", None),
            ("[PHP]", None),
            ("RewriteEngine On", None),
        ];
        for (line, name) in cases {
            let found = setting(line.as_bytes()).map(|(name, _)| name);
            assert_eq!(found.as_deref(), name, "{line}");
        }
    }

    #[test]
    fn removed_extensions_and_settings_are_found() {
        let range = Range { from: "5.6".parse().expect("5.6"), to: "8.4".parse().expect("8.4") };
        let cases = [
            ("php.ini", "extension=php_mcrypt.dll", "mcrypt-extension"),
            ("php.ini", "extension = \"imap.so\"", "imap-extension"),
            (".htaccess", "php_flag track_errors on", "track-errors"),
            ("composer.json", "  \"ext-mysql\": \"*\",", "mysql-extension"),
        ];
        for (name, text, rule) in cases {
            let found = check(name, text.as_bytes(), range);
            let rules: Vec<_> = found.candidates.iter().map(|one| one.finding.rule).collect();
            assert_eq!(rules, [rule], "{text}");
        }
        for (name, text) in [
            ("php.ini", "extension=mysqli"),
            ("composer.json", "\"ext-mysqli\": \"*\""),
            ("composer.json", "\"mysql\": \"*\""),
            (".htaccess", "Options -Indexes"),
        ] {
            assert!(check(name, text.as_bytes(), range).candidates.is_empty(), "{text}");
        }
    }
}
