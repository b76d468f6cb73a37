//! Tables that may stand several times in the file (`[[console]]`, `[[location]]`): where one of them stands, and what is said
//! of a key that it must not have, or not so. Which keys there are is in `schema/`.

use std::path::Path;
use toml_edit::{Item, Table};

use crate::problem::Problem;
use crate::schema::console::Field;
use crate::schema::names;

/// The file that the tables stand in.
pub(crate) struct SettingsFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) base: &'a Path,
    /// The line of a byte in the file.
    pub(crate) line_of: &'a dyn Fn(usize) -> usize,
}

impl SettingsFile<'_> {
    pub(crate) fn problem(&self, line: usize, what: &str, hint: impl Into<String>) -> Problem {
        Problem::new(format!("{}:{line}: {what}", self.path.display()), hint).at_line(line)
    }
}

/// Reads one of the tables `[[name]]`; what is wrong with it becomes a problem.
pub(crate) struct Reader<'a, 'b> {
    pub(crate) file: &'a SettingsFile<'b>,
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// Where the table begins.
    pub(crate) line: usize,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Reader<'_, '_> {
    /// The line of a key.
    pub(crate) fn line_of(&self, table: &Table, key: &str, item: &Item) -> usize {
        let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
        span.map_or(self.line, |span| (self.file.line_of)(span.start))
    }

    pub(crate) fn knows(&self, key: &str) -> bool {
        self.fields.iter().any(|field| field.key == key)
    }

    pub(crate) fn refuse(&mut self, key: &str, line: usize, because: Option<&str>) {
        let allowed = self.fields.iter().find(|f| f.key == key).map_or("", |f| f.allowed);
        let mut what = format!("`{key}` of a `[[{}]]` is not allowed so", self.name);
        if let Some(because) = because {
            what = format!("{what}: {because}");
        }
        self.problems.push(self.file.problem(line, &what, format!("`{key}` takes {allowed}")));
    }

    /// The value of a key, as `read` makes it of the item; `None`: the key is not there, or what is wrong with it has been said.
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
            None => format!("known here: `{}`", known.collect::<Vec<_>>().join("`, `")),
        };
        let what = format!("unknown key `{}.{key}`", self.name);
        self.problems.push(self.file.problem(line, &what, hint));
    }
}
