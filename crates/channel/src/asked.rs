//! Query about PHP, sent to a worker's program before a server starts it: whether its JIT is on,
//! where its sessions are stored, and the directives and extensions that `samovar doctor` checks.

use crate::options::WorkerOptions;
use crate::php_setup::{DIRECTIVES, PhpSetup};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The worker's flag, followed by the php.ini to use (empty: the built-in search), then
/// `NAME=VALUE` for each directive.
pub const ASK_FLAG: &str = "--ask";
/// Prefixes of the lines of its reply.
const JIT: &str = "JIT: ";
const SESSIONS: &str = "Sessions: ";
const DIRECTIVE: &str = "Directive: ";
const EXTENSION: &str = "Extension: ";
/// Prefix of the directives that affect the JIT.
const OPCACHE: &str = "opcache.";
const SESSION_HANDLER: &str = "session.save_handler";
const SESSION_PATH: &str = "session.save_path";
/// A session path with this text is on another machine and may contain a password.
const ELSEWHERE: &str = "://";

/// Settings that determine the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhpQuestion {
    php_ini: Option<PathBuf>,
    define: BTreeMap<String, String>,
}

impl PhpQuestion {
    /// Creates the query from a server's settings.
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

    /// Parses the words after the flag. Words that are not directives are left out.
    #[must_use]
    pub fn from_words(words: &[String]) -> PhpQuestion {
        let (ini, directives) = words.split_first().map_or(("", words), |(i, d)| (i.as_str(), d));
        let pairs = directives.iter().filter_map(|word| word.split_once('='));
        PhpQuestion {
            php_ini: Some(PathBuf::from(ini)).filter(|ini| !ini.as_os_str().is_empty()),
            define: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        }
    }

    /// Options for a PHP that is started only for this reply.
    #[must_use]
    pub fn options(self) -> WorkerOptions {
        let bare = WorkerOptions::bare(PathBuf::from("/"));
        WorkerOptions { php_ini: self.php_ini, define: self.define, ..bare }
    }
}

/// Whether a directive is passed. All others are left out: they may be secrets, and arguments are
/// visible to all users.
fn decides(name: &str, value: &str) -> bool {
    name.starts_with(OPCACHE)
        || name == SESSION_HANDLER
        || DIRECTIVES.contains(&name)
        || name == SESSION_PATH && !value.contains(ELSEWHERE)
}

/// PHP's reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhpResponse {
    /// Mode of the JIT, if it is on.
    pub jit: Option<String>,
    /// Folder of the sessions, if they are files.
    pub sessions: Option<String>,
    /// Its directives and extensions.
    pub setup: PhpSetup,
}

impl PhpResponse {
    /// The text that the worker prints.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |what: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{what}{value}\n")).unwrap_or_default()
        };
        let directives = self.setup.directives.iter();
        let directives = directives.map(|(name, value)| format!("{DIRECTIVE}{name}={value}\n"));
        let extensions = self.setup.extensions.iter().map(|name| format!("{EXTENSION}{name}\n"));
        let own = [line(JIT, &self.jit), line(SESSIONS, &self.sessions)];
        own.into_iter().chain(directives).chain(extensions).collect()
    }

    /// Parses the worker's output, which may contain lines of extensions.
    #[must_use]
    pub fn of(said: &str) -> PhpResponse {
        let value = |what: &str| {
            let value = said.lines().find_map(|line| line.strip_prefix(what))?;
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        let all = |what: &'static str| said.lines().filter_map(move |line| line.strip_prefix(what));
        let pairs = all(DIRECTIVE).filter_map(|line| line.split_once('='));
        let setup = PhpSetup {
            directives: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            extensions: all(EXTENSION).map(str::to_owned).collect(),
            ..PhpSetup::default()
        };
        PhpResponse { jit: value(JIT), sessions: value(SESSIONS), setup }
    }
}

/// Warning for an operator who has turned on the JIT.
#[must_use]
pub fn jit_warning(mode: &str) -> String {
    format!(
        "PHP's JIT is enabled (`opcache.jit={mode}`): the JIT of PHP 8.2 has computed wrong \
         numbers, and profiles have no lines of the code that it compiles\nhint: set opcache.jit = \
         disable; pages that wait or print gain nothing from the JIT"
    )
}

#[cfg(test)]
mod tests {
    use super::{PhpQuestion, PhpResponse};
    use crate::php_setup::PhpSetup;
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn query_omits_secrets() {
        let define = [
            ("opcache.jit", "tracing"),
            ("db.password", "secret"),
            ("opcache.x", "a=b"),
            ("memory_limit", "1G"),
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
            for kept in ["session.save_handler=redis", "memory_limit=1G"] {
                assert!(words.iter().any(|word| word == kept), "{words:?}");
            }
            assert_eq!(PhpQuestion::from_words(&words), question);
        }
    }

    #[test]
    fn reply_is_found_among_other_output() {
        let known = Some("1255".to_owned());
        let folder = Some("/var/lib/php/sessions".to_owned());
        for (jit, sessions) in
            [(known.clone(), folder.clone()), (None, folder), (known, None), (None, None)]
        {
            let pair = ("memory_limit".to_owned(), "a=b".to_owned());
            let setup = PhpSetup {
                directives: [pair].into(),
                extensions: vec!["Zend OPcache".to_owned(), "xdebug".to_owned()],
                ..PhpSetup::default()
            };
            let response = PhpResponse { jit, sessions, setup };
            assert_eq!(PhpResponse::of(&format!("Warning: x\n{}", response.text())), response);
        }
        assert_eq!(PhpResponse::of("JIT: \nSessions: \n"), PhpResponse::default());
    }
}
