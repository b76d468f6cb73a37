//! The tables `[[intake]]` of the file → intakes. `schema/intake.rs` defines the keys.

use toml_edit::{ArrayOfTables, Item, Table};

use crate::problem::Problem;
use crate::schema::intake::{
    BODY_BYTES_DEFAULT, BODY_BYTES_MAX, FIELDS, HEADERS_MAX, Intake, IntakeResponse, KEY,
    MATCHES_MAX, METHODS, OVERLOADS, STATUSES, TABLES_MAX,
};
use crate::schema::notation;
use crate::schema::settings::Settings;
use crate::sources::locations;
use crate::sources::tables::{Reader, SettingsFile};

/// A table as typed. Its queue is checked when all queues are known.
#[derive(Clone, Debug)]
pub(crate) struct TypedIntake {
    line: usize,
    file: std::path::PathBuf,
    intake: Intake,
}

/// Reads all tables; mistakes become problems.
pub(crate) fn read(
    file: &SettingsFile<'_>,
    tables: &ArrayOfTables,
    problems: &mut Vec<Problem>,
) -> Vec<TypedIntake> {
    let mut read = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let line = file.line_of_table(table);
        if number == TABLES_MAX {
            let what = format!("more than {TABLES_MAX} `[[{KEY}]]`");
            problems.push(file.problem(line, &what, "use one table with several `match`"));
            break;
        }
        let mut reader = Reader { file, name: KEY, fields: &FIELDS, line, problems };
        if let Some(intake) = reader.intake(table) {
            read.push(TypedIntake { line, file: file.path.to_owned(), intake });
        }
    }
    read
}

impl Reader<'_, '_> {
    fn intake(&mut self, table: &Table) -> Option<Intake> {
        let before = self.problems.len();
        for (key, item) in table {
            if !self.knows(key) {
                let line = self.line_of(table, key, item);
                self.unknown(key, line);
            }
        }
        let matches = self.read(table, "match", matches);
        let queue = self.read(table, "queue", |item| item.as_str().map(str::to_owned).ok_or(None));
        let intake = Intake {
            matches: matches.unwrap_or_default(),
            queue: queue.unwrap_or_default(),
            response: self.read(table, "response", response).unwrap_or(IntakeResponse::Status(204)),
            headers: self.read(table, "headers", headers).unwrap_or_default(),
            body_bytes_max: self.read(table, "body_bytes_max", bytes).unwrap_or(BODY_BYTES_DEFAULT),
            overload: self.read(table, "overload", overload).unwrap_or_default(),
        };
        if self.problems.len() > before {
            return None;
        }
        let missing = ["match", "queue"].into_iter().find(|key| !table.contains_key(key));
        if let Some(key) = missing {
            let hint = match key {
                "match" => "add one, such as `match = \"POST /track\"`",
                _ => "add the name of a `[[queue]]`",
            };
            let what = format!("an `[[{KEY}]]` has no `{key}`");
            self.problems.push(self.file.problem(self.line, &what, hint));
            return None;
        }
        Some(intake)
    }
}

fn texts(item: &Item, max: usize) -> Option<Vec<&str>> {
    if let Some(text) = item.as_str() {
        return Some(vec![text]);
    }
    let array = item.as_array()?;
    let texts: Vec<&str> = array.iter().map(toml_edit::Value::as_str).collect::<Option<_>>()?;
    (1..=max).contains(&texts.len()).then_some(texts)
}

fn matches(item: &Item) -> Result<Vec<(String, String)>, Option<&'static str>> {
    let one = |text: &str| {
        let (method, path) =
            text.split_once(' ').ok_or(Some("the method or the path is missing"))?;
        if !METHODS.contains(&method) {
            return Err(Some("the methods are GET, POST, PUT, PATCH and DELETE"));
        }
        if !path.starts_with('/') {
            return Err(Some("the path does not begin with `/`"));
        }
        let path = locations::notation::path(path).map_err(Some)?;
        Ok((method.to_owned(), path))
    };
    texts(item, MATCHES_MAX).ok_or(None)?.into_iter().map(one).collect()
}

fn response(item: &Item) -> Result<IntakeResponse, Option<&'static str>> {
    if item.as_str() == Some("gif") {
        return Ok(IntakeResponse::Gif);
    }
    let status = item.as_integer().and_then(|status| u16::try_from(status).ok());
    status.filter(|status| STATUSES.contains(status)).map(IntakeResponse::Status).ok_or(None)
}

fn headers(item: &Item) -> Result<Vec<String>, Option<&'static str>> {
    if item.as_array().is_some_and(toml_edit::Array::is_empty) {
        return Ok(Vec::new());
    }
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = |text: &str| {
        let is_name = !text.is_empty() && text.len() <= 64 && text.bytes().all(is_token);
        is_name.then(|| text.to_ascii_lowercase()).ok_or(Some("a name is not valid"))
    };
    texts(item, HEADERS_MAX).ok_or(None)?.into_iter().map(name).collect()
}

fn bytes(item: &Item) -> Result<u64, Option<&'static str>> {
    let bytes = match item.as_integer() {
        Some(bytes) => u64::try_from(bytes).map_err(|_| None)?,
        None => item.as_str().and_then(notation::bytes).ok_or(None)?,
    };
    if bytes <= BODY_BYTES_MAX { Ok(bytes) } else { Err(None) }
}

fn overload(item: &Item) -> Result<crate::schema::intake::Overload, Option<&'static str>> {
    let found = OVERLOADS.iter().find(|(word, _)| Some(*word) == item.as_str());
    found.map(|(_, value)| *value).ok_or(None)
}

/// Checks the queues, now that they are known. All pools have the same intakes, because their paths
/// may belong to any of them.
pub(crate) fn resolve(typed: &[TypedIntake], settings: &mut Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut intakes = Vec::new();
    for TypedIntake { line, file, intake } in typed {
        let queues = settings.pools.iter().filter(|pool| pool.queue.is_some());
        let known: Vec<_> = queues.map(|pool| pool.name.as_str()).collect();
        if known.contains(&intake.queue.as_str()) {
            intakes.push(intake.clone());
            continue;
        }
        let what = format!("`queue = \"{}\"` of an `[[{KEY}]]` does not exist", intake.queue);
        let hint = match known.as_slice() {
            [] => "add a `[[queue]]` with this name".to_owned(),
            known => format!("the queues are `{}`", known.join("`, `")),
        };
        problems
            .push(Problem::new(format!("{}:{line}: {what}", file.display()), hint).at_line(*line));
    }
    for pool in &mut settings.pools {
        pool.settings.intakes.clone_from(&intakes);
    }
    settings.intakes = intakes;
    problems
}
