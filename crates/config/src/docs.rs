//! Generates the manual page `docs/reference/settings.md` from the table.

use std::fmt::Write as _;

use crate::schema::console::{self, Field, KEY, KEY_OF_POOL, TABLES_MAX};
use crate::schema::intake;
use crate::schema::location;
use crate::schema::pool;
use crate::schema::queue;
use crate::schema::schedule;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::table::SETTINGS;

const INTRODUCTION: &str = "\
<!-- Generated from crates/config/src/schema: UPDATE=1 cargo test -p samovar-config docs -->

# Settings

Each setting can be given in three places. The command line overrides the environment, the
environment overrides the file, and the file overrides the default.

- **Command line**: `samovar serve [PATH] --workers 8`. If a flag is given twice, the last value
  applies. Flags marked as repeatable collect all values.
- **Environment**: `SAMOVAR_WORKERS=8`. An empty variable counts as not set. Separate the items
  of a list by commas.
- **File**: `workers = 8` in `samovar.toml` of the working directory, or in the file of
  `--config FILE` or `SAMOVAR_CONFIG`.

Relative paths of files and folders start at the folder of the settings file, or at the working
directory for flags and variables. Paths of sockets are absolute.

An unknown name or a value that is not allowed is an error. The message contains its place and the
allowed values. All errors are reported at once.

```toml
root = \"public\"
listen = [\"127.0.0.1:8080\", \"[::1]:8080\"]
workers = 8

[php]
memory_limit = \"256M\"
opcache.validate_timestamps = false

[limits]
body_bytes_max = \"64M\"

[timeouts]
response = \"30s\"
```
";

/// Returns the page `docs/reference/settings.md`.
pub fn settings_md() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in Group::ALL {
        let _ = writeln!(page, "\n## {}", group.title());
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            page.push_str(&section(setting));
        }
        match group {
            Group::Serving => page.push_str(&location_section()),
            Group::Php => {
                page.push_str(&console_section());
                page.push_str(&pool_section());
                page.push_str(&queue_section());
                page.push_str(&intake_section());
                page.push_str(&schedule_section());
            }
            _ => {}
        }
    }
    page
}

fn section(setting: &Setting) -> String {
    let mut section = format!("\n### `{}`\n\n{}.\n", file_key(setting), setting.doc);
    if !setting.long.is_empty() {
        let _ = writeln!(section, "{}", setting.long);
    }
    if setting.is_secret {
        section.push_str("It is a [secret](../guide/privileges.md#secrets-in-the-settings).\n");
    }
    let _ = write!(
        section,
        "\n- Flag: {}\n- Environment: `{}`\n- Allowed: {}\n- Default: {}\n- Reload: {}\n",
        flag(setting),
        setting.env(),
        setting.kind.allowed(),
        default(setting),
        on_reload(setting),
    );
    section
}

fn file_key(setting: &Setting) -> String {
    match setting.kind {
        Kind::Pairs { .. } => format!("[{}]", setting.key),
        _ => setting.key.to_owned(),
    }
}

fn flag(setting: &Setting) -> String {
    let Setting { flag, value, .. } = setting;
    match setting.short {
        _ if setting.positional => format!("none: `samovar serve {value}`"),
        Some(short) => format!("`-{short} {value}`, `--{flag} {value}`"),
        None => format!("`--{flag} {value}`"),
    }
}

fn default(setting: &Setting) -> String {
    match setting.default {
        Preset::Text(text) => format!("`{text}`"),
        Preset::Derived(how) => how.to_owned(),
    }
}

/// The keys of a `[[console]]`.
fn console_section() -> String {
    let mut page = format!(
        "\n## Console workers\n\n### `[[{KEY}]]`\n\n\
         Long-running console commands that run in addition to HTTP, such as message consumers: \
         [the guide](../guide/console-workers.md).\n\
         One table per command, only in the file; at most {TABLES_MAX}. A reload applies changes. \
         In a [pool](../guide/pools.md) the tables are `[[{KEY_OF_POOL}]]`, below the table of the \
         pool.\n\n\
         ```toml\n[[{KEY}]]\ncommand = \"messenger:consume async --time-limit=3600\"\n\
         count = 2\n```\n\n\
         {TABLE}"
    );
    rows(&mut page, &console::FIELDS);
    page
}

/// The keys of a `[[location]]`.
fn location_section() -> String {
    let mut page = format!(
        "\n## Locations\n\n### `[[{}]]`\n\n\
         Settings for some paths or hosts: [the guide](../guide/locations.md).\n\
         Only in the file; at most {} tables. For each key, the first matching table that has the \
         key applies. A reload applies changes.\n\n\
         ```toml\n[[location]]\npath = \"/uploads/*\"\nscripts = false\n```\n\n\
         {TABLE}",
        location::KEY,
        location::TABLES_MAX
    );
    rows(&mut page, &location::FIELDS);
    page
}

/// The keys of a `[[pool]]`.
fn pool_section() -> String {
    let mut page = format!(
        "\n## Pools\n\n### `[[{}]]`\n\n\
         Further applications, each with its own workers and queue: \
         [the guide](../guide/pools.md).\n\
         Only in the file; at most {} tables. The first matching table applies. A reload applies \
         changes inside the tables; a change of their names or their order needs a restart.\n\n\
         ```toml\n[[pool]]\nname = \"api\"\nmatch = \"/api/*\"\nroot = \"api/public\"\n\
         workers = 2\n\n\
         [pool.php]\nmemory_limit = \"512M\"\n\n[pool.limits]\nqueue_max = 64\n```\n\n\
         {TABLE}",
        pool::KEY,
        pool::TABLES_MAX
    );
    rows(&mut page, &pool::FIELDS);
    let mut by_group: Vec<(&str, Vec<String>)> = Vec::new();
    for key in pool::OWN {
        let group = key.split_once('.').map_or("no table", |(group, _)| group);
        match by_group.iter_mut().find(|(known, _)| *known == group) {
            Some((_, keys)) => keys.push(format!("`{key}`")),
            None => by_group.push((group, vec![format!("`{key}`")])),
        }
    }
    let own = by_group.iter().map(|(group, keys)| format!("| {group} | {} |\n", keys.join(", ")));
    let own: String = own.collect();
    let lost: Vec<String> = pool::OF_APPLICATION.iter().map(|key| format!("`{key}`")).collect();
    let _ = write!(
        page,
        "\nA pool can also have these settings; a pool that does not set them has the values \
         outside the tables:\n\n| table | keys |\n|---|---|\n{own}\n\
         A pool has only its own console workers, the tables `[[{}]]` \
         below it.\n\n\
         A pool with its own `root` does not inherit {}, because they describe another \
         application.\n",
        console::KEY_OF_POOL,
        lost.join(", ")
    );
    page
}

/// The keys of a `[[queue]]`.
fn queue_section() -> String {
    let mut page = format!(
        "\n## Background work\n\n### `[[{}]]`\n\n\
         Queues of jobs, each with its own workers: [the guide](../guide/queues.md).\n\
         Only in the file; at most {} tables, together with the pools. A change needs a restart, \
         except for the settings of the pool that a reload applies.\n\n\
         ```toml\n[[queue]]\nname = \"emails\"\nhandler = \"jobs/emails.php\"\n\
         workers = 2\nbatch = 10\n```\n\n\
         {TABLE}",
        queue::KEY,
        pool::TABLES_MAX
    );
    rows(&mut page, &queue::FIELDS);
    page.push_str(
        "\nA queue can also have the settings of a [pool](../guide/pools.md), except `root`: \
         `workers` (default `1`), `[queue.php]`, `[queue.limits]` and others. It inherits the \
         values outside the tables as a pool with its own `root` does.\n",
    );
    page
}

/// The keys of an `[[intake]]`.
fn intake_section() -> String {
    let mut page = format!(
        "\n### `[[{}]]`\n\n\
         Requests that the server stores as jobs without PHP: \
         [the guide](../guide/queues.md#take-requests-without-php).\n\
         Only in the file; at most {} tables. The first matching table applies. A reload applies \
         changes.\n\n\
         ```toml\n[[intake]]\nmatch = \"POST /track\"\nqueue = \"clicks\"\n```\n\n\
         {TABLE}",
        intake::KEY,
        intake::TABLES_MAX
    );
    rows(&mut page, &intake::FIELDS);
    page
}

/// The keys of a `[[schedule]]`.
fn schedule_section() -> String {
    let mut page = format!(
        "\n### `[[{}]]`\n\n\
         Commands and jobs that run at certain times: [the guide](../guide/schedules.md).\n\
         Only in the file; at most {} tables. A reload of all pools applies changes.\n\n\
         ```toml\n[[schedule]]\nname = \"nightly-report\"\ncron = \"30 2 * * *\"\n\
         timezone = \"Europe/Berlin\"\ncommand = \"app:report\"\n```\n\n\
         {TABLE}",
        schedule::KEY,
        schedule::TABLES_MAX
    );
    rows(&mut page, &schedule::FIELDS);
    page
}

const TABLE: &str = "| key | allowed | default | |\n|---|---|---|---|\n";

fn rows(page: &mut String, fields: &[Field]) {
    for Field { key, allowed, default, doc } in fields {
        let _ = writeln!(page, "| `{key}` | {allowed} | {default} | {doc} |");
    }
}

fn on_reload(setting: &Setting) -> &'static str {
    match setting.on_reload {
        OnReload::Applied => "applied",
        OnReload::Kept(_) => "needs a restart",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_page_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");
        let page = samovar_testkit::markdown::wrapped(&settings_md());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(file, &page).unwrap();
        }
        let found = std::fs::read_to_string(file).unwrap_or_default();
        assert!(found == page, "docs/reference/settings.md is old\nhint: make reference");
    }
}
