//! The tables `[[schedule]]` of the file → schedules. `schema/schedule.rs` defines the keys.

use samovar_cron::{Cron, Times, Zone};
use std::time::Duration;
use toml_edit::{ArrayOfTables, Item, Table};

use crate::problem::Problem;
use crate::schema::console::{ConsoleCommand, STOP_TIMEOUT_MAX};
use crate::schema::notation;
use crate::schema::pool::DEFAULT_POOL;
use crate::schema::schedule::{
    EVERY_MAX, EVERY_MIN, FIELDS, JITTER_MAX, KEY, OVERLAPS, PAYLOAD_BYTES_MAX, Schedule,
    TABLES_MAX, TIMEOUT_MAX, Work,
};
use crate::schema::settings::Settings;
use crate::sources::consoles::{self, TypedConsole};
use crate::sources::json;
use crate::sources::tables::{Reader, SettingsFile};

/// A table as typed. The script is searched for when the roots are known.
#[derive(Clone, Debug)]
pub(crate) struct TypedSchedule {
    line: usize,
    schedule: Schedule,
    /// The command, unless it pushes a job.
    console: Option<TypedConsole>,
    file: std::path::PathBuf,
}

/// Reads all tables; mistakes become problems.
pub(crate) fn read(
    file: &SettingsFile<'_>,
    tables: &ArrayOfTables,
    problems: &mut Vec<Problem>,
) -> Vec<TypedSchedule> {
    let mut read: Vec<TypedSchedule> = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let line = file.line_of_table(table);
        if number == TABLES_MAX {
            let what = format!("more than {TABLES_MAX} `[[{KEY}]]`");
            problems.push(file.problem(line, &what, "use one command for several of them"));
            break;
        }
        let mut reader = Reader { file, name: KEY, fields: &FIELDS, line, problems };
        let Some(schedule) = reader.schedule(table) else { continue };
        let name = &schedule.schedule.name;
        if let Some(other) = read.iter().find(|other| other.schedule.name == *name) {
            let what =
                format!("`[[{KEY}]]` has the name `{name}`, as the one in line {}", other.line);
            problems.push(file.problem(line, &what, "set a different `name`"));
            continue;
        }
        read.push(schedule);
    }
    read
}

impl Reader<'_, '_> {
    fn schedule(&mut self, table: &Table) -> Option<TypedSchedule> {
        let before = self.problems.len();
        for (key, item) in table {
            if !self.knows(key) {
                let line = self.line_of(table, key, item);
                self.unknown(key, line);
            }
        }
        let name = self.read(table, "name", |item| of_value(item, consoles::name));
        let zone = self.read(table, "timezone", zone);
        let cron = self.read(table, "cron", cron);
        let every = self.read(table, "every", time(EVERY_MIN, EVERY_MAX));
        let schedule = |times, work, reader: &mut Self| Schedule {
            name: String::new(),
            times,
            work,
            overlap: reader.read(table, "overlap", word(&OVERLAPS)).unwrap_or_default(),
            jitter: reader
                .read(table, "jitter", time(Duration::ZERO, JITTER_MAX))
                .unwrap_or_default(),
            catches_up: reader
                .read(table, "catch_up", word(&[("none", false), ("once", true)]))
                .unwrap_or_default(),
            timeout: reader
                .read(table, "timeout", time(Duration::ZERO, TIMEOUT_MAX))
                .unwrap_or(Duration::from_hours(1)),
        };
        let times = match (cron, every) {
            (Some(cron), _) => Times::Cron(cron, zone.unwrap_or_else(Zone::of_machine)),
            (None, every) => Times::Every(every.unwrap_or(EVERY_MIN)),
        };
        let (work, console) = self.work(table);
        let schedule = schedule(times, work, self);
        self.check_keys(table, before);
        if self.problems.len() > before {
            return None;
        }
        let schedule = Schedule { name: name?, ..schedule };
        let console = console.map(|mut console: TypedConsole| {
            console.console.name.clone_from(&schedule.name);
            console
        });
        Some(TypedSchedule { line: self.line, schedule, console, file: self.file.path.to_owned() })
    }

    fn work(&mut self, table: &Table) -> (Work, Option<TypedConsole>) {
        let queue = self.read(table, "queue", |item| of_value(item, consoles::name));
        let payload = self.read(table, "payload", payload);
        let pool = self.read(table, "pool", |item| of_value(item, consoles::name));
        let command = ConsoleCommand {
            name: String::new(),
            script: std::path::PathBuf::new(),
            arguments: self
                .read(table, "command", |item| of_value(item, consoles::words))
                .unwrap_or_default(),
            folder: self.file.base.to_owned(),
            count: 1,
            memory_max: 0,
            time_max: Duration::ZERO,
            stop_timeout: self
                .read(table, "stop_timeout", time(Duration::from_millis(1), STOP_TIMEOUT_MAX))
                .unwrap_or(Duration::from_secs(10)),
        };
        let script = self.read(table, "script", |item| of_value(item, consoles::text));
        if let Some(queue) = queue {
            return (Work::Push { queue, payload: payload.unwrap_or_else(|| "null".into()) }, None);
        }
        let console = TypedConsole::new(self.file, (KEY, self.line), script, command.clone());
        (Work::Command { pool, command }, Some(console))
    }

    /// Reports keys that are missing, or that exclude each other.
    fn check_keys(&mut self, table: &Table, before: usize) {
        let has = |key: &str| table.contains_key(key);
        let zone = "`timezone` needs `cron`: an interval does not depend on the clock";
        let of_command = ["command", "script", "pool", "timeout", "stop_timeout"];
        let unused = of_command.iter().find(|key| has(key));
        let mistake = if !has("name") {
            Some(("has no `name`".to_owned(), "add one, such as `name = \"nightly-report\"`"))
        } else if has("cron") == has("every") {
            let both = if has("cron") { "both `cron` and `every`" } else { "no `cron` or `every`" };
            Some((format!("has {both}"), "set one, such as `cron = \"*/5 * * * *\"`"))
        } else if has("timezone") && has("every") {
            Some(("has both `timezone` and `every`".to_owned(), zone))
        } else if let (true, Some(unused)) = (has("queue"), unused) {
            let hint = "a schedule runs a command, or pushes a job";
            Some((format!("has both `queue` and `{unused}`"), hint))
        } else if !has("queue") && has("payload") {
            Some(("has a `payload`, but no `queue`".to_owned(), "add `queue`, or pass arguments"))
        } else if !has("queue") && !has("command") && !has("script") {
            let hint = "add one, such as `command = \"app:report\"` or `queue = \"reports\"`";
            Some(("has no `command`, `script` or `queue`".to_owned(), hint))
        } else {
            None
        };
        if let Some((what, hint)) = mistake.filter(|_| self.problems.len() == before) {
            let what = format!("a `[[{KEY}]]` {what}");
            self.problems.push(self.file.problem(self.line, &what, hint));
        }
    }
}

fn of_value<T>(
    item: &Item,
    read: impl Fn(&toml_edit::Value) -> Option<T>,
) -> Result<T, Option<&'static str>> {
    let value = item.as_value().ok_or(None)?;
    read(value).ok_or_else(|| consoles::empty(value))
}

fn zone(item: &Item) -> Result<Zone, Option<&'static str>> {
    let name = item.as_str().ok_or(None)?;
    Zone::named(name).ok_or(Some("there is no such time zone"))
}

fn cron(item: &Item) -> Result<Cron, Option<&'static str>> {
    let text = item.as_str().ok_or(None)?;
    text.parse().map_err(|error: samovar_cron::CronError| Some(error.hint()))
}

fn payload(item: &Item) -> Result<String, Option<&'static str>> {
    let json = json::of(item).ok_or(Some("`inf` and `nan` have no notation in JSON"))?;
    if json.len() > PAYLOAD_BYTES_MAX { Err(Some("it is too long")) } else { Ok(json) }
}

fn word<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Item) -> Result<T, Option<&'static str>> {
    move |item| {
        let found = words.iter().find(|(word, _)| Some(*word) == item.as_str());
        found.map(|(_, value)| *value).ok_or(None)
    }
}

fn time(min: Duration, max: Duration) -> impl Fn(&Item) -> Result<Duration, Option<&'static str>> {
    move |item| {
        let time = match item.as_integer() {
            Some(0) => Duration::ZERO,
            _ => item.as_str().and_then(notation::duration).ok_or(None)?,
        };
        if (min..=max).contains(&time) { Ok(time) } else { Err(None) }
    }
}

/// Finds the scripts, pools and queues, now that they are known.
pub(crate) fn resolve(typed: &[TypedSchedule], settings: &mut Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    for TypedSchedule { line, schedule, console, file } in typed {
        let problem = |what: String, hint: String| {
            Problem::new(format!("{}:{line}: {what}", file.display()), hint).at_line(*line)
        };
        let mut schedule = schedule.clone();
        match &mut schedule.work {
            Work::Push { queue, .. } => {
                let queues = settings.pools.iter().filter(|pool| pool.queue.is_some());
                let known: Vec<_> = queues.map(|pool| pool.name.as_str()).collect();
                if !known.contains(&queue.as_str()) {
                    let what = format!("`queue = \"{queue}\"` of a `[[{KEY}]]` does not exist");
                    let hint = match known.as_slice() {
                        [] => "add a `[[queue]]` with this name".to_owned(),
                        known => format!("the queues are `{}`", known.join("`, `")),
                    };
                    problems.push(problem(what, hint));
                    continue;
                }
            }
            Work::Command { pool, command } => {
                let name = pool.as_deref().filter(|name| *name != DEFAULT_POOL);
                let own = name.map(|name| settings.pools.iter().find(|pool| pool.name == name));
                if let (Some(name), Some(None)) = (name, own) {
                    let what = format!("`pool = \"{name}\"` of a `[[{KEY}]]` does not exist");
                    let hint = "add a `[[pool]]` with this name, or remove the key";
                    problems.push(problem(what, hint.to_owned()));
                    continue;
                }
                let root = own.flatten().map_or(&settings.root, |own| &own.settings.root);
                let is_elsewhere = *root != settings.root;
                if pool.as_deref() == Some(DEFAULT_POOL) {
                    *pool = None;
                }
                let Some(console) = console else { continue };
                match consoles::find(console, root, is_elsewhere) {
                    Ok(found) => *command = found,
                    Err(missing) => {
                        problems.push(missing);
                        continue;
                    }
                }
            }
        }
        settings.schedules.push(schedule);
    }
    problems
}
