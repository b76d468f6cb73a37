//! Redaction: removes secrets from tags, peers, names and paths before any other code sees them.
//!
//! Values of tags with secret names are replaced. Texts from outside lose query strings, passwords
//! in URLs, values of secret names (`token=…`), and the literals of SQL. Peers that are files
//! become classes. A worker classifies them, too, but its report is not trusted.

mod message;
mod sql;
mod sql_values;
mod text;

use crate::report::{Entry, Report, ReportedError, Statement, StatementKind, WaitKind};
use samovar_log::{Dialect, FileClass, STATEMENT_BYTES_MAX, normalise_sql};
use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher as _;

pub use text::BLOT;

/// Default words of secret names.
const SECRET: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "authorization",
    "cookie",
    "api_key",
    "apikey",
    "sessid",
];

/// Maximum number of statements that are known to have no secrets.
const CLEAN_STATEMENTS_MAX: usize = 4096;

/// Statements that were found to have no secrets, by the hash of their text: looking at each byte
/// of the same text again in every request would be expensive.
#[derive(Clone, Debug, Default)]
pub(crate) struct CleanStatements {
    key: foldhash::quality::RandomState,
    hashes: HashSet<u64, foldhash::fast::RandomState>,
}

impl CleanStatements {
    fn contains(&self, s: &Statement) -> bool {
        self.hashes.contains(&self.key.hash_one((s.kind, s.text)))
    }

    fn insert(&mut self, s: &Statement) {
        if self.hashes.len() == CLEAN_STATEMENTS_MAX {
            self.hashes.clear();
        }
        self.hashes.insert(self.key.hash_one((s.kind, s.text)));
    }
}

/// Secret names: those that contain one of these words, ignoring case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redaction(Box<[Box<str>]>);

impl Default for Redaction {
    fn default() -> Redaction {
        Redaction::new(SECRET)
    }
}

impl Redaction {
    /// Creates a redaction with these words; empty words are ignored.
    pub fn new<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Redaction {
        let lower = words.into_iter().map(|word| word.as_ref().to_ascii_lowercase());
        Redaction(lower.filter(|word| !word.is_empty()).map(String::into_boxed_str).collect())
    }

    /// Creates the redaction of the setting `insight.redact`; without words, the default one.
    #[must_use]
    pub fn of_setting(words: &[String]) -> Redaction {
        if words.is_empty() { Redaction::default() } else { Redaction::new(words) }
    }

    /// Returns the words of secret names, in lower case.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| &**word)
    }

    /// Returns whether a value with this name must be replaced.
    #[must_use]
    pub fn is_secret(&self, name: &str) -> bool {
        let is_in = |word: &str| {
            name.as_bytes().windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()))
        };
        self.0.iter().any(|word| is_in(word))
    }

    /// Returns a text from outside without its secrets: a path, a value, a message.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if sql::is_statement(text) {
            return Cow::Owned(sql::without_literals(text));
        }
        text::without_secrets(text, |name| self.is_secret(name))
    }

    /// Returns the entries of a report, encoded without their secrets. Returns `None` if there are
    /// no secrets in them.
    pub(crate) fn clean(&self, entries: &[Entry], known: &mut CleanStatements) -> Option<Vec<u8>> {
        let has_secret = entries.iter().any(|entry| self.changes(entry, known));
        has_secret.then(|| entries.iter().flat_map(|entry| self.encode_clean(entry)).collect())
    }

    fn value<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if self.is_secret(name) { BLOT.into() } else { self.text(value) }
    }

    fn changes(&self, entry: &Entry, known: &mut CleanStatements) -> bool {
        let is_new = |new: Cow<str>, old: &str| *new != *old;
        match entry {
            Entry::Route(name) => is_new(self.text(name), name),
            Entry::Wait(wait) => is_new(peer(wait.kind, wait.peer), wait.peer),
            Entry::Tag(name, value) => is_new(self.value(name, value), value),
            Entry::Timer { tags, .. } => {
                tags.iter().any(|(name, value)| is_new(self.value(name, value), value))
            }
            Entry::Error(error) => self.message(&error.message).is_some(),
            Entry::Statement(statement) if known.contains(statement) => false,
            Entry::Statement(statement) => {
                let is_new = is_new(self.statement(statement), statement.text);
                if !is_new {
                    known.insert(statement);
                }
                is_new
            }
            Entry::Place(_)
            | Entry::Dropped(_)
            | Entry::Boot(_)
            | Entry::Spans(_)
            | Entry::CpuDelay(_) => false,
        }
    }

    /// Returns the text of a statement without its secrets. A worker has normalised it.
    fn statement<'a>(&self, s: &Statement<'a>) -> Cow<'a, str> {
        match s.kind {
            StatementKind::Sql => {
                let mut normal = [0; STATEMENT_BYTES_MAX + 8];
                let len = normalise_sql(s.text.as_bytes(), Dialect::Pgsql, &mut normal);
                if normal[..len] == *s.text.as_bytes() {
                    return s.text.into();
                }
                String::from_utf8_lossy(&normal[..len]).into_owned().into()
            }
            StatementKind::Http => self.text(s.text),
            StatementKind::Redis => {
                let is_command = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
                let is_clean = matches!(s.text, "(connect)" | "(other)" | BLOT)
                    || s.text.bytes().all(is_command);
                if is_clean { s.text.into() } else { BLOT.into() }
            }
        }
    }

    /// Returns the message of an error without its secrets; `None` if it has none.
    fn message(&self, message: &str) -> Option<String> {
        message::redacted(message, BLOT, |name| self.is_secret(name))
    }

    fn encode_clean(&self, entry: &Entry) -> Vec<u8> {
        match entry {
            Entry::Route(name) => Entry::Route(&self.text(name)).encode(),
            Entry::Wait(wait) => {
                let peer = peer(wait.kind, wait.peer);
                Entry::Wait(crate::report::Wait { peer: &peer, ..*wait }).encode()
            }
            Entry::Tag(name, value) => Entry::Tag(name, &self.value(name, value)).encode(),
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                let clean: Vec<_> =
                    tags.iter().map(|(name, value)| (*name, self.value(name, value))).collect();
                let tags = clean.iter().map(|(name, value)| (*name, &**value)).collect();
                let (hits, wall_ns) = (*hits, *wall_ns);
                let (user_ns, system_ns) = (*user_ns, *system_ns);
                Entry::Timer { hits, wall_ns, user_ns, system_ns, tags }.encode()
            }
            Entry::Error(error) => {
                let clean =
                    self.message(&error.message).map_or_else(|| error.message.clone(), Cow::Owned);
                Entry::Error(ReportedError { message: clean, ..error.clone() }).encode()
            }
            Entry::Statement(statement) => {
                let text = self.statement(statement);
                Entry::Statement(Statement { text: &text, ..*statement }).encode()
            }
            other => other.encode(),
        }
    }
}

/// Returns the entries that [`Redaction::clean`] has encoded.
pub(crate) fn cleaned(bytes: &[u8]) -> Vec<Entry<'_>> {
    Report::of_own(bytes).filter_map(Result::ok).collect()
}

/// Returns the name of a peer without its secrets.
fn peer(kind: WaitKind, name: &str) -> Cow<'_, str> {
    if matches!(kind, WaitKind::Tcp | WaitKind::Udp) && is_address(name) {
        return name.into();
    }
    let class = FileClass::of(name.as_bytes());
    if class.bytes() == name.as_bytes() {
        return name.into();
    }
    String::from_utf8_lossy(class.bytes()).into_owned().into()
}

/// Returns whether a name is a host and a port: `10.0.0.5:5432`, `[::1]:80`, `db:3306`.
fn is_address(name: &str) -> bool {
    let Some((host, port)) = name.rsplit_once(':') else { return false };
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b".-:[]%".contains(&b);
    !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::{BLOT, CleanStatements, Redaction, cleaned};
    use crate::report::{Entry, Statement, StatementKind, Wait, WaitKind};

    #[test]
    fn name_containing_a_secret_word_is_secret() {
        let usual = Redaction::default();
        for (name, expected) in [
            ("password", true),
            ("DB_Password_2", true),
            ("Set-Cookie", true),
            ("csrfToken", true),
            ("PHPSESSID", true),
            ("group", false),
            ("", false),
            ("pass", false),
        ] {
            assert_eq!(usual.is_secret(name), expected, "{name}");
        }
        assert!(Redaction::new(["IBAN", ""]).is_secret("their_iban"));
        assert!(!Redaction::new([""; 1]).is_secret("password"));
    }

    #[test]
    fn secrets_in_entries_are_redacted() {
        let statement = |kind, text| {
            let (file, line) = ("/srv/a.php", 3);
            let place_calls = 1;
            Entry::Statement(Statement {
                kind,
                text,
                calls: 2,
                ns: 5,
                rows: 0,
                place_calls,
                file,
                line,
            })
        };
        let known = &mut CleanStatements::default();
        let timer = |tags| Entry::Timer { hits: 1, wall_ns: 2, user_ns: 0, system_ns: 0, tags };
        let wait = |kind, peer| Entry::Wait(Wait { kind, peer, times: 1, ns: 5 });
        for (entry, expected) in [
            (Entry::Tag("token", "abc"), Entry::Tag("token", BLOT)),
            (Entry::Tag("country", "de"), Entry::Tag("country", "de")),
            (
                timer(vec![("group", "http"), ("cookie", "a=b")]),
                timer(vec![("group", "http"), ("cookie", BLOT)]),
            ),
            (
                timer(vec![("sql", "SELECT a FROM t WHERE mail = 'a@b' AND id = 7")]),
                timer(vec![("sql", "SELECT a FROM t WHERE mail = ? AND id = ?")]),
            ),
            (
                Entry::Tag("url", "https://api/v1?key=s3cret&a=1"),
                Entry::Tag("url", "https://api/v1?(redacted)"),
            ),
            (Entry::Route("token"), Entry::Route("token")),
            (Entry::Route("/reset?token=abc"), Entry::Route("/reset?(redacted)")),
            (
                wait(WaitKind::Lock, "/var/lib/php/sessions/sess_0a4f1b2c"),
                wait(WaitKind::Lock, "session file"),
            ),
            // A worker may lie about the kind.
            (wait(WaitKind::Tcp, "/tmp/sess_0a4f1b2c"), wait(WaitKind::Tcp, "session file")),
            (wait(WaitKind::Tcp, "10.0.0.5:5432"), wait(WaitKind::Tcp, "10.0.0.5:5432")),
            (wait(WaitKind::Tcp, "[::1]:80"), wait(WaitKind::Tcp, "[::1]:80")),
            (wait(WaitKind::Lock, "(other)"), wait(WaitKind::Lock, "(other)")),
            (
                statement(StatementKind::Sql, "SELECT \"a\" FROM t WHERE b = ?"),
                statement(StatementKind::Sql, "SELECT \"a\" FROM t WHERE b = ?"),
            ),
            (
                statement(StatementKind::Sql, "SELECT a FROM t WHERE b = 'secret'"),
                statement(StatementKind::Sql, "SELECT a FROM t WHERE b = ?"),
            ),
            (
                statement(StatementKind::Http, "GET h/x?key=secret"),
                statement(StatementKind::Http, "GET h/x?(redacted)"),
            ),
            (
                statement(StatementKind::Redis, "HGETALL"),
                statement(StatementKind::Redis, "HGETALL"),
            ),
            (statement(StatementKind::Redis, "get secret"), statement(StatementKind::Redis, BLOT)),
        ] {
            let clean = Redaction::default().clean(std::slice::from_ref(&entry), known);
            let found = clean.as_deref().map_or(vec![entry.clone()], cleaned);
            assert_eq!(found, [expected]);
            assert_eq!(Redaction::default().clean(&found, known), None, "{found:?}");
        }
    }

    #[test]
    fn text_has_no_secrets() {
        let redaction = Redaction::default();
        for (text, expected) in [
            ("/products/42", "/products/42"),
            ("/a;token=abc/b", "/a;token=(redacted)/b"),
            (
                "GET https://u:p@host/x?a=1 failed",
                "GET https://(redacted)@host/x?(redacted) failed",
            ),
            ("/x?next=/y&b", "/x?(redacted)"),
            ("a = ? and b = ?", "a = ? and b = ?"),
            (r#"{"password": "hunter2", "a": 1}"#, r#"{"password": "(redacted)", "a": 1}"#),
            ("Authorization: Bearer abc.def", "Authorization: (redacted)"),
            ("bad login: password=hunter2, user=x", "bad login: password=(redacted), user=x"),
            ("App\\TokenController::show", "App\\TokenController::show"),
            ("tag:de", "tag:de"),
            ("ä?ö=ü", "ä?ö=ü"),
        ] {
            let clean = redaction.text(text);
            assert_eq!(clean, expected, "{text}");
            assert_eq!(redaction.text(expected), expected, "twice: {text}");
        }
    }
}
