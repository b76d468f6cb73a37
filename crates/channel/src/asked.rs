//! What PHP would start with, asked of a worker's program before a server starts it: whether its JIT is on, and where its sessions lie.

use crate::options::WorkerOptions;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The worker's argument: which php.ini (empty: the built-in search), then `NAME=VALUE` for each directive.
pub const ASK_FLAG: &str = "--ask";
/// What the lines of its answer begin with.
const JIT: &str = "JIT: ";
const SESSIONS: &str = "Sessions: ";
/// Of the directives that decide about the JIT.
const OPCACHE: &str = "opcache.";
const SESSION_HANDLER: &str = "session.save_handler";
const SESSION_PATH: &str = "session.save_path";
/// A place of sessions that may have a password in it is another machine's.
const ELSEWHERE: &str = "://";

/// What decides about the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhpQuestion {
    php_ini: Option<PathBuf>,
    define: BTreeMap<String, String>,
}

impl PhpQuestion {
    /// As a server's settings have it.
    #[must_use]
    pub fn new(php_ini: Option<&Path>, define: &BTreeMap<String, String>) -> PhpQuestion {
        let own = define.iter().filter(|(name, value)| decides(name, value));
        let define = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        PhpQuestion { php_ini: php_ini.map(Path::to_owned), define }
    }

    /// The worker's arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let ini = self.php_ini.clone().unwrap_or_default().into_os_string();
        let directives = self.define.iter().map(|(name, value)| format!("{name}={value}").into());
        [ASK_FLAG.into(), ini].into_iter().chain(directives).collect()
    }

    /// What stands behind the flag; what is no directive is left out.
    #[must_use]
    pub fn from_words(words: &[String]) -> PhpQuestion {
        let (ini, directives) = words.split_first().map_or(("", words), |(i, d)| (i.as_str(), d));
        let pairs = directives.iter().filter_map(|word| word.split_once('='));
        PhpQuestion {
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
}

/// All others stay away: they may be secrets, and arguments are seen by everybody.
fn decides(name: &str, value: &str) -> bool {
    name.starts_with(OPCACHE)
        || name == SESSION_HANDLER
        || name == SESSION_PATH && !value.contains(ELSEWHERE)
}

/// What PHP says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhpAnswer {
    /// How the JIT compiles, if it does.
    pub jit: Option<String>,
    /// The folder of sessions, where they are files.
    pub sessions: Option<String>,
}

impl PhpAnswer {
    /// What the worker prints.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |what: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{what}{value}\n")).unwrap_or_default()
        };
        line(JIT, &self.jit) + &line(SESSIONS, &self.sessions)
    }

    /// Of what the worker has printed; extensions may have said something, too.
    #[must_use]
    pub fn of(said: &str) -> PhpAnswer {
        let value = |what: &str| {
            let value = said.lines().find_map(|line| line.strip_prefix(what))?;
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        PhpAnswer { jit: value(JIT), sessions: value(SESSIONS) }
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
    use super::{PhpAnswer, PhpQuestion};
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn a_question_arrives_without_secrets() {
        let define = [
            ("opcache.jit", "tracing"),
            ("db.password", "secret"),
            ("opcache.x", "a=b"),
            ("session.save_handler", "redis"),
            ("session.save_path", "tcp://cache?auth=secret"),
        ];
        let define: BTreeMap<_, _> =
            define.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        for ini in [None, Some(Path::new("/etc/php.ini"))] {
            let question = PhpQuestion::new(ini, &define);
            let words = question.arguments().into_iter().skip(1);
            let words: Vec<_> = words.map(|word| word.into_string().unwrap()).collect();
            assert!(!words.iter().any(|word| word.contains("secret")), "{words:?}");
            assert!(words.iter().any(|word| word == "session.save_handler=redis"), "{words:?}");
            assert_eq!(PhpQuestion::from_words(&words), question);
        }
    }

    #[test]
    fn an_answer_is_found_among_other_words() {
        let known = Some("1255".to_owned());
        let folder = Some("/var/lib/php/sessions".to_owned());
        for (jit, sessions) in
            [(known.clone(), folder.clone()), (None, folder), (known, None), (None, None)]
        {
            let answer = PhpAnswer { jit, sessions };
            assert_eq!(PhpAnswer::of(&format!("Warning: x\n{}", answer.text())), answer);
        }
        assert_eq!(PhpAnswer::of("JIT: \nSessions: \n"), PhpAnswer::default());
    }
}
