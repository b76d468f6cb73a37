//! Label of the application's release, from the settings or from a file. It is read at each start
//! and reload, not with the settings: other commands need no label.

use crate::schema::notation;
use crate::schema::settings::Settings;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum number of bytes read from the file.
const FILE_BYTES_MAX: u64 = 4_096;
/// Maximum number of characters of an invalid label in a message.
const SHOWN_MAX: usize = 40;

/// Reason why there is no valid label.
#[derive(Debug)]
pub enum InvalidRelease {
    /// The file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// The label in the file, or of the command, has other characters.
    Invalid(Option<PathBuf>, String),
}

impl std::error::Error for InvalidRelease {}

impl std::fmt::Display for InvalidRelease {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InvalidRelease::Unreadable(path, error) => write!(
                to,
                "cannot read `release_file` = `{}`: {error}\nhint: write the label of the release \
                 into this file before the reload, or remove the setting",
                path.display()
            ),
            InvalidRelease::Invalid(path, label) => {
                let shown: String = label.chars().take(SHOWN_MAX).collect();
                let rest = if shown.len() < label.len() { "…" } else { "" };
                write!(to, "invalid label of a release: `{}{rest}`", shown.escape_debug())?;
                if let Some(path) = path {
                    write!(to, " in `release_file` = `{}`", path.display())?;
                }
                to.write_str(
                    "\nhint: use up to 100 letters, digits, `.`, `_`, `-`, `+`, `/`, `:`, `@`, \
                     `~`, a letter or digit first",
                )
            }
        }
    }
}

/// Returns the label of the release that these settings serve; empty: none was given. `of_command`
/// is the label of `samovar reload --release`, which overrides the settings.
pub fn release_of(settings: &Settings, of_command: Option<&str>) -> Result<String, InvalidRelease> {
    if let Some(label) = of_command {
        return checked(label, None);
    }
    match (&settings.release, &settings.release_file) {
        (Some(label), _) => checked(label, None),
        (None, Some(path)) => of_file(path),
        (None, None) => Ok(String::new()),
    }
}

fn of_file(path: &Path) -> Result<String, InvalidRelease> {
    let unreadable = |error| InvalidRelease::Unreadable(path.to_owned(), error);
    // A pipe would block the reload.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(std::io::Error::other("it is not a regular file")));
    }
    let mut text = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&text);
    checked(text.lines().next().unwrap_or_default().trim_end(), Some(path))
}

fn checked(label: &str, path: Option<&Path>) -> Result<String, InvalidRelease> {
    if notation::release(label) {
        return Ok(label.to_owned());
    }
    Err(InvalidRelease::Invalid(path.map(Path::to_owned), label.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::release_of;
    use crate::schema::macros::Blank;
    use crate::schema::settings::Settings;

    #[test]
    fn label_of_command_is_before_setting_and_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("REVISION");
        std::fs::write(&path, "8c1f2e0\nsecond line\n").expect("our own folder");
        let mut settings = Settings::blank();
        assert_eq!(release_of(&settings, None).expect("none"), "");
        settings.release_file = Some(path.clone());
        assert_eq!(release_of(&settings, None).expect("of the file"), "8c1f2e0");
        settings.release = Some("v1.2-3-g8c1f2e0".to_owned());
        assert_eq!(release_of(&settings, None).expect("of the setting"), "v1.2-3-g8c1f2e0");
        assert_eq!(release_of(&settings, Some("shop/2@a")).expect("of the command"), "shop/2@a");
    }

    #[test]
    fn hostile_labels_are_refused_with_their_text() {
        let (long, dotted) = ("a".repeat(101), "a".repeat(100));
        assert_eq!(release_of(&Settings::blank(), Some(&dotted)).expect("100 bytes"), dotted);
        for (label, shown) in [
            ("", "``"),
            (long.as_str(), "aaaaaaaa…`"),
            ("<b>1</b>", "`<b>1</b>`"),
            ("1\n2", "`1\\n2`"),
            ("1\u{202e}2", "`1\\u{202e}2`"),
            ("\u{1b}[2J", "`\\u{1b}[2J`"),
            ("é", "`é`"),
            ("-x", "`-x`"),
            ("a b", "`a b`"),
            ("a\"b", "`a\\\"b`"),
        ] {
            let error = release_of(&Settings::blank(), Some(label)).expect_err(label).to_string();
            assert!(error.contains(shown) && error.contains("hint: use up to 100"), "{error}");
        }
    }

    #[test]
    fn unusable_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("REVISION");
        let settings = Settings { release_file: Some(path.clone()), ..Settings::blank() };
        let error = || release_of(&settings, None).expect_err("no label").to_string();
        assert!(error().contains("REVISION`: No such file"), "{}", error());
        for bytes in [&b""[..], b"\n1.0", b"\xff\xfe", &[0; 10_000], &[b'a'; 10_000]] {
            std::fs::write(&path, bytes).expect("our own folder");
            assert!(error().contains("in `release_file` = "), "{}", error());
        }
        let settings = Settings { release_file: Some(folder.path().to_owned()), ..settings };
        let error = release_of(&settings, None).expect_err("a folder").to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
