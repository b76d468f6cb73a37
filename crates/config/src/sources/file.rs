//! `samovar.toml` → typed values, each with its line.

use std::path::Path;
use toml_edit::{Array, ArrayOfTables, Document, Item, Key, Table, TableLike, Value};

use crate::problem::Problem;
use crate::schema::location::{self, Location};
use crate::schema::pool::{self, TABLES_MAX};
use crate::schema::secret::MASK;
use crate::schema::setting::{Kind, Setting, Shape};
use crate::schema::table::SETTINGS;
use crate::schema::{console, intake, names, notation, queue, schedule};
use crate::sources::consoles::{self, TypedConsole};
use crate::sources::intakes::{self, TypedIntake};
use crate::sources::locations;
use crate::sources::pools::{self, TypedPool};
use crate::sources::queues;
use crate::sources::schedules::{self, TypedSchedule};
use crate::sources::tables::{self, SettingsFile};
use crate::sources::typed_value::{Origin, Typed};

/// Contents of one settings file, read but not checked yet.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) typed: Vec<Typed>,
    pub(crate) consoles: Vec<TypedConsole>,
    pub(crate) locations: Vec<Location>,
    pub(crate) schedules: Vec<TypedSchedule>,
    pub(crate) intakes: Vec<TypedIntake>,
    pub(crate) pools: Vec<TypedPool>,
}

/// Reads the text of `file`; mistakes become problems.
pub(crate) fn read(file: &Path, text: &str, cwd: &Path, problems: &mut Vec<Problem>) -> Contents {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            problems.push(syntax_error(file, text, &error));
            return Contents::default();
        }
    };
    // Paths in the file are relative to the file, not to the folder in which the server is started.
    let base = cwd.join(file).parent().unwrap_or(cwd).to_owned();
    let contents = Contents::default();
    let mut reader =
        Reader { file, text, base: &base, is_pools: false, is_queues: false, contents, problems };
    reader.table("", document.as_table());
    reader.contents
}

fn syntax_error(file: &Path, text: &str, error: &toml_edit::TomlError) -> Problem {
    let line = line_of(text, error.span().map_or(0, |span| span.start));
    let message = error.message().replace('\n', ", ");
    Problem::new(
        format!("{}:{line}: invalid TOML: {message}", file.display()),
        "put strings in quotes and the names of tables in brackets: https://toml.io",
    )
    .at_line(line)
}

/// Returns the line of an offset, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    1 + before.matches('\n').count()
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    base: &'a Path,
    /// The table being read is a `[[pool]]`.
    is_pools: bool,
    /// The table being read is a `[[queue]]`; then `is_pools` is also set.
    is_queues: bool,
    contents: Contents,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    /// Reads a table. `prefix` is empty or ends with a dot.
    fn table(&mut self, prefix: &str, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let line = self.line(table.key(name), item);
            self.entry(&format!("{prefix}{name}"), line, item);
        }
    }

    fn entry(&mut self, key: &str, line: usize, item: &Item) {
        if self.is_pools && self.is_refused(key, line) {
            return;
        }
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            self.setting(setting, key, line, item);
        } else if key == console::KEY {
            self.consoles(line, item);
        } else if key == location::KEY {
            self.contents.locations = self.tables(location::KEY, line, item, locations::read);
        } else if key == pool::KEY {
            self.pools(line, item);
        } else if key == queue::KEY {
            self.queues(line, item);
        } else if key == intake::KEY {
            self.contents.intakes = self.tables(intake::KEY, line, item, intakes::read);
        } else if key == schedule::KEY {
            self.contents.schedules = self.tables(schedule::KEY, line, item, schedules::read);
        } else if key == console::FORMER_KEY && item.as_value().is_none() {
            self.former_consoles(line, item);
        } else if names::groups().any(|group| group == key) {
            self.group(key, line, item);
        } else {
            self.problems.push(unknown_key(self.file, line, key));
        }
    }

    fn consoles(&mut self, line: usize, item: &Item) {
        let line_of = |offset| line_of(self.text, offset);
        let file = SettingsFile { path: self.file, base: self.base, line_of: &line_of };
        let name = if self.is_pools { console::KEY_OF_POOL } else { console::KEY };
        match item.as_array_of_tables() {
            Some(tables) => {
                self.contents.consoles = consoles::read(&file, name, tables, self.problems);
            }
            None => self.problems.push(consoles::no_tables(&file, line, name)),
        }
    }

    /// Reads the tables `[[key]]`.
    fn tables<T>(
        &mut self,
        key: &str,
        line: usize,
        item: &Item,
        read: impl FnOnce(&SettingsFile<'_>, &ArrayOfTables, &mut Vec<Problem>) -> Vec<T>,
    ) -> Vec<T> {
        let line_of = |offset| line_of(self.text, offset);
        let file = SettingsFile { path: self.file, base: self.base, line_of: &line_of };
        let Some(tables) = item.as_array_of_tables() else {
            self.problems.push(file.no_tables(line, key));
            return Vec::new();
        };
        read(&file, tables, self.problems)
    }

    /// Reads each `[[pool]]`: its name and match rules, and its settings in the general notation.
    fn pools(&mut self, line: usize, item: &Item) {
        let line_of = |offset| line_of(self.text, offset);
        let file = SettingsFile { path: self.file, base: self.base, line_of: &line_of };
        let Some(found) = item.as_array_of_tables() else {
            return self.problems.push(file.no_tables(line, pool::KEY));
        };
        for table in found {
            let line = file.line_of_table(table);
            if self.contents.pools.len() == TABLES_MAX {
                let what =
                    format!("more than {TABLES_MAX} `[[{}]]` and `[[{}]]`", pool::KEY, queue::KEY);
                let hint = "use one table with several patterns: `match = [\"/a/*\", \"/b/*\"]`";
                self.problems.push(file.problem(line, &what, hint));
                break;
            }
            let (name, fields) = (pool::KEY, &pool::FIELDS);
            let about = tables::Reader { file: &file, name, fields, line, problems: self.problems }
                .pool(table);
            let (contents, problems) = (Contents::default(), &mut *self.problems);
            let Reader { file, text, base, .. } = *self;
            let mut inner =
                Reader { file, text, base, is_pools: true, is_queues: false, contents, problems };
            for (key, item) in table.iter().filter(|(key, _)| !pools::is_about(key)) {
                let line = inner.line(table.key(key), item);
                inner.entry(key, line, item);
            }
            let Contents { typed, consoles, .. } = inner.contents;
            if let Some((name, paths, hosts)) = about {
                let file = self.file.to_owned();
                let queue = None;
                let pool = TypedPool { file, line, name, paths, hosts, typed, consoles, queue };
                self.contents.pools.push(pool);
            }
        }
    }

    /// Reads each `[[queue]]` as the pool of its workers.
    fn queues(&mut self, line: usize, item: &Item) {
        let line_of = |offset| line_of(self.text, offset);
        let file = SettingsFile { path: self.file, base: self.base, line_of: &line_of };
        let Some(found) = item.as_array_of_tables() else {
            return self.problems.push(file.no_tables(line, queue::KEY));
        };
        for table in found {
            let line = file.line_of_table(table);
            if self.contents.pools.len() == TABLES_MAX {
                let what =
                    format!("more than {TABLES_MAX} `[[{}]]` and `[[{}]]`", pool::KEY, queue::KEY);
                let hint = "use one queue for several kinds of jobs, with the kind in the payload";
                self.problems.push(file.problem(line, &what, hint));
                break;
            }
            let (name, fields) = (queue::KEY, &queue::FIELDS);
            let about = tables::Reader { file: &file, name, fields, line, problems: self.problems }
                .queue(table);
            let (contents, problems) = (Contents::default(), &mut *self.problems);
            let Reader { file, text, base, .. } = *self;
            let mut inner =
                Reader { file, text, base, is_pools: true, is_queues: true, contents, problems };
            inner.preset(table, line);
            for (key, item) in table.iter().filter(|(key, _)| !queues::is_about(key)) {
                let line = inner.line(table.key(key), item);
                inner.entry(key, line, item);
            }
            let Contents { typed, consoles, .. } = inner.contents;
            if let Some((name, queue)) = about {
                let (file, queue) = (self.file.to_owned(), Some(queue));
                let (paths, hosts) = (Vec::new(), Vec::new());
                let pool = TypedPool { file, line, name, paths, hosts, typed, consoles, queue };
                self.contents.pools.push(pool);
            }
        }
    }

    /// Reads the keys of a queue that are settings of its pool under another name. Sets one worker,
    /// unless the table says otherwise.
    fn preset(&mut self, table: &Table, line: usize) {
        let named = |key: &str| SETTINGS.iter().find(|setting| setting.key == key);
        let same = [
            ("handler", "root"),
            ("timeout", "timeouts.request"),
            ("timeout", "timeouts.response"),
        ];
        for (key, of) in same {
            if let (Some(item), Some(setting)) = (table.get(key), named(of)) {
                let line = self.line(table.key(key), item);
                self.value(setting, &format!("{}.{key}", queue::KEY), line, item.as_value());
            }
        }
        if let (None, Some(setting)) = (table.get("workers"), named("workers")) {
            let (file, key) = (self.file.to_owned(), setting.key.to_owned());
            let origin = Origin::File { file, line, key, is_pools: true };
            self.contents.typed.push(Typed::untyped(setting, "1", origin, self.base));
        }
    }

    /// Reports a key that is not allowed in a pool.
    fn is_refused(&mut self, key: &str, line: usize) -> bool {
        let line_of = |offset| line_of(self.text, offset);
        let file = SettingsFile { path: self.file, base: self.base, line_of: &line_of };
        let refusal = if self.is_queues {
            queues::refusal(&file, line, key)
        } else {
            pools::refusal(&file, line, key)
        };
        let is_refused = refusal.is_some();
        self.problems.extend(refusal);
        is_refused
    }

    /// Reports each table that uses the former name.
    fn former_consoles(&mut self, line: usize, item: &Item) {
        let tables = item.as_array_of_tables().into_iter().flatten();
        let lines = tables.filter_map(|table| Some(line_of(self.text, table.span()?.start)));
        let lines: Vec<usize> = lines.collect();
        let lines = if lines.is_empty() { vec![line] } else { lines };
        self.problems.extend(lines.into_iter().map(|line| {
            Problem::new(
                format!(
                    "{}:{line}: `[[{}]]` was renamed to `[[{}]]`",
                    self.file.display(),
                    console::FORMER_KEY,
                    console::KEY
                ),
                format!("write `[[{}]]`; its keys are the same", console::KEY),
            )
            .at_line(line)
        }));
    }

    fn group(&mut self, key: &str, line: usize, item: &Item) {
        match item.as_table_like() {
            Some(table) => self.table(&format!("{key}."), table),
            None => self.problems.push(self.no_table(key, line, item)),
        }
    }

    fn setting(&mut self, setting: &'static Setting, key: &str, line: usize, item: &Item) {
        match (&setting.kind, item.as_table_like(), item.as_array()) {
            (Kind::Pairs { .. }, Some(table), _) => self.pairs(setting, key, table),
            (Kind::Pairs { .. }, None, _) => {
                self.problems.push(self.no_table(key, line, item));
            }
            (Kind::Range { .. }, Some(table), _) => self.range(setting, line, table),
            (Kind::List { .. }, _, Some(array)) if !array.is_empty() => {
                self.list(setting, key, array);
            }
            _ => self.value(setting, key, line, item.as_value()),
        }
    }

    /// Reads pairs. Names of directives contain dots, which TOML reads as tables: `opcache.enable =
    /// true`.
    fn pairs(&mut self, setting: &'static Setting, prefix: &str, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let key = format!("{prefix}.{name}");
            if let Some(inner) = item.as_table_like() {
                self.pairs(setting, &key, inner);
                continue;
            }
            let is_repeatable = setting.key == "php" && notation::is_repeatable(name);
            let values = item.as_array().filter(|array| is_repeatable && !array.is_empty());
            if let Some(array) = values {
                self.list(setting, &key, array);
            } else {
                let line = self.line(table.key(name), item);
                self.value(setting, &key, line, item.as_value());
            }
        }
    }

    /// Reads a range from its ends, which share a table with other settings: `{ min = 2, max = 64,
    /// idle_max = "1m" }`.
    fn range(&mut self, setting: &'static Setting, line: usize, table: &dyn TableLike) {
        let end = |name| table.get(name).and_then(Item::as_value).map(content);
        let ends = [end("min"), end("max")];
        for (name, item) in table.iter().filter(|(name, _)| !["min", "max"].contains(name)) {
            let line = self.line(table.key(name), item);
            self.entry(&format!("{}.{name}", setting.key), line, item);
        }
        let (text, shape) = match ends {
            [None, None] => return,
            [Some((min, Shape::Integer)), Some((max, Shape::Integer))] => {
                (format!("{min}..{max}"), Shape::String)
            }
            [None, Some((max, Shape::Integer))] => (format!("auto..{max}"), Shape::String),
            _ => (String::new(), Shape::Nested),
        };
        let show =
            |name| table.get(name).map(|item| format!("{name} = {}", item.to_string().trim()));
        let shown: Vec<String> = ["min", "max"].into_iter().filter_map(show).collect();
        let raw = format!("{{ {} }}", shown.join(", "));
        let key = setting.key.to_owned();
        let is_pools = self.is_pools;
        let origin = Origin::File { file: self.file.to_owned(), line, key, is_pools };
        let base = self.base.to_owned();
        self.contents.typed.push(Typed { setting, text, raw, shape, origin, base });
    }

    fn list(&mut self, setting: &'static Setting, key: &str, array: &Array) {
        for value in array {
            let line = line_of(self.text, value.span().map_or(0, |span| span.start));
            self.value(setting, key, line, Some(value));
        }
    }

    fn value(&mut self, setting: &'static Setting, key: &str, line: usize, value: Option<&Value>) {
        let (mut text, shape) = value.map_or((String::new(), Shape::Nested), content);
        if let Kind::Pairs { .. } = setting.kind {
            let directive = key.strip_prefix(setting.key).unwrap_or(key).trim_start_matches('.');
            text = format!("{directive}={}", ini_value(&text, shape));
        }
        let raw = value.and_then(Value::span).map_or("{…}".to_owned(), |span| self.excerpt(span));
        let (file, key, is_pools) = (self.file.to_owned(), key.to_owned(), self.is_pools);
        let origin = Origin::File { file, line, key, is_pools };
        let base = self.base.to_owned();
        self.contents.typed.push(Typed { setting, text, raw, shape, origin, base });
    }

    fn no_table(&self, key: &str, line: usize, item: &Item) -> Problem {
        let is_secret = SETTINGS.iter().any(|setting| setting.is_secret && setting.key == key);
        let raw = item.span().map_or(String::new(), |span| self.excerpt(span));
        let raw = if is_secret { MASK.to_owned() } else { raw };
        let other = SETTINGS.iter().find_map(|setting| match setting.kind {
            Kind::Pairs { unpaired: Some((_, other)), .. } if setting.key == key => Some(other),
            _ => None,
        });
        let hint = match other {
            Some(other) => format!("write a table `[{key}]`; for a single value, use `{other}`"),
            None => format!("write a table `[{key}]`"),
        };
        let place = format!("{}:{line}", self.file.display());
        Problem::new(format!("{place}: `{key} = {raw}` is not allowed"), hint).at_line(line)
    }

    fn line(&self, key: Option<&Key>, item: &Item) -> usize {
        let span = key.and_then(Key::span).or_else(|| item.span());
        line_of(self.text, span.map_or(0, |span| span.start))
    }

    /// Returns the source text of a value: its first line, shortened if it is long.
    fn excerpt(&self, span: std::ops::Range<usize>) -> String {
        const CHARS_MAX: usize = 60;
        let raw = self.text.get(span).unwrap_or_default();
        let line = raw.lines().next().unwrap_or_default();
        let short: String = line.chars().take(CHARS_MAX).collect();
        if short.len() < raw.len() { short + "…" } else { short }
    }
}

fn unknown_key(file: &Path, line: usize, key: &str) -> Problem {
    let hint = match (names::by_former_key(key), names::nearest_key(key)) {
        (Some(today), _) => format!("use `{}`, its new name", today.key),
        (None, Some(nearest)) => format!("did you mean `{nearest}`?"),
        (None, None) => format!("known keys: {}", names::siblings(key).join(", ")),
    };
    Problem::new(format!("{}:{line}: unknown key `{key}`", file.display()), hint).at_line(line)
}

/// Returns the value without quotes, and its shape.
fn content(value: &Value) -> (String, Shape) {
    match value {
        Value::String(text) => (text.value().clone(), Shape::String),
        Value::Integer(number) => (number.value().to_string(), Shape::Integer),
        Value::Boolean(switch) => (switch.value().to_string(), Shape::Boolean),
        Value::Float(_) | Value::Datetime(_) => (String::new(), Shape::Scalar),
        Value::Array(array) if array.is_empty() => (String::new(), Shape::Empty),
        Value::Array(_) | Value::InlineTable(_) => (String::new(), Shape::Nested),
    }
}

fn ini_value(text: &str, shape: Shape) -> &str {
    match (shape, text) {
        (Shape::Boolean, "true") => "1",
        (Shape::Boolean, _) => "0",
        _ => text,
    }
}
