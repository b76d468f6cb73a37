//! A `[[pool]]` as typed.

use std::path::PathBuf;

use crate::problem::Problem;
use crate::schema::queue::Queue;
use crate::sources::consoles::TypedConsole;
use crate::sources::typed_value::Typed;

/// A table as typed. Its settings are applied over the general ones when these are known.
#[derive(Clone, Debug)]
pub(crate) struct TypedPool {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) paths: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// The settings of the table.
    pub(crate) typed: Vec<Typed>,
    /// Its `[[pool.console]]`.
    pub(crate) consoles: Vec<TypedConsole>,
    /// Set if the table is a `[[queue]]`.
    pub(crate) queue: Option<Queue>,
}

impl TypedPool {
    pub(super) fn problem(&self, what: &str, hint: impl Into<String>) -> Problem {
        Problem::new(format!("{}:{}: {what}", self.file.display(), self.line), hint)
            .at_line(self.line)
    }
}
