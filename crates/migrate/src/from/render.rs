//! Draft → the text of `samovar.toml`. Each setting has a comment with the places that it comes
//! from.

use super::draft::{Block, Draft, Entries, Entry, Kind, Level, Value};
use super::origin::Origin;
use std::fmt::Write as _;

/// Maximum length of a line, in characters.
const WIDTH: usize = 100;
/// Maximum number of places in the comment of a setting.
const PLACES_MAX: usize = 4;

/// A setting of the written file.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its name, such as `limits.body_bytes_max` or `location.path`.
    pub key: String,
    /// Its value, as in the file.
    pub value: String,
    /// The places that it comes from.
    pub origins: Vec<Origin>,
}

/// Part of the draft that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Setting(usize),
    Block(usize),
    EntryOfBlock(usize, usize),
}

/// Text of the file, the owner of each line, and its settings.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    pub(crate) owners: Vec<Option<Owner>>,
    pub(crate) written: Vec<Written>,
}

/// Writes the file. `sources` are the names of the files that were read.
pub(crate) fn render(draft: &Draft, sources: &[String]) -> Rendered {
    let mut page = Rendered::default();
    page.comment(&format!("Written by `samovar migrate from {}`.", sources.join(" ")));
    page.comment("Check it with `samovar check`. See docs/reference/settings.md.");
    page.entries(&draft.settings, "", Owner::Setting, "");
    for kind in [Kind::Location, Kind::Console, Kind::Pool] {
        for (number, block) in draft.blocks.iter().enumerate() {
            if block.kind == kind {
                page.block(block, number);
            }
        }
    }
    for (level, title) in [
        (Level::Missing, "Without a counterpart:"),
        (Level::Differs, "Works in another way:"),
        (Level::Default, "Needs no setting:"),
    ] {
        page.notes(draft, level, title);
    }
    page
}

impl Rendered {
    fn line(&mut self, line: &str, owner: Option<Owner>) {
        self.text.push_str(line);
        self.text.push('\n');
        self.owners.push(owner);
    }

    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.line("", None);
        }
    }

    /// Writes a comment of one or more lines.
    fn comment(&mut self, text: &str) {
        let mut line = String::from("#");
        for word in text.split(' ') {
            if line.len() > 2 && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line, None);
                line = String::from("#  ");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.line(&line, None);
    }

    /// Writes the entries outside of tables, then those of each table. `prefix` is empty or
    /// `pool.`.
    fn entries(
        &mut self,
        entries: &Entries,
        prefix: &str,
        owner: impl Fn(usize) -> Owner,
        name: &str,
    ) {
        let mut tables = vec![""];
        for entry in &entries.0 {
            if !tables.contains(&entry.table) {
                tables.push(entry.table);
            }
        }
        for table in tables {
            if !table.is_empty() {
                self.blank();
                let is_live = |entry: &Entry| entry.table == table && entry.rejected.is_none();
                let first = entries.0.iter().position(is_live);
                let mark = if first.is_some() { "" } else { "#" };
                self.line(&format!("{mark}[{prefix}{table}]"), first.map(&owner));
            }
            for (number, entry) in entries.0.iter().enumerate() {
                if entry.table == table {
                    let full = match table {
                        "" => format!("{name}{}", entry.key),
                        table => format!("{name}{table}.{}", entry.key),
                    };
                    self.entry(entry, owner(number), &full, prefix.is_empty() && name.is_empty());
                }
            }
        }
    }

    fn entry(&mut self, entry: &Entry, owner: Owner, name: &str, is_apart: bool) {
        if is_apart && entry.table.is_empty() {
            self.blank();
        }
        for origin in entry.origins.iter().take(PLACES_MAX) {
            self.comment(&format!("{}: {}", origin.place(), origin.text));
        }
        if entry.origins.len() > PLACES_MAX {
            self.comment(&format!("and {} more lines", entry.origins.len() - PLACES_MAX));
        }
        let value = value(&entry.value);
        if let Some(reason) = &entry.rejected {
            self.comment(&format!("Not accepted: {reason}"));
        }
        let mark = if entry.rejected.is_some() { "#" } else { "" };
        let width = entry.key.len() + value.chars().count() + 3 + mark.len();
        match &entry.value {
            Value::List(items) if width > WIDTH => {
                self.line(&format!("{mark}{} = [", key(&entry.key)), Some(owner));
                for item in items {
                    self.line(&format!("{mark}    {},", quoted(item)), Some(owner));
                }
                self.line(&format!("{mark}]"), Some(owner));
            }
            _ => self.line(&format!("{mark}{} = {value}", key(&entry.key)), Some(owner)),
        }
        if entry.rejected.is_none() {
            let origins = entry.origins.clone();
            self.written.push(Written { key: name.to_owned(), value, origins });
        }
    }

    fn block(&mut self, block: &Block, number: usize) {
        self.blank();
        self.comment(&format!("{}: {}", block.origin.place(), block.origin.text));
        if let Some(reason) = &block.rejected {
            self.comment(&format!("Not accepted: {reason}"));
        }
        let mark = if block.rejected.is_some() { "#" } else { "" };
        self.line(&format!("{mark}[[{}]]", block.kind.key()), Some(Owner::Block(number)));
        let mut entries = block.entries.clone();
        for entry in &mut entries.0 {
            // The block's own line is in its comment.
            entry.origins.retain(|origin| *origin != block.origin);
            if block.rejected.is_some() && entry.rejected.is_none() {
                entry.rejected = Some(String::from("see above"));
            }
        }
        let key = block.kind.key();
        let owner = |entry| Owner::EntryOfBlock(number, entry);
        let at = self.written.len();
        self.entries(&entries, &format!("{key}."), owner, &format!("{key}."));
        for written in &mut self.written[at..] {
            if written.origins.is_empty() {
                written.origins.push(block.origin.clone());
            }
        }
    }

    fn notes(&mut self, draft: &Draft, level: Level, title: &str) {
        let notes: Vec<_> = draft.notes.iter().filter(|note| note.level == level).collect();
        if notes.is_empty() {
            return;
        }
        self.blank();
        self.comment(title);
        for note in notes {
            self.comment(&format!(
                "- {}: {}: {}",
                note.origin.place(),
                note.origin.text,
                note.advice
            ));
        }
        if level == Level::Missing && draft.notes_left_out > 0 {
            self.comment(&format!("- and {} more lines", draft.notes_left_out));
        }
    }
}

/// A key, in quotes if it needs them.
fn key(key: &str) -> String {
    if key.split('.').all(is_bare) { key.to_owned() } else { quoted(key) }
}

fn is_bare(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    !name.is_empty() && name.bytes().all(is_plain)
}

fn name(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { quoted(name) }
}

/// A value in TOML.
fn value(value: &Value) -> String {
    match value {
        Value::Plain(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
        }
        Value::Map(pairs) => {
            let pair =
                |(key, value): &(String, String)| format!("{} = {}", name(key), quoted(value));
            format!("{{ {} }}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
