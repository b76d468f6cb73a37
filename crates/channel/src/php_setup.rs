//! Properties of a started PHP that `samovar doctor` checks: directives, extensions, and the
//! variables of the environment that frameworks read.

use crate::encoding::{MESSAGE_BYTES_MAX, one_line_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Directives that are reported. None of them contains a secret.
pub const DIRECTIVES: &[&str] = &[
    "allow_url_include",
    "auto_globals_jit",
    "display_errors",
    "display_startup_errors",
    "implicit_flush",
    "log_errors",
    "max_execution_time",
    "memory_limit",
    "opcache.enable",
    "opcache.file_cache_only",
    "opcache.interned_strings_buffer",
    "opcache.jit",
    "opcache.jit_buffer_size",
    "opcache.max_accelerated_files",
    "opcache.max_wasted_percentage",
    "opcache.memory_consumption",
    "opcache.optimization_level",
    "opcache.protect_memory",
    "opcache.revalidate_freq",
    "opcache.revalidate_path",
    "opcache.validate_timestamps",
    "open_basedir",
    "realpath_cache_size",
    "realpath_cache_ttl",
    "session.auto_start",
    "session.lazy_write",
    "session.save_handler",
    "xdebug.mode",
    "zend.assertions",
    "zlib.output_compression",
    "zlib.output_compression_level",
];

/// Variables of the environment that are reported.
pub const VARIABLES: &[&str] = &["APP_DEBUG", "APP_ENV"];

/// Maximum bytes of a name or a value.
const WORD_BYTES_MAX: usize = 64;
/// Maximum bytes of a path. A longer one is left out.
const PATH_BYTES_MAX: usize = 400;
/// Bytes for the names of the fields and their punctuation.
const FRAME_BYTES_MAX: usize = 400;
/// Punctuation of an entry.
const ENTRY_BYTES_MAX: usize = 8;

/// Properties of a started PHP. They come from a process that PHP has run in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpSetup {
    /// The document root; empty: unknown.
    pub root: String,
    /// The front controller; empty: there is none, or it is unknown.
    pub script: String,
    /// Values of [`DIRECTIVES`]. A directive that PHP does not know is left out.
    pub directives: BTreeMap<String, String>,
    /// Names of the loaded extensions.
    pub extensions: Vec<String>,
    /// Values of [`VARIABLES`]. A variable that is not set is left out.
    pub environment: BTreeMap<String, String>,
}

impl PhpSetup {
    /// Returns the same in at most one message: values are truncated, and entries that do not fit
    /// are left out.
    #[must_use]
    pub fn bounded(self) -> PhpSetup {
        // One line has no control characters, so JSON escapes at most its quotes and backslashes.
        let cost = |text: &str| 2 * text.len() + ENTRY_BYTES_MAX;
        let mut left = MESSAGE_BYTES_MAX - FRAME_BYTES_MAX;
        let mut fits =
            |bytes: usize| left.checked_sub(bytes).inspect(|rest| left = *rest).is_some();
        let mut path = |path: String| {
            let clean = one_line_of(&path, PATH_BYTES_MAX).into_owned();
            if clean == path && fits(cost(&clean)) { clean } else { String::new() }
        };
        let (root, script) = (path(self.root), path(self.script));
        let word = |text: &str| one_line_of(text, WORD_BYTES_MAX).into_owned();
        let mut pairs = |all: BTreeMap<String, String>| -> BTreeMap<String, String> {
            let clean = all.iter().map(|(name, value)| (word(name), word(value)));
            clean.filter(|(name, value)| fits(cost(name) + cost(value))).collect()
        };
        let (directives, environment) = (pairs(self.directives), pairs(self.environment));
        let names = self.extensions.iter().map(|name| word(name));
        let extensions = names.filter(|name| fits(cost(name))).collect();
        PhpSetup { root, script, directives, extensions, environment }
    }
}

#[cfg(test)]
mod tests {
    use super::{DIRECTIVES, PhpSetup, VARIABLES};
    use crate::{Event, encode};

    #[test]
    fn any_setup_fits_a_message() {
        let long = "\"".repeat(5_000);
        let pairs =
            |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), long.clone())).collect();
        let whole = PhpSetup {
            root: "\\".repeat(400),
            script: long.clone(),
            directives: pairs(DIRECTIVES),
            extensions: (0..500).map(|n| format!("{n}{long}")).collect(),
            environment: pairs(VARIABLES),
        };
        let bounded = whole.bounded();
        assert_eq!((bounded.root.len(), &*bounded.script), (400, ""), "no truncated path");
        assert_eq!(bounded.directives.len(), DIRECTIVES.len());
        assert!(!bounded.extensions.is_empty());
        assert!(encode(&Event::Php(bounded)).is_ok());
    }
}
