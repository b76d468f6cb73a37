//! Tables that can occur several times in the file (`[[console]]`, `[[location]]`): finds their
//! lines, and reports keys that are unknown or have invalid values. `schema/` defines the keys.

use std::path::Path;
use toml_edit::{Item, Table};

use crate::problem::Problem;
use crate::schema::console::Field;
use crate::schema::names;

/// The file that contains the tables.
pub(crate) struct SettingsFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) base: &'a Path,
    /// Returns the line of a byte offset in the file.
    pub(crate) line_of: &'a dyn Fn(usize) -> usize,
}

impl SettingsFile<'_> {
    pub(crate) fn problem(&self, line: usize, what: &str, hint: impl Into<String>) -> Problem {
        Problem::new(format!("{}:{line}: {what}", self.path.display()), hint).at_line(line)
    }

    /// Makes the problem of a key that is not an array of tables.
    pub(crate) fn no_tables(&self, line: usize, key: &str) -> Problem {
        let hint = format!("begin each of them with a line `[[{key}]]`");
        self.problem(line, &format!("`{key}` is not an array of tables"), hint)
    }

    /// Returns the line at which a table begins.
    pub(crate) fn line_of_table(&self, table: &Table) -> usize {
        table.span().map_or(1, |span| (self.line_of)(span.start))
    }
}

/// Reads one of the tables `[[name]]`; mistakes become problems.
pub(crate) struct Reader<'a, 'b> {
    pub(crate) file: &'a SettingsFile<'b>,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Line at which the table begins.
    pub(crate) line: usize,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Reader<'_, '_> {
    /// Returns the line of a key.
    pub(crate) fn line_of(&self, table: &Table, key: &str, item: &Item) -> usize {
        let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
        span.map_or(self.line, |span| (self.file.line_of)(span.start))
    }

    pub(crate) fn knows(&self, key: &str) -> bool {
        self.fields.iter().any(|field| field.key == key)
    }

    pub(crate) fn refuse(&mut self, key: &str, line: usize, because: Option<&str>) {
        let allowed = self.fields.iter().find(|f| f.key == key).map_or("", |f| f.allowed);
        let mut what = format!("`{key}` of a `[[{}]]` is not allowed", self.name);
        if let Some(because) = because {
            what = format!("{what}: {because}");
        }
        self.problems.push(self.file.problem(line, &what, format!("`{key}` takes {allowed}")));
    }

    /// Returns the value of a key, converted by `read`. Returns `None` if the key is missing, or if
    /// its mistake is reported.
    pub(crate) fn read<T>(
        &mut self,
        table: &Table,
        key: &'static str,
        read: impl Fn(&Item) -> Result<T, Option<&'static str>>,
    ) -> Option<T> {
        let item = table.get(key)?;
        match read(item) {
            Ok(value) => Some(value),
            Err(because) => {
                let line = self.line_of(table, key, item);
                self.refuse(key, line, because);
                None
            }
        }
    }

    pub(crate) fn unknown(&mut self, key: &str, line: usize) {
        let known = self.fields.iter().map(|field| field.key);
        let hint = match names::nearest(key, known.clone()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known keys: `{}`", known.collect::<Vec<_>>().join("`, `")),
        };
        let what = format!("unknown key `{}.{key}`", self.name);
        self.problems.push(self.file.problem(line, &what, hint));
    }
}
