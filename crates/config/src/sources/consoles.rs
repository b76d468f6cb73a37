//! The tables `[[console]]` of the file, and those of a pool (`[[pool.console]]`) → console
//! commands. `schema/console.rs` defines the keys.

use std::path::{Path, PathBuf};
use std::time::Duration;
use toml_edit::{ArrayOfTables, Table, Value};

use crate::problem::Problem;
use crate::schema::console::{
    COUNT, ConsoleCommand, FIELDS, KEY, MEMORY, NAME_BYTES_MAX, SCRIPTS, STOP_TIMEOUT_MAX,
    TABLES_MAX, TIME_MAX, WORDS_BYTES_MAX, WORDS_MAX,
};
use crate::schema::notation;
use crate::schema::settings::Settings;
use crate::sources::tables::{Reader, SettingsFile};

/// A table as typed. The script is searched for when the root is known.
#[derive(Clone, Debug)]
pub(crate) struct TypedConsole {
    /// Name of the table in the file.
    table: &'static str,
    line: usize,
    file: PathBuf,
    base: PathBuf,
    script: Option<String>,
    pub(crate) console: ConsoleCommand,
}

impl TypedConsole {
    /// Creates the command of another table.
    pub(crate) fn new(
        file: &SettingsFile<'_>,
        (table, line): (&'static str, usize),
        script: Option<String>,
        console: ConsoleCommand,
    ) -> TypedConsole {
        let (base, file) = (file.base.to_owned(), file.path.to_owned());
        TypedConsole { table, line, file, base, script, console }
    }
}

/// Makes the problem of a key that is not an array of tables. `name`: correct name of these tables.
pub(crate) fn no_tables(file: &SettingsFile<'_>, line: usize, name: &str) -> Problem {
    let hint = format!(
        "begin each command with a line `[[{name}]]`; for HTTP workers, write `workers = 4`"
    );
    file.problem(line, &format!("`{KEY}` is not an array of tables"), hint)
}

/// Reads all tables of that name; mistakes become problems.
pub(crate) fn read(
    file: &SettingsFile<'_>,
    name: &'static str,
    tables: &ArrayOfTables,
    problems: &mut Vec<Problem>,
) -> Vec<TypedConsole> {
    let mut read: Vec<TypedConsole> = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let line = file.line_of_table(table);
        if number == TABLES_MAX {
            let what = format!("more than {TABLES_MAX} `[[{name}]]`");
            problems.push(file.problem(line, &what, "raise `count` instead of repeating a table"));
            break;
        }
        let Some(console) = Reader { file, name, fields: &FIELDS, line, problems }.console(table)
        else {
            continue;
        };
        if let Some(other) = read.iter().find(|c| c.console.name == console.console.name) {
            let what = format!(
                "`[[{name}]]` has the name `{}`, as the one in line {}",
                console.console.name, other.line
            );
            problems.push(file.problem(line, &what, "set a different `name`"));
            continue;
        }
        read.push(console);
    }
    read
}

impl Reader<'_, '_> {
    fn console(&mut self, table: &Table) -> Option<TypedConsole> {
        let before = self.problems.len();
        for (key, item) in table {
            let line = self.line_of(table, key, item);
            if !self.knows(key) {
                self.unknown(key, line);
            } else if item.as_value().is_none() {
                self.refuse(key, line, None);
            }
        }
        let mut console = ConsoleCommand {
            name: String::new(),
            script: PathBuf::new(),
            arguments: self.value(table, "command", words).unwrap_or_default(),
            folder: self.file.base.to_owned(),
            count: self.value(table, "count", count).unwrap_or(1),
            memory_max: self.value(table, "memory_max", memory).unwrap_or(512 << 20),
            time_max: self.value(table, "time_max", span(0, TIME_MAX)).unwrap_or_default(),
            stop_timeout: self
                .value(table, "stop_timeout", span(1, STOP_TIMEOUT_MAX))
                .unwrap_or(Duration::from_secs(10)),
        };
        let script = self.value(table, "script", text);
        let own_name = self.value(table, "name", name);
        if self.problems.len() > before {
            return None;
        }
        if console.arguments.is_empty() && script.is_none() {
            let what = format!("`[[{}]]` has no `command`", self.name);
            let hint = "add one, such as `command = \"messenger:consume async\"`";
            self.problems.push(self.file.problem(self.line, &what, hint));
            return None;
        }
        console.name = own_name.unwrap_or_else(|| derived_name(&console, script.as_deref()));
        Some(TypedConsole {
            table: self.name,
            line: self.line,
            file: self.file.path.to_owned(),
            base: self.file.base.to_owned(),
            script,
            console,
        })
    }

    fn value<T>(
        &mut self,
        table: &Table,
        key: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = table.get(key)?.as_value()?;
        let got = read(value);
        if got.is_none() {
            let line = value.span().map_or(self.line, |span| (self.file.line_of)(span.start));
            self.refuse(key, line, empty(value));
        }
        got
    }
}

/// Returns the reason why a list or text without content is refused.
pub(crate) fn empty(value: &Value) -> Option<&'static str> {
    let is_empty = match value {
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.value().trim().is_empty(),
        _ => false,
    };
    is_empty.then_some("it is empty")
}

pub(crate) fn words(value: &Value) -> Option<Vec<String>> {
    let words = match value {
        Value::String(text) => shlex::split(text.value())?,
        Value::Array(array) => {
            array.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
    let sound = words.len() <= WORDS_MAX && bytes <= WORDS_BYTES_MAX;
    (sound
        && words.first().is_some_and(|w| !w.is_empty())
        && !words.iter().any(|w| w.contains('\0')))
    .then_some(words)
}

fn count(value: &Value) -> Option<usize> {
    value.as_integer().filter(|n| COUNT.contains(n)).and_then(|n| usize::try_from(n).ok())
}

fn memory(value: &Value) -> Option<u64> {
    let size = match value {
        Value::Integer(bytes) => u64::try_from(*bytes.value()).ok()?,
        other => notation::bytes(other.as_str()?)?,
    };
    MEMORY.contains(&size).then_some(size)
}

/// Reads a duration. `0` needs no unit where it is allowed.
fn span(min_ms: u64, max: Duration) -> impl Fn(&Value) -> Option<Duration> {
    move |value| {
        let span = match value {
            Value::Integer(zero) if *zero.value() == 0 => Duration::ZERO,
            other => notation::duration(other.as_str()?)?,
        };
        (span >= Duration::from_millis(min_ms) && span <= max).then_some(span)
    }
}

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty() && !text.contains('\0')).map(str::to_owned)
}

pub(crate) fn name(value: &Value) -> Option<String> {
    text(value).filter(|n| n.len() <= NAME_BYTES_MAX && n.bytes().all(is_name_byte))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// Derives a name: `messenger:consume` → `consume`, `import.php` → `import`.
fn derived_name(console: &ConsoleCommand, script: Option<&str>) -> String {
    let first = console.arguments.first().map(String::as_str).or(script).unwrap_or_default();
    let last = first.rsplit([':', '/']).next().unwrap_or(first).trim_end_matches(".php");
    let clean: String =
        last.chars().filter(char::is_ascii).filter(|c| is_name_byte(*c as u8)).collect();
    let short: String = clean.chars().take(NAME_BYTES_MAX).collect();
    if short.is_empty() { KEY.to_owned() } else { short }
}

/// Finds the scripts, now that the root is known. `is_elsewhere`: the root belongs to another
/// application than the one next to the file, so scripts next to the file are not used.
pub(crate) fn resolve(
    typed: &[TypedConsole],
    settings: &mut Settings,
    is_elsewhere: bool,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for typed in typed {
        match find(typed, &settings.root, is_elsewhere) {
            Ok(console) => settings.consoles.push(console),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

/// Finds the script of one command.
pub(crate) fn find(
    typed: &TypedConsole,
    root: &Path,
    is_elsewhere: bool,
) -> Result<ConsoleCommand, Problem> {
    let script = find_script(typed, root, is_elsewhere).ok_or_else(|| no_script(typed))?;
    let mut console = ConsoleCommand { script, ..typed.console.clone() };
    if is_elsewhere {
        above(root).clone_into(&mut console.folder);
    }
    Ok(console)
}

fn above(root: &Path) -> &Path {
    root.parent().unwrap_or(root)
}

fn find_script(typed: &TypedConsole, root: &Path, is_elsewhere: bool) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = match &typed.script {
        Some(script) => vec![typed.base.join(script)],
        None => [typed.base.as_path(), above(root), root]
            .iter()
            .skip(usize::from(is_elsewhere))
            .flat_map(|folder| SCRIPTS.map(|console| folder.join(console)))
            .collect(),
    };
    candidates.into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}

fn no_script(typed: &TypedConsole) -> Problem {
    let TypedConsole { table, line, file, script, .. } = typed;
    let what = match script {
        Some(script) => format!("`script = \"{script}\"` does not name a file"),
        None => format!(
            "`[[{table}]]` has no console script: neither {} exists",
            SCRIPTS.map(|console| format!("`{console}`")).join(" nor ")
        ),
    };
    let hint = "set `script` to the path of a PHP file, relative to the settings file";
    Problem::new(format!("{}:{line}: {what}", file.display()), hint).at_line(*line)
}
