//! Words of the command line → the change that is tried, as flags of a server.

use samovar_config::names;
use samovar_config::setting::Setting;
use samovar_config::table::SETTINGS;
use samovar_supervisor::DIRECTIVES as CHECKED;
use std::ffi::OsString;

/// Settings without an effect on one request at a time, or without one in a private server: keys,
/// and tables that end with a dot.
const NOT_TRIED: [&str; 15] = [
    "listen",
    "listen_backlog",
    "control",
    "workers",
    "workers.",
    "admin",
    "admin_",
    "acme.",
    "tls.",
    "log",
    "log_",
    "access_log",
    "insight.",
    "user",
    "group",
];
/// Name of the settings file in a change.
const CONFIG: &str = "config";
const ROOT: &str = "root";
/// Prefix of the table of PHP's directives.
const PHP: &str = "php.";
/// Directives that are proposed for mistyped names, apart from those that doctor checks.
const DIRECTIVES: [&str; 12] = [
    "opcache.preload",
    "opcache.enable_file_override",
    "opcache.huge_code_pages",
    "opcache.save_comments",
    "opcache.file_cache",
    "opcache.use_cwd",
    "opcache.max_file_size",
    "opcache.jit_hot_func",
    "opcache.jit_hot_loop",
    "zend.enable_gc",
    "output_buffering",
    "precision",
];

/// The change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// As typed.
    pub(super) words: Vec<String>,
    /// Root of both servers, if it was typed.
    pub(super) root: Option<String>,
    /// Settings with their values.
    pub(super) settings: Vec<(&'static str, String)>,
    /// Directives of PHP with their values.
    pub(super) directives: Vec<(String, String)>,
    /// Settings file of the server with the change.
    pub(super) config: Option<String>,
}

impl Changes {
    /// Parses words: `SETTING=VALUE`, and the root of both servers. The error has a hint.
    pub(super) fn parse(words: &[String]) -> Result<Changes, String> {
        let mut changes = Changes::default();
        for word in words {
            match pair(word) {
                Some((name, value)) => {
                    changes.add(name, value)?;
                    changes.words.push(word.clone());
                }
                None if changes.root.is_some() => {
                    return Err(format!(
                        "`{}` is no change\nhint: a change is SETTING=VALUE, such as \
                         opcache.jit=tracing",
                        samovar_log::printable(word)
                    ));
                }
                None => changes.root = Some(word.clone()),
            }
        }
        if changes.words.is_empty() {
            return Err("there is no change to try\nhint: name it as SETTING=VALUE, such as \
                        opcache.jit=tracing"
                .to_owned());
        }
        Ok(changes)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name == CONFIG {
            self.config = Some(value.to_owned());
            return Ok(());
        }
        if let Some(setting) = setting(name) {
            let is_refused = NOT_TRIED.iter().any(|one| {
                setting.key == *one || one.ends_with(['.', '_']) && setting.key.starts_with(one)
            });
            if is_refused {
                return Err(format!(
                    "`{}` cannot be tried: requests are sent one at a time to private servers, \
                     where it has no effect\nhint: `samovar plan verify` measures a whole server",
                    setting.key
                ));
            }
            if setting.key == "php" {
                let (name, value) = value.split_once('=').ok_or_else(|| {
                    "`php=` takes a directive and its value\nhint: write the directive alone, such \
                     as memory_limit=256M"
                        .to_owned()
                })?;
                self.directives.push((name.to_owned(), value.to_owned()));
            } else {
                self.settings.push((setting.flag, value.to_owned()));
            }
            return Ok(());
        }
        let directive = name.strip_prefix(PHP).unwrap_or(name);
        let is_table = name.split_once('.').is_some_and(|(table, _)| {
            table != "php" && SETTINGS.iter().any(|one| one.key.starts_with(&format!("{table}.")))
        });
        if is_table {
            return Err(unknown(name));
        }
        self.directives.push((directive.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Returns the flags of the server with the change. `flags` are those of both.
    pub(super) fn flags(&self, flags: &[OsString]) -> Vec<OsString> {
        let replaced: Vec<String> =
            self.settings.iter().map(|(flag, _)| format!("--{flag}=")).collect();
        let mut all: Vec<OsString> = Vec::new();
        let mut given = flags.iter();
        while let Some(flag) = given.next() {
            if flag == "--config" && self.config.is_some() {
                given.next();
                continue;
            }
            let text = flag.to_string_lossy();
            if !replaced.iter().any(|start| text.starts_with(start)) {
                all.push(flag.clone());
            }
        }
        if let Some(file) = &self.config {
            all.extend(["--config".into(), file.into()]);
        }
        let root = self.settings.iter().find(|(flag, _)| *flag == ROOT).map(|(_, value)| value);
        all.extend(root.or(self.root.as_ref()).map(OsString::from));
        let settings = self.settings.iter().filter(|(flag, _)| *flag != ROOT);
        all.extend(settings.map(|(flag, value)| format!("--{flag}={value}").into()));
        all.extend(self.directives.iter().map(|(k, v)| format!("--php={k}={v}").into()));
        all
    }

    /// Returns the flags of the server without the change.
    pub(super) fn flags_before(&self, flags: &[OsString]) -> Vec<OsString> {
        flags.iter().cloned().chain(self.root.as_ref().map(OsString::from)).collect()
    }
}

/// Splits a change; `None`: the word is a path.
fn pair(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]".contains(&byte);
    let is_pair = !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_name);
    is_pair.then_some((name, value))
}

/// Returns the setting with this key or flag.
fn setting(name: &str) -> Option<&'static Setting> {
    let flag = name.trim_start_matches('-');
    SETTINGS.iter().find(|one| one.key == name || one.flag == flag)
}

/// Returns the error for a name that is neither a setting nor a directive.
pub(super) fn unknown(name: &str) -> String {
    let shown = samovar_log::printable(name);
    let keys = SETTINGS.iter().map(|one| one.key).filter(|key| *key != "php");
    let known: Vec<&str> = keys.chain(CHECKED.iter().copied()).chain(DIRECTIVES).collect();
    let near = names::nearest(name, known.iter().copied())
        .or_else(|| names::nearest_key(name).filter(|key| *key != "php"));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "docs/reference/settings.md lists the settings; a directive of PHP needs its \
                 extension"
            .to_owned(),
    };
    format!("neither Samovar nor a loaded extension knows `{shown}`\nhint: {hint}")
}
