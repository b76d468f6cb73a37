//! Settings in php.ini, .user.ini, pool files of php-fpm, and `php_value` in .htaccess.

use crate::finding::Finding;
use crate::project::{Candidate, FileFacts, Need};
use crate::rules::{Target, lower, names};
use crate::source::Source;
use crate::version::Range;

/// Directives that have the name of a setting as their first word.
const DIRECTIVES: [&str; 4] = ["php_value", "php_flag", "php_admin_value", "php_admin_flag"];

/// Whether a file of this name contains settings of PHP.
pub(crate) fn is_settings(name: &str) -> bool {
    match name.to_ascii_lowercase().rsplit_once('.') {
        Some((start, "ini")) => start == ".user" || start.starts_with("php"),
        Some((start, "htaccess")) => start.is_empty(),
        _ => false,
    }
}

/// Checks a file with settings.
pub(crate) fn check(text: &[u8], range: Range) -> FileFacts {
    let source = Source::new(text);
    let mut facts = FileFacts { lines: source.line_count(), ..FileFacts::default() };
    let mut offset = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = offset;
        offset += line.len() as u32;
        let Some(name) = setting(line) else { continue };
        for entry in names().find(Target::Ini, &name) {
            let Some((kind, version)) = entry.rule.event(range, u32::MAX) else { continue };
            let (number, column) = source.position(start);
            let colon = if entry.rule.says.is_empty() { "" } else { ": " };
            let finding = Finding {
                rule: entry.rule.id,
                version: Some(version),
                kind,
                line: number,
                column,
                message: format!(
                    "the ini setting {name} is {} in PHP {version}{colon}{}",
                    kind.word(),
                    entry.rule.says
                ),
                action: entry.replacement.map_or_else(
                    || entry.rule.action.to_owned(),
                    |replacement| format!("use {replacement}"),
                ),
                url: &entry.rule.url,
                text: source.line_text(start),
                edits: Vec::new(),
            };
            facts.candidates.push(Candidate { finding, need: Need::Nothing });
        }
    }
    facts
}

/// Name of the setting in a line.
fn setting(line: &[u8]) -> Option<String> {
    let line = lower(line);
    let line = line.trim();
    if line.starts_with([';', '#', '[']) {
        return None;
    }
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    if words.next().is_some_and(|word| DIRECTIVES.contains(&word)) {
        return words.next().map(|word| word.trim_matches('"').to_owned());
    }
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    // `php_admin_value[name] = value`
    let name = match name.split_once('[') {
        Some((directive, rest)) if DIRECTIVES.contains(&directive) => rest.strip_suffix(']')?,
        _ => name,
    };
    (!name.is_empty() && !name.contains(' ')).then(|| name.to_owned())
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
            assert_eq!(setting(line.as_bytes()).as_deref(), name, "{line}");
        }
    }
}
