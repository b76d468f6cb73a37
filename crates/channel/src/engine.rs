//! Identity of a worker's libphp: the facts that it reports before PHP starts, and the check that
//! it is the intended one.

use crate::lossless;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The flag with which `samovar-php` prints an [`EngineFacts`] as JSON and exits.
pub const ENGINE_FLAG: &str = "--engine";

/// The variable that makes the dynamic linker load a given libphp before it searches for one.
pub const ENGINE_VARIABLE: &str = "LD_PRELOAD";

/// Facts about the loaded libphp, read from its constants: none of its code has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineFacts {
    /// The library's file, according to the dynamic linker.
    #[serde(with = "lossless")]
    pub file: PathBuf,
    /// `PHP_VERSION`; empty if it was not found.
    pub php: String,
    /// Build API of its modules, such as `API20220829,NTS`.
    pub api: String,
    /// GNU's build id in hexadecimal; empty if there is none.
    pub build_id: String,
    /// Source package from which `make php-engine` built it; empty if it was built otherwise.
    pub source: String,
    /// Build id of the libphp that was installed at that time.
    pub beside: String,
    /// Another libphp that is also loaded.
    pub other: Option<String>,
    /// `PHP_VERSION` of the headers that the worker was built with.
    pub built_php: String,
    /// Build API of these headers.
    pub built_api: String,
}

impl EngineFacts {
    /// The JSON that `samovar-php` prints.
    #[must_use]
    pub fn to_json(&self) -> String {
        // JSON cannot represent maps whose keys are not strings, nor values that refuse.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the printed JSON: the first line that is valid, because the dynamic linker may have
    /// printed something before.
    #[must_use]
    pub fn from_words(said: &str) -> Option<EngineFacts> {
        said.lines().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Checks that it is the wanted file, and a libphp for this worker and its extensions.
    ///
    /// # Errors
    ///
    /// The reason, with a hint.
    pub fn fits(&self, wanted: &Path) -> Result<(), String> {
        let same = |a: &Path, b: &Path| a == b || a.canonicalize().ok() == b.canonicalize().ok();
        if !same(&self.file, wanted) {
            return Err(format!(
                "PHP was loaded from `{}` instead\n\
                 hint: use a libphp for this machine with the soname libphp.so; `make php-engine` \
                 builds one",
                self.file.display()
            ));
        }
        if let Some(other) = &self.other {
            return Err(format!(
                "`{other}` was loaded too\nhint: use an engine with the soname libphp.so; \
                 otherwise it does not replace the other libphp"
            ));
        }
        let Self { php, api, built_php, built_api, .. } = self;
        if php != built_php {
            let php = if php.is_empty() { "of unknown version" } else { php };
            return Err(format!(
                "its PHP is {php}; this worker was built for {built_php}\n\
                 hint: build both for the installed PHP: `make build php-engine`"
            ));
        }
        if api != built_api {
            return Err(format!(
                "it is built as `{api}`; worker and extensions are `{built_api}`\nhint: build a \
                 matching engine with `make php-engine`"
            ));
        }
        Ok(())
    }

    /// The change of the installed libphp since this engine was made, if it is a different one now.
    #[must_use]
    pub fn outdated(&self, installed: &EngineFacts) -> Option<String> {
        let hint = "hint: build an engine of the installed PHP with `make php-engine`, then run \
                    `samovar reload`";
        if installed.php.is_empty() || installed.file == self.file {
            return None;
        }
        if installed.php != self.php {
            return Some(format!(
                "the installed libphp is {}, the engine {}: the fixes in between are missing, and \
                 extensions have another version\n{hint}",
                installed.php, self.php
            ));
        }
        let is_known = !self.beside.is_empty() && !installed.build_id.is_empty();
        (is_known && self.beside != installed.build_id).then(|| {
            format!(
                "the installed libphp {} was replaced since the engine was built from {}: the \
                 fixes in between are missing\n{hint}",
                installed.php, self.source
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> EngineFacts {
        EngineFacts {
            file: "/opt/libphp8.2.so".into(),
            php: "8.2.36".into(),
            api: "API20220829,NTS".into(),
            build_id: "aa".into(),
            source: "8.2.36-1~deb12u1".into(),
            beside: "bb".into(),
            other: None,
            built_php: "8.2.36".into(),
            built_api: "API20220829,NTS".into(),
        }
    }

    fn refused(change: impl FnOnce(&mut EngineFacts)) -> String {
        let mut facts = facts();
        change(&mut facts);
        facts.fits(Path::new("/opt/libphp8.2.so")).expect_err("something is wrong")
    }

    #[test]
    fn only_matching_libphp_is_accepted() {
        assert_eq!(facts().fits(Path::new("/opt/libphp8.2.so")), Ok(()));
        for (said, word) in [
            (refused(|f| f.file = "/usr/lib/libphp.so".into()), "`/usr/lib/libphp.so` instead"),
            (refused(|f| f.other = Some("/usr/lib/libphp.so".into())), "was loaded too"),
            (
                refused(|f| f.php = "8.2.30".into()),
                "its PHP is 8.2.30; this worker was built for 8.2.36",
            ),
            (refused(|f| f.php.clear()), "of unknown version"),
            (refused(|f| f.api = "API20220829,TS".into()), "it is built as `API20220829,TS`"),
        ] {
            assert!(said.contains(word) && said.contains("\nhint: "), "{said}");
        }
    }

    #[test]
    fn replaced_libphp_is_reported_as_outdated() {
        let installed = |php: &str, build_id: &str| EngineFacts {
            file: "/usr/lib/libphp.so".into(),
            php: php.into(),
            build_id: build_id.into(),
            ..EngineFacts::default()
        };
        let said = |php, build_id| facts().outdated(&installed(php, build_id));
        assert_eq!(said("8.2.36", "bb"), None);
        assert!(
            said("8.2.37", "cc").is_some_and(|text| text.contains("is 8.2.37, the engine 8.2.36"))
        );
        // Debian's own patches do not change PHP's version.
        assert!(said("8.2.36", "cc").is_some_and(|text| text.contains("was replaced since")));
        // The installed libphp is unknown, or the one that this engine was built from.
        assert_eq!(said("", ""), None);
        assert_eq!(said("8.2.36", ""), None);
        let copy = EngineFacts { source: String::new(), beside: String::new(), ..facts() };
        assert_eq!(copy.outdated(&installed("8.2.36", "cc")), None);
        assert!(copy.outdated(&installed("8.2.37", "cc")).is_some());
    }
}
