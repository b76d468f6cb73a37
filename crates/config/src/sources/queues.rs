//! The tables `[[queue]]` of the file → queues. `schema/queue.rs` defines the keys.

use samovar_cron::Zone;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml_edit::{Item, Table};

use crate::problem::Problem;
use crate::schema::notation;
use crate::schema::pool::OWN;
use crate::schema::queue::{
    ATTEMPTS, BACKOFF_MAX, BATCH, CPU_MAX, FIELDS, JobRate, KEY, LINGER_MAX, OLDEST_MAX, PER_KEY,
    Queue, Window,
};
use crate::schema::{console, names};
use crate::sources::pools;
use crate::sources::tables::{Reader, SettingsFile};

/// Whether the key describes the queue itself, and is not a setting of its pool.
pub(crate) fn is_about(key: &str) -> bool {
    FIELDS.iter().any(|field| field.key == key)
}

/// Returns the problem of a key that is not allowed in a queue, if it is not.
pub(crate) fn refusal(file: &SettingsFile<'_>, line: usize, key: &str) -> Option<Problem> {
    let is_group = names::groups().any(|group| group == key);
    let is_own = OWN.contains(&key) && key != "root";
    if is_own || is_group || key == console::KEY {
        return None;
    }
    let known = FIELDS.iter().map(|field| field.key).chain(OWN);
    let hint = match names::nearest(key, known) {
        Some(nearest) if nearest != "root" => format!("did you mean `{nearest}`?"),
        _ => format!(
            "the keys of a queue are `{}`, and the settings of a pool",
            FIELDS.map(|field| field.key).join("`, `")
        ),
    };
    Some(file.problem(line, &format!("`{key}` is not allowed in a `[[{KEY}]]`"), hint))
}

impl Reader<'_, '_> {
    fn window(&mut self, table: &Table) -> Option<Window> {
        let zone = |item: &Item| item.as_str().and_then(Zone::named).ok_or(None);
        let zone = self.read(table, "timezone", zone).unwrap_or_else(Zone::of_machine);
        self.read(table, "window", |item| {
            item.as_str().and_then(|text| Window::parse(text, zone.clone())).ok_or(None)
        })
    }

    /// Reads the name and the own keys of a queue; `None` if they have a mistake.
    pub(crate) fn queue(&mut self, table: &Table) -> Option<(String, Queue)> {
        let before = self.problems.len();
        let name = self.read(table, "name", pools::name);
        let default = Queue::default();
        let backoff = self.read(table, "backoff", time(BACKOFF_MAX)).unwrap_or(default.backoff);
        let queue = Queue {
            batch: self.read(table, "batch", count(BATCH)).unwrap_or(default.batch),
            linger: self.read(table, "linger", time(LINGER_MAX)).unwrap_or(default.linger),
            attempts: self
                .read(table, "attempts", count(ATTEMPTS))
                .and_then(|attempts| u32::try_from(attempts).ok())
                .unwrap_or(default.attempts),
            backoff,
            backoff_max: self
                .read(table, "backoff_max", time(BACKOFF_MAX))
                .unwrap_or(default.backoff_max.max(backoff)),
            dead_letter: self
                .read(table, "dead_letter", |item| item.as_bool().ok_or(None))
                .unwrap_or(default.dead_letter),
            concurrency_per_key: self
                .read(table, "concurrency_per_key", count(PER_KEY))
                .unwrap_or(default.concurrency_per_key),
            rate: self.read(table, "rate", rate),
            oldest_max: self
                .read(table, "oldest_max", time(OLDEST_MAX))
                .unwrap_or(default.oldest_max),
            is_idle: self.read(table, "priority", priority).unwrap_or(default.is_idle),
            cpu_max: self
                .read(table, "cpu_max", count(CPU_MAX))
                .map_or(default.cpu_max, |percent| percent as u64),
            window: self.window(table),
        };
        if self.problems.len() > before {
            return None;
        }
        let missing = match (&name, table.get("handler")) {
            (None, _) => Some(("name", "add one, such as `name = \"emails\"`")),
            (_, None) => Some(("handler", "add one, such as `handler = \"jobs/emails.php\"`")),
            _ => None,
        };
        if let Some((key, hint)) = missing {
            let what = format!("a `[[{KEY}]]` has no `{key}`");
            self.problems.push(self.file.problem(self.line, &what, hint));
            return None;
        }
        Some((name?, queue))
    }
}

fn priority(item: &Item) -> Result<bool, Option<&'static str>> {
    match item.as_str() {
        Some("normal") => Ok(false),
        Some("idle") => Ok(true),
        _ => Err(None),
    }
}

fn rate(item: &Item) -> Result<JobRate, Option<&'static str>> {
    item.as_str().and_then(JobRate::parse).ok_or(None)
}

fn count(allowed: RangeInclusive<i64>) -> impl Fn(&Item) -> Result<usize, Option<&'static str>> {
    move |item| {
        let number = item.as_integer().filter(|number| allowed.contains(number)).ok_or(None)?;
        usize::try_from(number).map_err(|_| None)
    }
}

fn time(max: Duration) -> impl Fn(&Item) -> Result<Duration, Option<&'static str>> {
    move |item| {
        if item.as_integer() == Some(0) {
            return Ok(Duration::ZERO);
        }
        let time = item.as_str().and_then(notation::timeout).ok_or(None)?;
        if time <= max { Ok(time) } else { Err(None) }
    }
}
