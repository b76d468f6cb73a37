//! The table as a page of the manual: `docs/settings.md`.

use std::fmt::Write as _;

use crate::consoles;
use crate::setting::{Group, Kind, Preset, Setting};
use crate::table::SETTINGS;

const INTRODUCTION: &str = "\
<!-- Generated from crates/config/src/table.rs: UPDATE=1 cargo test -p samovar-config docs -->

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

/// The whole page.
pub fn settings_md() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in Group::ALL {
        let _ = writeln!(page, "\n## {}", group.title());
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            page.push_str(&section(setting));
        }
        if group == Group::Php {
            page.push_str(&consoles::section());
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
        "\n- Flag: {}\n- Environment: `{}`\n- Allowed: {}\n- Default: {}\n",
        flag(setting),
        setting.env(),
        setting.kind.allowed(),
        default(setting),
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
