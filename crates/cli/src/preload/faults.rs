//! Log of a server with a preload file → the files that PHP could not preload, with its messages.
//! Pure.

use std::collections::{BTreeMap, HashSet};

/// Beginnings of PHP's messages in a line of the log.
const MESSAGES: [&str; 6] = [
    "PHP Warning:",
    "PHP Fatal error:",
    "PHP Parse error:",
    "PHP Deprecated:",
    "PHP Notice:",
    "PHP Error:",
];

/// Returns PHP's message in a line of the log.
fn message(line: &str) -> Option<&str> {
    let at = MESSAGES.iter().find_map(|begin| line.find(begin))?;
    Some(line[at + "PHP ".len()..].trim())
}

/// Splits a message at the file that it names: text and file. Paths may contain ` in `.
fn split<'a>(message: &'a str, files: &HashSet<&str>) -> Option<(&'a str, &'a str)> {
    let by_words = message.rsplit_once(" on line ").map(|(rest, _)| rest);
    let by_colon = message.rsplit_once(':').map(|(rest, _)| rest);
    let places = by_words.into_iter().chain(by_colon);
    places
        .flat_map(|rest| {
            rest.match_indices(" in ").map(move |(at, _)| (&rest[..at], &rest[at + 4..]))
        })
        .find(|(_, file)| files.contains(file))
}

/// Messages about files, and other messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Reasons by file.
    pub(super) files: BTreeMap<String, String>,
    /// Messages that name none of the files.
    pub(super) others: Vec<String>,
}

/// Searches the log for messages of PHP about these files.
pub(super) fn faults<'a>(log: impl IntoIterator<Item = &'a str>, files: &HashSet<&str>) -> Faults {
    let mut found = Faults::default();
    let reason =
        |text: &str| format!("PHP: {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
    for message in log.into_iter().filter_map(message) {
        match split(message, files) {
            Some((text, file)) => {
                found.files.entry(file.to_owned()).or_insert_with(|| reason(text));
            }
            None => found.others.push(reason(message)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_attributed_to_files() {
        let log = [
            "samovar: PHP Warning:  Can't preload unlinked class B: Unknown parent C in /srv/B in \
             c.php on line 3",
            "PHP Fatal error:  Cannot redeclare f() (previously declared in /srv/a.php:1) in \
             /srv/d.php on line 7",
            "PHP Parse error:  syntax error in /srv/e.php:4",
            "PHP Warning:  something else in /srv/other.php on line 1",
            "PHP Warning:  no file at all",
            "accepting connections",
        ];
        let files = ["/srv/B in c.php", "/srv/d.php", "/srv/e.php", "/srv/a.php"];
        let found = faults(log, &files.into_iter().collect());
        let of = |file: &str| found.files.get(file).map(String::as_str);
        assert_eq!(
            of("/srv/d.php"),
            Some("PHP: Fatal error: Cannot redeclare f() (previously declared in /srv/a.php:1)")
        );
        assert_eq!(of("/srv/e.php"), Some("PHP: Parse error: syntax error"));
        assert_eq!(of("/srv/a.php"), None);
        assert_eq!(found.others.len(), 2, "{found:?}");
        assert_eq!(
            of("/srv/B in c.php"),
            Some("PHP: Warning: Can't preload unlinked class B: Unknown parent C")
        );
        assert_eq!(found.others[1], "PHP: Warning: no file at all");
    }
}
