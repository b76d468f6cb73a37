//! `[[worker]]`: console commands that run beside HTTP, such as a framework's message consumers.
//!
//! They are tables of the file alone: a flag or a variable has no room for several of them.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml_edit::{ArrayOfTables, Table, Value};

use crate::names;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::value;

/// The key of the tables.
pub(crate) const KEY: &str = "worker";

/// Tables in a file.
const TABLES_MAX: usize = 32;
/// Processes of one table.
const COUNT: RangeInclusive<i64> = 1..=64;
/// Words of a command, and bytes of all of them: they are passed on in one message.
const WORDS_MAX: usize = 64;
const WORDS_BYTES_MAX: usize = 3072;
const MEMORY: RangeInclusive<u64> = (16 << 20)..=(1 << 40);
const TIME_MAX: Duration = Duration::from_hours(7 * 24);
const STOP_TIMEOUT_MAX: Duration = Duration::from_hours(1);
const NAME_BYTES_MAX: usize = 32;

/// Where frameworks keep their console, below the application's folder.
const CONSOLES: [&str; 2] = ["bin/console", "artisan"];

/// One `[[worker]]`: the same command in `count` processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    /// For log lines and `samovar status`; unique.
    pub name: String,
    /// The PHP file that is run: absolute, exists.
    pub script: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Working directory: the folder of the settings' file.
    pub folder: PathBuf,
    /// Processes.
    pub count: usize,
    /// Resident memory after which a process is asked to leave, bytes.
    pub memory_max: u64,
    /// Age after which it is asked to leave; zero: never.
    pub time_max: Duration,
    /// From SIGTERM to SIGKILL.
    pub stop_timeout: Duration,
}

/// A key of the table, for the manual and for mistyped ones.
struct Field {
    key: &'static str,
    allowed: &'static str,
    default: &'static str,
    doc: &'static str,
}

const FIELDS: [Field; 7] = [
    Field {
        key: "command",
        allowed: "a string, split into words as a shell does, or an array of strings",
        default: "none; needed unless `script` is set",
        doc: "What the console is told to run: `\"messenger:consume async --time-limit=3600\"`",
    },
    Field {
        key: "script",
        allowed: "the path of a PHP file",
        default: "`bin/console` or `artisan`, in the folder of the file or above the root",
        doc: "The PHP file that runs the command",
    },
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`",
        default: "the last part of the command's first word, as `consume`",
        doc: "Its name in log lines and in `samovar status`",
    },
    Field { key: "count", allowed: "1 to 64", default: "`1`", doc: "Processes that run it" },
    Field {
        key: "memory_max",
        allowed: "a size from 16M to 1024G",
        default: "`512M`",
        doc: "Resident memory after which a process is asked to leave (SIGTERM) and another takes its place",
    },
    Field {
        key: "time_max",
        allowed: "a time up to 168h, or `0`: no limit",
        default: "`0`",
        doc: "Age after which a process is asked to leave",
    },
    Field {
        key: "stop_timeout",
        allowed: "a time up to 1h",
        default: "`10s`",
        doc: "From being asked to leave to SIGKILL: give it what the longest message takes",
    },
];

/// A table as it was typed; the script is looked for when the root is known.
#[derive(Clone, Debug)]
pub(crate) struct TypedConsole {
    line: usize,
    file: PathBuf,
    base: PathBuf,
    script: Option<String>,
    console: Console,
}

/// What reading needs to know about the file.
pub(crate) struct Place<'a> {
    pub(crate) file: &'a Path,
    pub(crate) base: &'a Path,
    /// The line of a byte in the file.
    pub(crate) line_of: &'a dyn Fn(usize) -> usize,
}

impl Place<'_> {
    fn problem(&self, line: usize, what: &str, hint: impl Into<String>) -> Problem {
        Problem::new(format!("{}:{line}: {what}", self.file.display()), hint).at_line(line)
    }

    /// The key is something else than tables.
    pub(crate) fn no_tables(&self, line: usize) -> Problem {
        let hint = format!(
            "each worker begins with a line `[[{KEY}]]`; processes for HTTP are `workers = 4`"
        );
        self.problem(line, &format!("`{KEY}` is not allowed so"), hint)
    }
}

/// Reads all tables; what cannot be read becomes a problem.
pub(crate) fn read(
    place: &Place<'_>,
    tables: &ArrayOfTables,
    problems: &mut Vec<Problem>,
) -> Vec<TypedConsole> {
    let mut read: Vec<TypedConsole> = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let line = table.span().map_or(1, |span| (place.line_of)(span.start));
        if number == TABLES_MAX {
            let what = format!("more than {TABLES_MAX} `[[{KEY}]]`");
            problems.push(place.problem(line, &what, "raise `count` instead of repeating a table"));
            break;
        }
        let Some(console) = (Reader { place, line, problems }).table(table) else { continue };
        if let Some(other) = read.iter().find(|c| c.console.name == console.console.name) {
            let what = format!(
                "`[[{KEY}]]` is called `{}`, as the one of line {}",
                console.console.name, other.line
            );
            problems.push(place.problem(line, &what, "give it a `name` of its own"));
            continue;
        }
        read.push(console);
    }
    read
}

struct Reader<'a, 'b> {
    place: &'a Place<'b>,
    line: usize,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_, '_> {
    fn table(&mut self, table: &Table) -> Option<TypedConsole> {
        let before = self.problems.len();
        for (key, item) in table {
            let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
            let line = span.map_or(self.line, |span| (self.place.line_of)(span.start));
            if !FIELDS.iter().any(|field| field.key == key) {
                self.unknown(key, line);
            } else if item.as_value().is_none() {
                self.refuse(key, line);
            }
        }
        let mut console = Console {
            name: String::new(),
            script: PathBuf::new(),
            arguments: self.get(table, "command", words).unwrap_or_default(),
            folder: self.place.base.to_owned(),
            count: self.get(table, "count", count).unwrap_or(1),
            memory_max: self.get(table, "memory_max", memory).unwrap_or(512 << 20),
            time_max: self.get(table, "time_max", span(0, TIME_MAX)).unwrap_or_default(),
            stop_timeout: self
                .get(table, "stop_timeout", span(1, STOP_TIMEOUT_MAX))
                .unwrap_or(Duration::from_secs(10)),
        };
        let script = self.get(table, "script", text);
        let own_name = self.get(table, "name", name);
        if self.problems.len() > before {
            return None;
        }
        if console.arguments.is_empty() && script.is_none() {
            let what = format!("`[[{KEY}]]` has no `command`");
            let hint = "such as `command = \"messenger:consume async\"`";
            self.problems.push(self.place.problem(self.line, &what, hint));
            return None;
        }
        console.name = own_name.unwrap_or_else(|| derived_name(&console, script.as_deref()));
        Some(TypedConsole {
            line: self.line,
            file: self.place.file.to_owned(),
            base: self.place.base.to_owned(),
            script,
            console,
        })
    }

    fn get<T>(
        &mut self,
        table: &Table,
        key: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = table.get(key)?.as_value()?;
        let got = read(value);
        if got.is_none() {
            let line = value.span().map_or(self.line, |span| (self.place.line_of)(span.start));
            self.refuse(key, line);
        }
        got
    }

    fn refuse(&mut self, key: &str, line: usize) {
        let allowed = FIELDS.iter().find(|f| f.key == key).map_or("", |f| f.allowed);
        let what = format!("`{key}` of a `[[{KEY}]]` is not allowed so");
        self.problems.push(self.place.problem(line, &what, format!("`{key}` takes {allowed}")));
    }

    fn unknown(&mut self, key: &str, line: usize) {
        let known = FIELDS.iter().map(|field| field.key);
        let hint = match names::nearest(key, known.clone()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known here: `{}`", known.collect::<Vec<_>>().join("`, `")),
        };
        let what = format!("unknown key `{KEY}.{key}`");
        self.problems.push(self.place.problem(line, &what, hint));
    }
}

fn words(value: &Value) -> Option<Vec<String>> {
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
        other => value::bytes(other.as_str()?)?,
    };
    MEMORY.contains(&size).then_some(size)
}

/// `0` may stand without a unit, where it is allowed.
fn span(min_ms: u64, max: Duration) -> impl Fn(&Value) -> Option<Duration> {
    move |value| {
        let span = match value {
            Value::Integer(zero) if *zero.value() == 0 => Duration::ZERO,
            other => value::duration(other.as_str()?)?,
        };
        (span >= Duration::from_millis(min_ms) && span <= max).then_some(span)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty() && !text.contains('\0')).map(str::to_owned)
}

fn name(value: &Value) -> Option<String> {
    text(value).filter(|n| n.len() <= NAME_BYTES_MAX && n.bytes().all(is_name_byte))
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// `messenger:consume` → `consume`, `import.php` → `import`.
fn derived_name(console: &Console, script: Option<&str>) -> String {
    let first = console.arguments.first().map(String::as_str).or(script).unwrap_or_default();
    let last = first.rsplit([':', '/']).next().unwrap_or(first).trim_end_matches(".php");
    let clean: String =
        last.chars().filter(char::is_ascii).filter(|c| is_name_byte(*c as u8)).collect();
    let short: String = clean.chars().take(NAME_BYTES_MAX).collect();
    if short.is_empty() { KEY.to_owned() } else { short }
}

/// Finds the scripts, now that the root is known.
pub(crate) fn resolve(typed: &[TypedConsole], settings: &mut Settings) -> Vec<Problem> {
    let mut problems = Vec::new();
    for typed in typed {
        match find_script(typed, &settings.root) {
            Some(script) => {
                settings.consoles.push(Console { script, ..typed.console.clone() });
            }
            None => problems.push(no_script(typed)),
        }
    }
    problems
}

fn find_script(typed: &TypedConsole, root: &Path) -> Option<PathBuf> {
    let above = root.parent().unwrap_or(root);
    let candidates: Vec<PathBuf> = match &typed.script {
        Some(script) => vec![typed.base.join(script)],
        None => [typed.base.as_path(), above, root]
            .iter()
            .flat_map(|folder| CONSOLES.map(|console| folder.join(console)))
            .collect(),
    };
    candidates.into_iter().find(|path| path.is_file()).and_then(|path| path.canonicalize().ok())
}

fn no_script(typed: &TypedConsole) -> Problem {
    let TypedConsole { line, file, script, .. } = typed;
    let what = match script {
        Some(script) => format!("`script = \"{script}\"` names no file"),
        None => format!(
            "`[[{KEY}]]` finds no console: neither {} is there",
            CONSOLES.map(|console| format!("`{console}`")).join(" nor ")
        ),
    };
    let hint = "`script` takes the path of a PHP file, as seen from the settings' file";
    Problem::new(format!("{}:{line}: {what}", file.display()), hint).at_line(*line)
}

/// The section of the manual.
pub(crate) fn section() -> String {
    let mut page = format!(
        "\n## Console workers\n\n### `[[{KEY}]]`\n\n\
         Long-running console commands beside HTTP, such as message consumers: \
         [the guide](guide/consumers.md).\n\
         A table for each command, in the file alone; up to {TABLES_MAX} of them.\n\n\
         ```toml\n[[{KEY}]]\ncommand = \"messenger:consume async --time-limit=3600\"\ncount = 2\n```\n\n\
         | key | allowed | default | |\n|---|---|---|---|\n"
    );
    for Field { key, allowed, default, doc } in FIELDS {
        let _ = writeln!(page, "| `{key}` | {allowed} | {default} | {doc} |");
    }
    page
}
