//! The table as a page of the manual: `docs/settings.md`.

use std::fmt::Write as _;

use crate::schema::console::{self, Field, KEY, KEY_OF_POOL, TABLES_MAX};
use crate::schema::location;
use crate::schema::pool;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::table::SETTINGS;

const INTRODUCTION: &str = "\
<!-- Generated from crates/config/src/schema: UPDATE=1 cargo test -p samovar-config docs -->

# Settings

Each setting can be given in three places. The command line wins over the environment, the
environment over the file, the file over the default.

- **Command line**: `samovar serve [PATH] --workers 8`. A flag given twice: the last one holds,
  unless it says that it can be given several times.
- **Environment**: `SAMOVAR_WORKERS=8`. An empty variable counts as not set; lists are separated by
  commas.
- **File**: `workers = 8` in `samovar.toml` of the working directory, or in the file that
  `--config FILE` or `SAMOVAR_CONFIG` names. Relative paths start at the file's folder.

An unknown name or a value that is not allowed is an error that says where it stands and what is
allowed; all of them are reported at once.

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
answer = \"30s\"
```
";

/// The page `docs/settings.md`.
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

/// What may stand in a `[[console]]`.
fn console_section() -> String {
    let mut page = format!(
        "\n## Console workers\n\n### `[[{KEY}]]`\n\n\
         Long-running console commands beside HTTP, such as message consumers: \
         [the guide](guide/consumers.md).\n\
         A table for each command, in the file alone; up to {TABLES_MAX} of them. A reload applies it. Those of a \
         [pool](guide/pools.md) are called `[[{KEY_OF_POOL}]]`, and stand below its table.\n\n\
         ```toml\n[[{KEY}]]\ncommand = \"messenger:consume async --time-limit=3600\"\ncount = 2\n```\n\n\
         {TABLE}"
    );
    rows(&mut page, &console::FIELDS);
    page
}

/// What may stand in a `[[location]]`.
fn location_section() -> String {
    let mut page = format!(
        "\n## Locations\n\n### `[[{}]]`\n\n\
         What holds for some paths or hosts: [the guide](guide/locations.md).\n\
         Tables in the file alone; up to {} of them. Of each key, the first table that fits and has it counts. A reload \
         applies it.\n\n\
         ```toml\n[[location]]\npath = \"/uploads/*\"\nscripts = false\n```\n\n\
         {TABLE}",
        location::KEY,
        location::TABLES_MAX
    );
    rows(&mut page, &location::FIELDS);
    page
}

/// What may stand in a `[[pool]]`.
fn pool_section() -> String {
    let mut page = format!(
        "\n## Pools\n\n### `[[{}]]`\n\n\
         Applications beside the one that the other settings name, each with workers and a queue of its own: \
         [the guide](guide/pools.md).\n\
         Tables in the file alone; up to {} of them. The first that fits counts. A reload applies what is in them; other \
         names, or another order, wait for a restart.\n\n\
         ```toml\n[[pool]]\nname = \"api\"\nmatch = \"/api/*\"\nroot = \"api/public\"\nworkers = 2\n\n\
         [pool.php]\nmemory_limit = \"512M\"\n\n[pool.limits]\nqueue_max = 64\n```\n\n\
         {TABLE}",
        pool::KEY,
        pool::TABLES_MAX
    );
    rows(&mut page, &pool::FIELDS);
    let own: Vec<String> = pool::OWN.iter().map(|key| format!("`{key}`")).collect();
    let lost: Vec<String> = pool::OF_APPLICATION.iter().map(|key| format!("`{key}`")).collect();
    let _ = write!(
        page,
        "\nFurther keys are these settings, which hold as they stand outside of the tables where a pool does not say \
         otherwise: {}. A pool has the console workers that stand below it, as `[[{}]]`, and no others.\n\nWith a `root` of its own a pool does not take over {}: they are about another application.\n",
        own.join(", "),
        console::KEY_OF_POOL,
        lost.join(", ")
    );
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
        OnReload::Applied => "applies it",
        OnReload::Kept(_) => "a change waits for a restart",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(file, settings_md()).unwrap();
        }
        let stands = std::fs::read_to_string(file).unwrap_or_default();
        assert!(stands == settings_md(), "run: UPDATE=1 cargo test -p samovar-config docs");
    }
}
