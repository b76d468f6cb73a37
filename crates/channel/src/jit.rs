//! Whether PHP's JIT is on, asked of a worker's program before a server starts it.

use crate::options::WorkerOptions;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The worker's argument: which php.ini (empty: the built-in search), then `NAME=VALUE` for each directive.
pub const JIT_FLAG: &str = "--jit";
/// What its answer begins with.
const ANSWER: &str = "JIT: ";
/// Of the directives that decide. All others stay away: they may be secrets, and arguments are seen by everybody.
const PREFIX: &str = "opcache.";

/// What decides whether PHP's JIT is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JitQuestion {
    php_ini: Option<PathBuf>,
    define: BTreeMap<String, String>,
}

impl JitQuestion {
    /// As a server's settings have it.
    #[must_use]
    pub fn new(php_ini: Option<&Path>, define: &BTreeMap<String, String>) -> JitQuestion {
        let own = define.iter().filter(|(name, _)| name.starts_with(PREFIX));
        let define = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        JitQuestion { php_ini: php_ini.map(Path::to_owned), define }
    }

    /// The worker's arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let ini = self.php_ini.clone().unwrap_or_default().into_os_string();
        let directives = self.define.iter().map(|(name, value)| format!("{name}={value}").into());
        [JIT_FLAG.into(), ini].into_iter().chain(directives).collect()
    }

    /// What stands behind the flag; what is no directive is left out.
    #[must_use]
    pub fn from_words(words: &[String]) -> JitQuestion {
        let (ini, directives) = words.split_first().map_or(("", words), |(i, d)| (i.as_str(), d));
        let pairs = directives.iter().filter_map(|word| word.split_once('='));
        JitQuestion {
            php_ini: Some(PathBuf::from(ini)).filter(|ini| !ini.as_os_str().is_empty()),
            define: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// For a PHP that is started for the answer alone.
    #[must_use]
    pub fn options(self) -> WorkerOptions {
        let bare = WorkerOptions::bare(PathBuf::from("/"));
        WorkerOptions { php_ini: self.php_ini, define: self.define, ..bare }
    }

    /// What the worker prints.
    #[must_use]
    pub fn answer(mode: Option<&str>) -> String {
        format!("{ANSWER}{}", mode.unwrap_or_default())
    }

    /// How the JIT compiles, if it does, by what the worker has printed; extensions may have said something, too.
    #[must_use]
    pub fn mode(said: &str) -> Option<&str> {
        let mode = said.lines().find_map(|line| line.strip_prefix(ANSWER))?;
        Some(mode).filter(|mode| !mode.is_empty())
    }
}

/// What whoever turned it on is told.
#[must_use]
pub fn jit_warning(mode: &str) -> String {
    format!(
        "PHP's JIT is on (`opcache.jit={mode}`): that of PHP 8.2 has computed wrong numbers, and what it compiles is in no \
         profile by its lines\nhint: opcache.jit = disable; pages that wait or print gain nothing by it"
    )
}

#[cfg(test)]
mod tests {
    use super::JitQuestion;
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn a_question_arrives_without_secrets() {
        let define = [("opcache.jit", "tracing"), ("db.password", "secret"), ("opcache.x", "a=b")];
        let define: BTreeMap<_, _> =
            define.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        for ini in [None, Some(Path::new("/etc/php.ini"))] {
            let question = JitQuestion::new(ini, &define);
            let words = question.arguments().into_iter().skip(1);
            let words: Vec<_> = words.map(|word| word.into_string().unwrap()).collect();
            assert!(!words.iter().any(|word| word.contains("secret")));
            assert_eq!(JitQuestion::from_words(&words), question);
        }
    }

    #[test]
    fn an_answer_is_found_among_other_words() {
        for (mode, found) in [(Some("1255"), Some("1255")), (None, None)] {
            let said = format!("Warning: x\n{}\n", JitQuestion::answer(mode));
            assert_eq!(JitQuestion::mode(&said), found);
        }
        assert_eq!(JitQuestion::mode("nothing"), None);
    }
}
