//! Pools of php-fpm → draft.

use super::draft::{Block, Draft, Entries, Level, Value};
use super::input::{self, FromError};
use super::origin::Origin;
use super::shared::{self, unquoted};
use super::units;
use std::path::{Path, PathBuf};

/// Maximum number of workers of Samovar.
const WORKERS_MAX: u64 = 1024;
/// Maximum number of pools.
const POOLS_MAX: usize = 256;
/// Maximum number of files with the files that they include.
const FILES_MAX: usize = 256;

const HINT: &str = "check the file with `php-fpm -t`";

/// A line of a pool.
#[derive(Clone, Debug)]
struct Line {
    /// `pm.max_children`, `env`.
    key: String,
    /// Text in brackets: `env[TMP]`.
    name: Option<String>,
    value: String,
    origin: Origin,
}

/// A pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    name: String,
    pub(crate) origin: Origin,
    lines: Vec<Line>,
}

impl Pool {
    fn line(&self, key: &str) -> Option<&Line> {
        // php-fpm uses the last one.
        self.lines.iter().rev().find(|line| line.key == key && line.name.is_none())
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.line(key).map(|line| line.value.as_str())
    }

    /// Whether an address of nginx is that of this pool.
    pub(crate) fn listens_at(&self, upstream: &str) -> bool {
        let bare = |text: &str| text.trim_start_matches("unix:").trim_end_matches(':').to_owned();
        let Some(listen) = self.value("listen") else { return false };
        let port = |text: &str| text.rsplit(':').next().unwrap_or_default().to_owned();
        let is_port = |text: &str| !text.starts_with('/') && !text.starts_with("unix:");
        bare(upstream) == bare(listen)
            || (is_port(upstream) && is_port(listen) && port(upstream) == port(listen))
    }
}

/// Reads the pools of a file, and converts `[global]`.
pub(crate) fn read(draft: &mut Draft, file: &Path, text: &str) -> Result<Vec<Pool>, FromError> {
    let mut pools = Vec::new();
    let mut files = vec![file.to_owned()];
    section(draft, file, text, &mut pools, &mut files)?;
    Ok(pools)
}

fn section(
    draft: &mut Draft,
    file: &Path,
    text: &str,
    pools: &mut Vec<Pool>,
    files: &mut Vec<PathBuf>,
) -> Result<(), FromError> {
    let mut is_global = true;
    for (number, raw) in text.lines().enumerate() {
        let line = number as u32 + 1;
        let code = raw.trim();
        if code.is_empty() || code.starts_with([';', '#']) {
            continue;
        }
        let origin = Origin::new(file, line, code);
        if let Some(name) = code.strip_prefix('[') {
            let Some((name, _)) = name.split_once(']') else {
                return Err(FromError::syntax(file, line, "a section has no `]`", HINT));
            };
            is_global = name.eq_ignore_ascii_case("global");
            if !is_global {
                if pools.len() == POOLS_MAX {
                    return Err(FromError::syntax(file, line, "more than 256 pools", HINT));
                }
                let (name, lines) = (name.to_owned(), Vec::new());
                pools.push(Pool { name, origin, lines });
            }
            continue;
        }
        let Some((key, value)) = code.split_once('=') else {
            return Err(FromError::syntax(file, line, "a line has no `=`", HINT));
        };
        let line = parsed(key.trim(), value, origin);
        if line.key == "include" {
            for included in input::matching(file, &line.value) {
                if files.contains(&included) || files.len() == FILES_MAX {
                    return Err(FromError::syntax(
                        file,
                        line.origin.line,
                        "files include each other, or there are too many",
                        HINT,
                    ));
                }
                let text = input::read(&included)?;
                files.push(included.clone());
                section(draft, &included, &text, pools, files)?;
            }
            continue;
        }
        match pools.last_mut().filter(|_| !is_global) {
            Some(pool) => pool.lines.push(line),
            None => global(draft, &line),
        }
    }
    Ok(())
}

fn parsed(key: &str, value: &str, origin: Origin) -> Line {
    let value = value.trim();
    let is_quoted = value.starts_with(['"', '\'']);
    // A comment begins at a semicolon outside of quotes.
    let value = if is_quoted { value } else { value.split(';').next().unwrap_or(value).trim() };
    let value = unquoted(value).to_owned();
    let (key, name) = match key.split_once('[') {
        Some((key, name)) => (key.trim(), Some(name.trim_end_matches(']').to_owned())),
        None => (key, None),
    };
    Line { key: key.to_owned(), name, value, origin }
}

fn global(draft: &mut Draft, line: &Line) {
    let Line { key, value, origin, .. } = line;
    match key.as_str() {
        "error_log" => {
            let target = match value.as_str() {
                "syslog" => String::from("syslog"),
                "/proc/self/fd/2" | "/dev/stderr" => String::from("-"),
                file => file.to_owned(),
            };
            draft.set("", "log", Value::Text(target), origin);
        }
        "log_level" => {
            let level = match value.as_str() {
                "alert" | "error" => "error",
                "warning" => "warn",
                "debug" => "debug",
                _ => "info",
            };
            draft.set("", "log_level", Value::text(level), origin);
        }
        "process_control_timeout" if units::milliseconds(value, 1_000) != Some(0) => {
            shared::time(draft, ("timeouts", "drain"), value, 1_000, origin);
        }
        "process.max" => draft.missing(origin, "the limit is that of `workers` of each pool"),
        "daemonize" | "pid" => draft.built_in(origin, "the server stays in the foreground"),
        "rlimit_files" | "rlimit_core" => {
            draft.missing(origin, "set `limits.open_files` and `limits.core_bytes`");
        }
        _ => draft.built_in(origin, "not needed"),
    }
}

/// Destination of a pool's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The general settings.
    General,
    /// The `[[pool]]` with this number among the blocks.
    Block(usize),
}

struct Writer<'a> {
    draft: &'a mut Draft,
    destination: Destination,
}

impl Writer<'_> {
    fn entries(&mut self) -> &mut Entries {
        match self.destination {
            Destination::General => &mut self.draft.settings,
            Destination::Block(number) => &mut self.draft.blocks[number].entries,
        }
    }

    fn set(&mut self, table: &'static str, key: &str, value: Value, origin: &Origin) {
        if let Some(other) = self.entries().set(table, key, value, origin) {
            let advice = format!("the value of {} applies", other.place());
            self.draft.note(Level::Differs, origin, advice);
        }
    }

    /// Sets a setting that only the whole server has.
    fn server(&mut self, table: &'static str, key: &str, value: Value, origin: &Origin) {
        if self.destination == Destination::General {
            self.draft.set(table, key, value, origin);
        } else {
            self.draft.missing(origin, "it is a setting of the whole server");
        }
    }

    fn time(&mut self, table: &'static str, key: &str, line: &Line) {
        match units::milliseconds(&line.value, 1_000) {
            Some(time) => self.set(table, key, Value::Text(units::time(time)), &line.origin),
            None => self.draft.missing(&line.origin, "it is no time"),
        }
    }
}

/// Converts a pool. `is_alone`: no web server is converted, so the pool's socket is an address.
pub(crate) fn convert(draft: &mut Draft, pool: &Pool, destination: Destination, is_alone: bool) {
    let mut writer = Writer { draft: &mut *draft, destination };
    if is_alone {
        listen(&mut writer, pool);
    }
    workers(&mut writer, pool);
    let mut variables = Block::location(&[], &[], &pool.origin);
    for line in &pool.lines {
        one(&mut writer, pool, line, &mut variables, is_alone);
    }
    if is_alone && draft.settings.get("", "root").is_none() {
        let folder = pool.value("chdir").filter(|folder| *folder != "/");
        if let Some((folder, line)) = folder.zip(pool.line("chdir")) {
            draft.set("", "root", Value::text(folder), &line.origin);
            draft.differs(&line.origin, "check `root`: it is the document root of the site");
        } else {
            let advice = "set `root` to the document root, or pass the web server's file too";
            draft.missing(&pool.origin, advice);
        }
    }
    draft.push(variables);
}

fn listen(writer: &mut Writer<'_>, pool: &Pool) {
    let Some(line) = pool.line("listen") else { return };
    let value = line.value.replace("$pool", &pool.name);
    let address = if value.starts_with('/') {
        let mode = pool.value("listen.mode").map(|mode| format!("?mode={mode}"));
        format!("fcgi-unix:{value}{}", mode.unwrap_or_default())
    } else if value.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("fcgi://127.0.0.1:{value}")
    } else {
        format!("fcgi://{value}")
    };
    writer.draft.add("", "listen", &address, &line.origin);
}

/// `pm` and its numbers.
fn workers(writer: &mut Writer<'_>, pool: &Pool) {
    let number = |key: &str| pool.value(key).and_then(|value| value.parse::<u64>().ok());
    let Some(line) = pool.line("pm.max_children") else { return };
    let Some(children) = number("pm.max_children").filter(|children| *children > 0) else {
        return writer.draft.missing(&line.origin, "it is no number");
    };
    let max = children.min(WORKERS_MAX);
    if max < children {
        writer.draft.differs(&line.origin, format!("the maximum is {WORKERS_MAX} workers"));
    }
    let min = match pool.value("pm") {
        Some("dynamic") => number("pm.min_spare_servers").or(number("pm.start_servers")),
        Some("ondemand") => Some(1),
        _ => None,
    };
    match min.map(|min| min.max(1)) {
        Some(min) if min < max => {
            let origin = pool.line("pm.min_spare_servers").or(pool.line("pm")).unwrap_or(line);
            let origin = origin.origin.clone();
            writer.set("workers", "min", Value::plain(min), &origin);
            writer.set("workers", "max", Value::plain(max), &line.origin);
        }
        _ => {
            writer.set("", "workers", Value::plain(max), &line.origin);
        }
    }
    if let Some(line) =
        pool.line("pm.process_idle_timeout").filter(|_| min.is_some_and(|min| min < max))
    {
        writer.time("workers", "idle_max", line);
    }
}

fn one(writer: &mut Writer<'_>, pool: &Pool, line: &Line, variables: &mut Block, is_alone: bool) {
    let Line { key, name, value, origin } = line;
    let value = value.replace("$pool", &pool.name);
    let number = || Value::plain(&value);
    match (key.as_str(), name) {
        ("php_value" | "php_flag" | "php_admin_value" | "php_admin_flag", Some(name)) => {
            writer.set("php", name, shared::php_value(&value), origin);
        }
        ("env", Some(name)) => environment(writer, variables, (name, &value), origin),
        ("user" | "group", None) => writer.server("", key, Value::Text(value), origin),
        ("listen.backlog", None) if is_alone && value.parse::<u32>().is_ok_and(|n| n > 0) => {
            writer.server("", "listen_backlog", number(), origin);
        }
        ("listen.allowed_clients", None) if is_alone => {
            for client in value.split(',').map(str::trim) {
                writer.draft.add("", "trusted_proxies", client, origin);
            }
        }
        ("listen.owner" | "listen.group", None) if is_alone => {
            writer.draft.differs(origin, "the socket belongs to `user` and `group`");
        }
        ("pm.max_requests", None) => writer.set("limits", "requests_max", number(), origin),
        ("pm.status_path", None) if is_alone => {
            writer.server("fastcgi", "status_path", Value::Text(value), origin);
        }
        ("ping.path", None) if is_alone => {
            writer.server("fastcgi", "ping_path", Value::Text(value), origin);
        }
        ("ping.response", None) if is_alone => {
            writer.server("fastcgi", "ping_response", Value::Text(value), origin);
        }
        ("pm.status_path" | "ping.path" | "ping.response" | "pm.status_listen", None) => {
            writer.draft.differs(origin, "use `admin`: /metrics, /health and /ready");
        }
        ("request_terminate_timeout", None) => writer.time("timeouts", "request", line),
        ("request_slowlog_timeout", None) if units::milliseconds(&value, 1_000) == Some(0) => {
            writer.draft.built_in(origin, "not needed");
        }
        ("request_slowlog_timeout", None) => {
            let time = units::milliseconds(&value, 1_000).map_or(value, units::time);
            writer.server("insight", "slow_request", Value::Text(time), origin);
        }
        ("slowlog", None) => writer.server("insight", "slow_log", Value::Text(value), origin),
        ("rlimit_files", None) => writer.set("limits", "open_files", number(), origin),
        ("rlimit_core", None) if value == "unlimited" => {
            writer.draft.built_in(origin, "the limit is that of the server");
        }
        ("rlimit_core", None) => writer.set("limits", "core_bytes", number(), origin),
        ("process.priority" | "priority", None) => match value.parse::<i64>() {
            Ok(nice @ 0..=19) => writer.set("limits", "nice", Value::plain(nice), origin),
            _ => writer.draft.missing(origin, "the niceness is 0 to 19"),
        },
        ("access.log", None) => {
            writer.server("", "access_log", Value::Text(value), origin);
        }
        ("access.format", None) => {
            writer
                .draft
                .differs(origin, "the format is `combined` or `json` (`access_log_format`)");
        }
        ("chroot", None) => {
            writer.draft.missing(origin, "use `sandbox.read` and `sandbox.write`");
        }
        ("listen", None) if !is_alone => {
            writer.draft.built_in(origin, "the server itself takes the requests");
        }
        ("security.limit_extensions", None) if value == ".php" => {
            writer.draft.built_in(origin, "only .php files run");
        }
        ("security.limit_extensions", None) => {
            writer.draft.missing(origin, "only .php files run: rename the others");
        }
        ("request_slowlog_trace_depth", None) => {
            writer
                .draft
                .missing(origin, "slow requests are logged without a trace: use `samovar profile`");
        }
        ("clear_env", None) => clear_env(writer, &value, origin),
        ("prefix", None) => writer.draft.missing(origin, "write absolute paths"),
        _ => writer.draft.built_in(origin, "not needed"),
    }
}

fn clear_env(writer: &mut Writer<'_>, value: &str, origin: &Origin) {
    if matches!(value, "no" | "0" | "off" | "false") {
        writer.draft.built_in(origin, "the server's environment reaches PHP");
    } else {
        writer
            .draft
            .differs(origin, "the server's environment reaches PHP: start it with a clean one");
    }
}

fn environment(
    writer: &mut Writer<'_>,
    variables: &mut Block,
    (name, value): (&str, &str),
    origin: &Origin,
) {
    if value.starts_with('$') {
        writer.draft.built_in(origin, "the server's environment reaches PHP");
    } else if let Destination::Block(_) = writer.destination {
        writer.draft.missing(origin, "set `variables` in a [[location]] with the pool's host");
    } else {
        shared::variable(writer.draft, variables, name, value, origin);
    }
}
