//! Which tests cannot run next to others: `tests/groups.toml`.

use anyhow::{Context, Result, bail};
use std::path::Path;
use toml_edit::{DocumentMut, TableLike};

/// Maximum number of groups.
const GROUPS_MAX: usize = 32;

/// One group of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// Maximum number of its tests that run at once. `None`: each runs with no other test on the
    /// machine.
    pub at_once: Option<usize>,
    /// Prefixes of the names of its tests, up to a `::` or the end.
    pub tests: Vec<String>,
}

/// Contents of `tests/groups.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// In the order of the file. A test belongs to the first group that names it.
    pub groups: Vec<Group>,
    /// Programs without a list of tests: each program is one test.
    pub single: Vec<String>,
    /// Name prefixes of the tests that only the nightly tier runs.
    pub nightly: Vec<String>,
    /// Shell commands that are one test each: name and command line.
    pub commands: Vec<(String, String)>,
}

impl Groups {
    /// Reads the file.
    pub fn load(path: &Path) -> Result<Groups> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Groups::parse(&text).with_context(|| format!("in {shown}"))
    }

    /// Parses the text of the file.
    pub fn parse(text: &str) -> Result<Groups> {
        let document: DocumentMut = text.parse()?;
        let mut groups = Vec::new();
        let tables = document.get("group").and_then(|item| item.as_array_of_tables());
        for table in tables.into_iter().flat_map(toml_edit::ArrayOfTables::iter) {
            groups.push(group_of(table)?);
        }
        let tables = document.get("nightly").and_then(|item| item.as_array_of_tables());
        let mut nightly = Vec::new();
        for table in tables.into_iter().flat_map(toml_edit::ArrayOfTables::iter) {
            table.get("reason").context("missing `reason` in a `[[nightly]]`")?;
            nightly.extend(strings(table, "tests")?);
        }
        if groups.len() > GROUPS_MAX {
            bail!("{} groups, at most {GROUPS_MAX}", groups.len());
        }
        let tables = document.get("command").and_then(|item| item.as_array_of_tables());
        let mut commands = Vec::new();
        for table in tables.into_iter().flat_map(toml_edit::ArrayOfTables::iter) {
            let text = |key: &str| {
                let text = table.get(key).and_then(|item| item.as_str()).map(str::to_owned);
                text.with_context(|| format!("missing `{key}` in a command"))
            };
            commands.push((text("name")?, text("run")?));
        }
        Ok(Groups { groups, single: strings(&*document, "single_programs")?, nightly, commands })
    }

    /// Whether the program with that name is one test.
    pub fn is_single(&self, program: &str) -> bool {
        self.single.iter().any(|name| name == program)
            || self.commands.iter().any(|(name, _)| name == program)
    }

    /// Whether only the nightly tier runs the test.
    pub fn is_nightly(&self, id: &str) -> bool {
        self.nightly.iter().any(|name| is_named(name, id))
    }

    /// The group of a test, by its index in the file.
    pub fn of(&self, id: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.tests.iter().any(|test| is_named(test, id)))
    }

    /// Names in the file that match no test, because the test was renamed.
    pub fn unknown<'a>(&'a self, ids: &[&str]) -> Vec<&'a str> {
        let names = self.groups.iter().flat_map(|group| &group.tests);
        let names = names.chain(&self.single).chain(&self.nightly);
        names.map(String::as_str).filter(|name| !ids.iter().any(|id| is_named(name, id))).collect()
    }
}

fn is_named(name: &str, id: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn group_of(table: &dyn TableLike) -> Result<Group> {
    let text = |key: &str| table.get(key).and_then(|item| item.as_str()).map(str::to_owned);
    let name = text("name").context("missing `name` in a group")?;
    text("reason").with_context(|| format!("missing `reason` in group `{name}`"))?;
    let at_once =
        match table.get("at_once") {
            None => None,
            Some(item) => {
                let number = item.as_integer().and_then(|number| usize::try_from(number).ok());
                let number = number.filter(|number| *number > 0);
                Some(number.with_context(|| {
                    format!("`at_once` of group `{name}` is not a number above 0")
                })?)
            }
        };
    Ok(Group { tests: strings(table, "tests")?, name, at_once })
}

fn strings(table: &dyn TableLike, key: &str) -> Result<Vec<String>> {
    let Some(item) = table.get(key) else { return Ok(Vec::new()) };
    let array = item.as_array().with_context(|| format!("`{key}` is not a list"))?;
    let texts = array.iter().map(|value| value.as_str().map(str::to_owned));
    texts
        .collect::<Option<_>>()
        .with_context(|| format!("`{key}` has an entry that is not a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "single_programs = ['conformance']\n\
        [[group]]\nname = 'machine'\nreason = 'CPU'\ntests = ['suite::ledger', 'suite::a::b']\n\
        [[group]]\nname = 'browser'\nreason = 'memory'\nat_once = 1\ntests = ['admin/browser']\n";

    #[test]
    fn test_belongs_to_the_group_that_names_its_beginning() {
        let groups = Groups::parse(FILE).unwrap();
        assert_eq!(groups.of("suite::ledger::ways::x"), Some(0));
        assert_eq!(groups.of("suite::ledgers::x"), None);
        assert_eq!(groups.of("suite::a::b"), Some(0));
        assert_eq!(groups.of("admin/browser::x"), Some(1));
        assert_eq!(groups.groups[0].at_once, None);
        assert_eq!(groups.groups[1].at_once, Some(1));
    }

    #[test]
    fn names_without_a_test_are_found() {
        let groups = Groups::parse(FILE).unwrap();
        let ids = ["suite::ledger::x", "conformance", "admin/browser::y"];
        assert_eq!(groups.unknown(&ids), ["suite::a::b"]);
    }

    #[test]
    fn group_without_reason_is_an_error() {
        let error = Groups::parse("[[group]]\nname = 'a'\ntests = []\n").unwrap_err();
        assert_eq!(error.to_string(), "missing `reason` in group `a`");
    }
}
