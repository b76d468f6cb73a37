//! Tests whose failures are known: `samovar-quarantine.toml`. Each entry has an owner and an end.

use crate::case::{Case, Note};
use anyhow::{Context, Result, anyhow, bail};
use jiff::civil::Date;
use std::path::Path;
use toml_edit::{DocumentMut, Table, TomlError};

/// Maximum length of the file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Keys of an entry.
const KEYS: [&str; 4] = ["test", "owner", "until", "reason"];

/// The entries of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Name of a test; a final `*` means any rest.
    test: String,
    owner: String,
    until: Date,
}

impl Quarantine {
    /// Reads the file; there is no quarantine if it does not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or an entry lacks one of its keys.
    pub fn read(file: &Path) -> Result<Quarantine> {
        let name = file.display();
        let bytes = match file.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Quarantine::default());
            }
            found => found.with_context(|| format!("cannot read `{name}`"))?.len(),
        };
        if bytes > FILE_BYTES_MAX {
            bail!("`{name}` has {bytes} bytes; the maximum is {FILE_BYTES_MAX}");
        }
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
        Quarantine::parse(&text).with_context(|| format!("`{name}` is not a quarantine"))
    }

    fn parse(text: &str) -> Result<Quarantine> {
        const HINT: &str = "hint: an entry is [[test]] with test, owner, until (a date) and reason";
        let document: DocumentMut = text.parse().map_err(|error: TomlError| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            let message = error.message().replace('\n', ", ");
            anyhow!("invalid TOML in line {line}: {message}\n{HINT}")
        })?;
        if let Some((key, _)) = document.iter().find(|(key, _)| *key != "test") {
            bail!("unknown key `{key}`\n{HINT}");
        }
        let Some(tables) = document.get("test") else { return Ok(Quarantine::default()) };
        let Some(tables) = tables.as_array_of_tables() else { bail!("`test` is no list\n{HINT}") };
        // The hint is the last line.
        let entries =
            tables.iter().map(|table| entry(table).map_err(|error| anyhow!("{error:#}\n{HINT}")));
        Ok(Quarantine { entries: entries.collect::<Result<_>>()? })
    }

    /// Notes the failures that are known on this day. Returns messages about entries that must be
    /// removed: they fail the run.
    pub(crate) fn apply(&self, cases: &mut [Case], today: Date) -> Vec<String> {
        let mut expired = Vec::new();
        for entry in &self.entries {
            if entry.until < today {
                expired.push(format!(
                    "the quarantine of `{}` ended on {}; owner: {}",
                    entry.test, entry.until, entry.owner
                ));
                continue;
            }
            for case in cases.iter_mut().filter(|case| entry.names(&case.id())) {
                if case.verdict.is_bad() && case.note.is_none() {
                    let (owner, until) = (entry.owner.clone(), entry.until.to_string());
                    case.note = Some(Note::Quarantined { owner, until });
                }
            }
        }
        expired
    }

    /// Returns the entries whose tests have all passed.
    pub(crate) fn healed(&self, cases: &[Case]) -> Vec<String> {
        let healed = self.entries.iter().filter(|entry| {
            let mut own = cases.iter().filter(|case| entry.names(&case.id())).peekable();
            own.peek().is_some() && own.all(|case| !case.verdict.is_bad())
        });
        healed.map(|entry| entry.test.clone()).collect()
    }
}

impl Entry {
    fn names(&self, id: &str) -> bool {
        if let Some(start) = self.test.strip_suffix('*') {
            return id.starts_with(start);
        }
        let rest = id.strip_prefix(self.test.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" with data set "))
    }
}

fn entry(table: &Table) -> Result<Entry> {
    if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(key)) {
        bail!("unknown key `{key}`");
    }
    let text = |key: &str| -> Result<String> {
        let value = table.get(key).with_context(|| format!("an entry has no `{key}`"))?;
        let text = match (value.as_str(), value.as_datetime()) {
            (Some(text), _) => text.trim().to_owned(),
            (None, Some(date)) => date.to_string(),
            _ => String::new(),
        };
        anyhow::ensure!(!text.is_empty(), "`{key}` has no text");
        Ok(text)
    };
    text("reason")?;
    let until = text("until")?;
    let until = until.parse().with_context(|| format!("`until = {until}` is not a date"))?;
    Ok(Entry { test: text("test")?, owner: text("owner")?, until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;

    const FILE: &str = "
        [[test]]
        test = 'A\\BTest::testData'
        owner = 'ann'
        until = 2030-01-31
        reason = 'SHOP-17'
        [[test]]
        test = 'A\\Old*'
        owner = 'bob'
        until = '2020-01-31'
        reason = 'SHOP-3'
    ";

    fn day(text: &str) -> Date {
        text.parse().expect("a date")
    }

    #[test]
    fn known_failures_are_excused_until_their_day() {
        let quarantine = Quarantine::parse(FILE).expect("a good file");
        let names = ["testData with data set #1", "testData", "testDataMore"];
        let mut cases: Vec<_> =
            names.iter().map(|name| Case::new("A\\BTest", name, Verdict::Failed)).collect();
        cases.push(Case::new("A\\OldTest", "testX", Verdict::Errored));
        let expired = quarantine.apply(&mut cases, day("2030-01-31"));
        let fails: Vec<_> = cases.iter().map(Case::fails).collect();
        assert_eq!(fails, [false, false, true, true]);
        assert_eq!(expired, ["the quarantine of `A\\Old*` ended on 2020-01-31; owner: bob"]);
        assert_eq!(quarantine.apply(&mut cases, day("2030-02-01")).len(), 2);
    }

    #[test]
    fn entries_of_passing_tests_are_reported() {
        let quarantine = Quarantine::parse(FILE).expect("a good file");
        assert_eq!(
            quarantine.healed(&[Case::new("A\\BTest", "testData", Verdict::Passed)]),
            ["A\\BTest::testData"]
        );
        assert!(quarantine.healed(&[Case::new("C", "testX", Verdict::Passed)]).is_empty());
    }

    #[test]
    fn incomplete_entry_is_refused() {
        for (text, word) in [
            ("[[test]]\ntest = 'A'", "no `reason`"),
            ("[[test]]\ntest='A'\nowner='a'\nreason='b'", "no `until`"),
            ("[[test]]\ntest='A'\nowner='a'\nreason='b'\nuntil='soon'", "is not a date"),
            ("[[test]]\ntest='A'\nowner=''\nreason='b'\nuntil='2030-01-01'", "`owner` has no text"),
            ("[[test]]\nname='A'", "unknown key `name`"),
            ("[[tests]]\nname='A'", "unknown key `tests`"),
            ("test = 1", "no list"),
            ("[[test]]\ntest = A", "invalid TOML in line 2: "),
        ] {
            let error = format!("{:#}", Quarantine::parse(text).expect_err(text));
            let (cause, hint) = error.split_once("\nhint: ").expect("a hint");
            assert!(cause.contains(word) && !hint.contains('\n'), "{error}");
        }
    }
}
