//! The settings that a configuration becomes, each with the places that it comes from, and notes.

use super::origin::Origin;
use serde::Serialize;
use std::ops::Range;

/// Maximum number of notes; further ones are counted only.
const NOTES_MAX: usize = 5_000;
/// Maximum number of paths of a table.
const PATHS_MAX: usize = 64;
/// Keys that a table with `deny = true` can have. The others would have no effect, and the server
/// rejects a table with them.
const WITH_DENY: [&str; 8] =
    ["host", "path", "deny", "headers", "access_log", "error_pages", "compression", "intercept"];
/// Maximum number of paths in a note.
const PATHS_SHOWN_MAX: usize = 3;

/// Meaning of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It has no counterpart.
    Missing,
    /// The setting works in another way.
    Differs,
    /// Samovar does it without a setting.
    Default,
}

/// A line of the configuration that is no setting of Samovar, or a different one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its meaning.
    pub level: Level,
    /// The line.
    pub origin: Origin,
    /// Explanation, and the action to take.
    pub advice: String,
}

/// Value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number or a boolean.
    Plain(String),
    Text(String),
    List(Vec<String>),
    Map(Vec<(String, String)>),
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    #[allow(clippy::needless_pass_by_value, reason = "most values are literals")]
    pub(crate) fn plain(value: impl ToString) -> Value {
        Value::Plain(value.to_string())
    }
}

/// One setting.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Table of the setting, such as `limits`; empty: outside of tables.
    pub(crate) table: &'static str,
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origins: Vec<Origin>,
    /// Reason for which it is written as a comment.
    pub(crate) rejected: Option<String>,
}

impl Entry {
    fn has(&self, table: &str, key: &str) -> bool {
        self.table == table && self.key == key
    }
}

/// Entries in the order in which they were set; the first value of a key applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries(pub(crate) Vec<Entry>);

impl Entries {
    /// Sets a key. Returns the place of another value that it has already.
    pub(crate) fn set(
        &mut self,
        table: &'static str,
        key: &str,
        value: Value,
        origin: &Origin,
    ) -> Option<Origin> {
        if let Some(known) = self.0.iter().find(|entry| entry.has(table, key)) {
            return (known.value != value).then(|| known.origins[0].clone());
        }
        let (key, origins) = (key.to_owned(), vec![origin.clone()]);
        self.0.push(Entry { table, key, value, origins, rejected: None });
        None
    }

    /// Adds items to a list.
    pub(crate) fn add(&mut self, table: &'static str, key: &str, item: &str, origin: &Origin) {
        let Some(entry) = self.0.iter_mut().find(|entry| entry.has(table, key)) else {
            self.set(table, key, Value::List(vec![item.to_owned()]), origin);
            return;
        };
        if let Value::List(items) = &mut entry.value
            && !items.iter().any(|known| known == item)
        {
            items.push(item.to_owned());
            if entry.origins.last() != Some(origin) {
                entry.origins.push(origin.clone());
            }
        }
    }

    /// Adds a pair to a table of names and values. The first value of a name applies.
    pub(crate) fn pair(&mut self, key: &str, name: &str, value: &str, origin: &Origin) {
        let Some(entry) = self.0.iter_mut().find(|entry| entry.has("", key)) else {
            let pair = (name.to_owned(), value.to_owned());
            self.set("", key, Value::Map(vec![pair]), origin);
            return;
        };
        if let Value::Map(pairs) = &mut entry.value
            && !pairs.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            pairs.push((name.to_owned(), value.to_owned()));
            if entry.origins.last() != Some(origin) {
                entry.origins.push(origin.clone());
            }
        }
    }

    pub(crate) fn get(&self, table: &str, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.has(table, key))
    }
}

/// Kind of an array of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Location,
    Pool,
    Console,
}

impl Kind {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Pool => "pool",
            Self::Console => "console",
        }
    }
}

/// A `[[location]]`, `[[pool]]` or `[[console]]`.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
    pub(crate) entries: Entries,
    pub(crate) rejected: Option<String>,
}

impl Block {
    pub(crate) fn new(kind: Kind, origin: &Origin) -> Block {
        Block { kind, origin: origin.clone(), entries: Entries::default(), rejected: None }
    }

    /// A location for these hosts and paths; none: all of them.
    pub(crate) fn location(hosts: &[String], paths: &[String], origin: &Origin) -> Block {
        let mut block = Block::new(Kind::Location, origin);
        for (key, names) in [("host", hosts), ("path", paths)] {
            let value = match names {
                [] => continue,
                [one] => Value::Text(one.clone()),
                several => Value::List(several.to_vec()),
            };
            block.entries.set("", key, value, origin);
        }
        block
    }

    /// Sets a key outside of the block's tables.
    pub(crate) fn set(&mut self, key: &str, value: Value, origin: &Origin) {
        self.entries.set("", key, value, origin);
    }

    /// Patterns of its paths; empty: all paths.
    pub(crate) fn paths(&self) -> Vec<String> {
        match self.entries.get("", "path").map(|entry| &entry.value) {
            Some(Value::Text(path)) => vec![path.clone()],
            Some(Value::List(paths)) => paths.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether it denies its paths.
    pub(crate) fn is_denied(&self) -> bool {
        self.entries.get("", "deny").is_some_and(|entry| entry.value == Value::plain(true))
    }

    /// Removes all keys but these. Returns whether there were others.
    pub(crate) fn retain(&mut self, keys: &[&str]) -> bool {
        let before = self.entries.0.len();
        self.entries.0.retain(|entry| keys.contains(&entry.key.as_str()));
        self.entries.0.len() < before
    }

    /// Whether it has more than hosts and paths.
    pub(crate) fn has_effect(&self) -> bool {
        self.entries.0.iter().any(|entry| entry.key != "host" && entry.key != "path")
    }
}

/// All settings and notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) settings: Entries,
    pub(crate) blocks: Vec<Block>,
    pub(crate) notes: Vec<Note>,
    pub(crate) notes_left_out: usize,
}

impl Draft {
    /// Sets a setting; a note says that an earlier value applies.
    pub(crate) fn set(&mut self, table: &'static str, key: &str, value: Value, origin: &Origin) {
        if let Some(other) = self.settings.set(table, key, value, origin) {
            let name = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            let advice = format!("`{name}` has the value of {}: it is set once", other.place());
            self.note(Level::Differs, origin, advice);
        }
    }

    pub(crate) fn add(&mut self, table: &'static str, key: &str, item: &str, origin: &Origin) {
        self.settings.add(table, key, item, origin);
    }

    /// Adds a table if it has an effect. One with many paths becomes several.
    pub(crate) fn push(&mut self, mut block: Block) {
        if !block.has_effect() {
            return;
        }
        if block.is_denied() {
            block.retain(&WITH_DENY);
        }
        let paths = block.entries.0.iter_mut().find(|entry| entry.key == "path");
        if let Some(Value::List(list)) = paths.map(|entry| &mut entry.value)
            && list.len() > PATHS_MAX
        {
            let rest = list.split_off(PATHS_MAX);
            let mut more = block.clone();
            for entry in more.entries.0.iter_mut().filter(|entry| entry.key == "path") {
                entry.value = Value::List(rest.clone());
            }
            self.blocks.push(block);
            return self.push(more);
        }
        self.blocks.push(block);
    }

    pub(crate) fn note(&mut self, level: Level, origin: &Origin, advice: impl Into<String>) {
        if self.notes.len() == NOTES_MAX {
            self.notes_left_out += 1;
            return;
        }
        let note = Note { level, origin: origin.clone(), advice: advice.into() };
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Denies the paths of a table, because the other server controls the access to them in a way
    /// that Samovar has no setting for. `control` is the directive.
    pub(crate) fn guard(&mut self, block: &mut Block, control: &Origin) {
        if block.paths().is_empty() {
            block.set("path", Value::text("/*"), control);
        }
        block.set("deny", Value::plain(true), control);
        let advice = format!(
            "its control of access has no counterpart, so {} is denied: check access in PHP, or in \
             a proxy in front, then remove `deny`",
            listed(&block.paths())
        );
        self.missing(control, advice);
    }

    /// Repeats the denials of the main site without its hosts, because requests for unknown hosts
    /// reach that site. They do not apply to the hosts of the `others`. `of_main` are its tables.
    pub(crate) fn guard_unknown_hosts(&mut self, of_main: Range<usize>, others: &[Vec<String>]) {
        let has_host = |block: &&Block| block.entries.get("", "host").is_some();
        let denials: Vec<Block> = self.blocks[of_main]
            .iter()
            .filter(|block| block.is_denied())
            .filter(has_host)
            .cloned()
            .collect();
        let Some(first) = denials.first() else { return };
        let origin = first.origin.clone();
        for hosts in others.iter().filter(|hosts| !hosts.is_empty()) {
            let mut block = Block::location(hosts, &[String::from("/*")], &origin);
            block.set("deny", Value::plain(false), &origin);
            self.push(block);
        }
        for mut block in denials {
            block.entries.0.retain(|entry| entry.key != "host");
            self.push(block);
        }
    }

    /// Whether clients need a certificate. One site that needs it needs it of all clients.
    pub(crate) fn client_certificates(&mut self, is_required: bool, origin: &Origin) {
        let key = ("tls", "client_certificates");
        if is_required {
            let is_other =
                |entry: &Entry| entry.has(key.0, key.1) && entry.value != Value::text("required");
            self.settings.0.retain(|entry| !is_other(entry));
            self.set(key.0, key.1, Value::text("required"), origin);
        } else {
            self.settings.set(key.0, key.1, Value::text("optional"), origin);
        }
    }

    pub(crate) fn missing(&mut self, origin: &Origin, advice: impl Into<String>) {
        self.note(Level::Missing, origin, advice);
    }

    pub(crate) fn differs(&mut self, origin: &Origin, advice: impl Into<String>) {
        self.note(Level::Differs, origin, advice);
    }

    pub(crate) fn built_in(&mut self, origin: &Origin, advice: impl Into<String>) {
        self.note(Level::Default, origin, advice);
    }
}

/// The first patterns of a list as a text.
fn listed(paths: &[String]) -> String {
    let shown: Vec<String> =
        paths.iter().take(PATHS_SHOWN_MAX).map(|path| format!("`{path}`")).collect();
    match paths.len().saturating_sub(PATHS_SHOWN_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
