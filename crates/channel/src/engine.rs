//! Which libphp a worker has: what one says of itself before PHP starts, and whether it is the one that was meant.

use crate::encoding::lossless;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The flag by which `samovar-php` prints an [`EngineFacts`] as JSON, and leaves.
pub const ENGINE_FLAG: &str = "--engine";

/// The variable by which the dynamic linker is told to load a libphp before it looks for one.
pub const ENGINE_VARIABLE: &str = "LD_PRELOAD";

/// What the libphp that was loaded says of itself, read from its constants: nothing of it has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineFacts {
    /// The library's file, as the dynamic linker has it.
    #[serde(with = "lossless")]
    pub file: PathBuf,
    /// `PHP_VERSION`; empty: it has none to be found.
    pub php: String,
    /// How modules for it are built: `API20220829,NTS`.
    pub api: String,
    /// GNU's build id in hexadecimal; empty: none.
    pub build_id: String,
    /// Of which source package `make php-engine` made it; empty: it was made by others.
    pub source: String,
    /// The build id of the libphp that was installed then.
    pub beside: String,
    /// Another libphp that is loaded as well.
    pub other: Option<String>,
    /// `PHP_VERSION` of the headers that the worker was built with.
    pub built_php: String,
    /// The same of the API.
    pub built_api: String,
}

impl EngineFacts {
    /// As `samovar-php` prints it.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only maps whose keys are no strings, and values that refuse, have no JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As it was printed: the first line that is one, since the dynamic linker may have said something before.
    #[must_use]
    pub fn from_words(said: &str) -> Option<EngineFacts> {
        said.lines().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Whether it is that file, and a libphp for this worker and its extensions.
    ///
    /// # Errors
    ///
    /// Why not, with a hint.
    pub fn fits(&self, wanted: &Path) -> Result<(), String> {
        let same = |a: &Path, b: &Path| a == b || a.canonicalize().ok() == b.canonicalize().ok();
        if !same(&self.file, wanted) {
            return Err(format!(
                "PHP was loaded from `{}` instead\n\
                 hint: it must be a libphp for this machine whose soname is libphp.so, such as `make php-engine` makes",
                self.file.display()
            ));
        }
        if let Some(other) = &self.other {
            return Err(format!(
                "`{other}` was loaded beside it\nhint: its soname must be libphp.so, or it does not take that one's place"
            ));
        }
        let Self { php, api, built_php, built_api, .. } = self;
        if php != built_php {
            let php = if php.is_empty() { "of no known version" } else { php };
            return Err(format!(
                "its PHP is {php}; this worker was built for {built_php}\n\
                 hint: make both anew for the PHP that is installed: `make build php-engine`"
            ));
        }
        if api != built_api {
            return Err(format!(
                "it is built as `{api}`; worker and extensions are `{built_api}`\nhint: `make php-engine` builds one alike"
            ));
        }
        Ok(())
    }

    /// What has become of the installed libphp since this engine was made, if it is another one by now.
    #[must_use]
    pub fn outdated(&self, installed: &EngineFacts) -> Option<String> {
        let hint = "hint: `make php-engine` makes one of the PHP that is installed now; then `samovar reload`";
        if installed.php.is_empty() || installed.file == self.file {
            return None;
        }
        if installed.php != self.php {
            return Some(format!(
                "the installed libphp is {}, the engine {}: it lacks what was mended in between, and extensions are of another version\n{hint}",
                installed.php, self.php
            ));
        }
        let is_known = !self.beside.is_empty() && !installed.build_id.is_empty();
        (is_known && self.beside != installed.build_id).then(|| {
            format!(
                "the installed libphp {} was replaced since the engine was made of {}: it lacks what was mended in between\n{hint}",
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
    fn what_fits_and_what_does_not() {
        assert_eq!(facts().fits(Path::new("/opt/libphp8.2.so")), Ok(()));
        for (said, word) in [
            (refused(|f| f.file = "/usr/lib/libphp.so".into()), "`/usr/lib/libphp.so` instead"),
            (refused(|f| f.other = Some("/usr/lib/libphp.so".into())), "loaded beside it"),
            (
                refused(|f| f.php = "8.2.30".into()),
                "its PHP is 8.2.30; this worker was built for 8.2.36",
            ),
            (refused(|f| f.php.clear()), "of no known version"),
            (refused(|f| f.api = "API20220829,TS".into()), "it is built as `API20220829,TS`"),
        ] {
            assert!(said.contains(word) && said.contains("\nhint: "), "{said}");
        }
    }

    #[test]
    fn a_libphp_that_was_renewed_is_told() {
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
        // Debian's own patches leave PHP's version alone.
        assert!(said("8.2.36", "cc").is_some_and(|text| text.contains("was replaced since")));
        // Nothing is known of the installed one, or of what this one was made beside.
        assert_eq!(said("", ""), None);
        assert_eq!(said("8.2.36", ""), None);
        let copy = EngineFacts { source: String::new(), beside: String::new(), ..facts() };
        assert_eq!(copy.outdated(&installed("8.2.36", "cc")), None);
        assert!(copy.outdated(&installed("8.2.37", "cc")).is_some());
    }
}
