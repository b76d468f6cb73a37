//! `samovar dev`: runs the server of crates/server in development mode.
//!
//! The settings are those of `samovar serve`, with other defaults, which also replace the values of
//! the environment and the file: a file for production fits. Flags replace them.

mod trust;
mod trust_plan;

use crate::arguments::{settings, with_settings};
use crate::init::Project;
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use crate::usage_error::Early;
use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_config::sources::{CONFIG_ENV, DEFAULT_FILE};
use samovar_config::{Settings, Sources, names};
use samovar_server::Predecessor;
use samovar_server::development::{DevelopmentOptions, LocalTls};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const SHORT_HELP: &str = "--help explains each setting.";

const HELP: &str = "\
Watches the project. After a change it boots the application again and has open pages load again. If
the new version does not boot, the last good one keeps serving, and terminal and browser show why.
Listens on this machine only. samovar.toml is used if it exists; these settings differ:

  listen = 127.0.0.1:8080, or the next free port; workers = 4; no access log
  relink = false
  opcache.validate_timestamps = 1, opcache.revalidate_freq = 0
  display_errors = 1, display_startup_errors = 1, error_reporting = E_ALL

Flags replace these values. docs/guide/development.md explains it, and step debugging with Xdebug.

Examples:
  samovar dev                          serve the project in this folder
  samovar dev --editor phpstorm        links of error pages open PhpStorm
  samovar dev --ignore fixtures        do not watch folders with this name
  samovar dev -l 127.0.0.1:9000 -d xdebug.mode=debug
  samovar dev --tls                    https://localhost:8080, with a certificate of your own
  samovar dev trust                    have browsers and curl accept that certificate

Exit codes: 0 stopped by request, 1 failed, 2 wrong flags or settings.";

/// Settings whose defaults differ, by flag.
const DEFAULTS: [(&str, &str); 7] = [
    ("workers", "4"),
    ("log", "-"),
    ("log-format", "text"),
    ("access-log", "off"),
    // A boot happens after each edit, and relinking takes longer than it saves.
    ("relink", "false"),
    ("insight-enabled", "true"),
    ("insight-slow-log", "off"),
];

/// Directives of PHP whose values differ.
const DIRECTIVES: [&str; 5] = [
    "opcache.validate_timestamps=1",
    "opcache.revalidate_freq=0",
    "display_errors=1",
    "display_startup_errors=1",
    "error_reporting=32767",
];

/// Variable with the editor.
const EDITOR_ENV: &str = "SAMOVAR_DEV_EDITOR";

/// Links to source lines, by name of the editor; the first is the default.
const EDITORS: [(&str, &str); 6] = [
    ("vscode", "vscode://file/%f:%l"),
    ("vscodium", "vscodium://file/%f:%l"),
    ("cursor", "cursor://file/%f:%l"),
    ("phpstorm", "phpstorm://open?file=%f&line=%l"),
    ("sublime", "subl://open?url=file://%f&line=%l"),
    ("none", ""),
];

/// The first port, and the number of ports that are tried.
const PORTS: std::ops::Range<u16> = 8080..8100;

/// The server to run.
#[derive(Debug)]
struct Dev {
    settings: Settings,
    sources: Sources,
}

fn define() -> Command {
    let command = Command::new("dev").about("Serves a project that is being developed");
    let editor = Arg::new("editor").long("editor").value_name("NAME|URL");
    let ignore = Arg::new("ignore").long("ignore").value_name("NAME").action(ArgAction::Append);
    with_settings(command.after_help(SHORT_HELP).after_long_help(HELP))
        .arg(
            editor
                .value_parser(editor_link)
                .overrides_with("editor")
                .help_heading("Development")
                .help(
                    "Editor of the links on error pages: vscode, vscodium, cursor, phpstorm, \
                     sublime, none, or a URL with %f (file) and %l (line) [default: vscode; \
                     environment: SAMOVAR_DEV_EDITOR]",
                ),
        )
        .arg(
            ignore
                .help_heading("Development")
                .help("Do not watch folders with this name (repeatable)"),
        )
        .arg(
            Arg::new("tls")
                .long("tls")
                .action(ArgAction::SetTrue)
                .overrides_with("tls")
                .conflicts_with("tls-certificates")
                .help_heading("Development")
                .help(
                    "Serve HTTPS for localhost, 127.0.0.1 and ::1, with a certificate of an \
                     authority of your own",
                ),
        )
        .subcommand(trust::command())
        .args_conflicts_with_subcommands(true)
}

fn editor_link(text: &str) -> Result<String, String> {
    let known = EDITORS.iter().find(|(name, _)| *name == text).map(|(_, link)| *link);
    match known {
        Some(link) => Ok(link.to_owned()),
        None if text.contains("%f") && text.contains("://") => Ok(text.to_owned()),
        None => {
            let names: Vec<_> = EDITORS.iter().map(|(name, _)| *name).collect();
            Err(format!("it takes {}, or a URL with %f and %l", names.join(", ")))
        }
    }
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    if let Some(("trust", matches)) = matches.subcommand() {
        return Ok(Box::new(trust::parse(matches)));
    }
    Ok(Box::new(parse(matches, sources)?))
}

fn parse(matches: &ArgMatches, sources: Sources) -> Result<Dev, Early> {
    let folder = sources.folder().to_owned();
    let is_given = |flag: &str| matches.get_many::<String>(flag).is_some();
    let mut sources = sources;
    for (flag, value) in DEFAULTS.into_iter().filter(|(flag, _)| !is_given(flag)) {
        sources = sources.flag(names::by_flag(flag), value);
    }
    for directive in DIRECTIVES {
        sources = sources.flag(names::by_flag("php"), directive);
    }
    let tls = matches.get_flag("tls").then(LocalTls::open).transpose();
    let tls = tls.map_err(|error| Early::Wrong(format!("samovar: {error:#}")))?;
    if !is_given("listen") {
        let scheme = if tls.is_some() { "https://" } else { "" };
        sources = sources.flag(names::by_flag("listen"), scheme.to_owned() + &free_address());
    }
    if let Some(tls) = &tls {
        // The file has certificate and key, and replaces those of samovar.toml.
        let file = tls.certificate();
        for flag in ["tls-certificates", "tls-keys"] {
            sources = sources.flag(names::by_flag(flag), file.to_string_lossy());
        }
    }
    let project = Project::of(&folder).ok();
    let has_file = matches.contains_id("config")
        || folder.join(DEFAULT_FILE).exists()
        || std::env::var_os(CONFIG_ENV).is_some();
    if let Some(project) = project.as_ref().filter(|_| !has_file && !is_given("root")) {
        sources = sources.flag(names::by_flag("root"), project.root.to_string_lossy());
    }
    // The flags come last, so that they replace these values.
    let sources = settings(matches, sources);
    let mut settings = sources.resolve()?;
    let ignored = matches.get_many::<String>("ignore").into_iter().flatten().cloned().collect();
    let options = DevelopmentOptions {
        project: watched(&folder, &settings.root),
        title: project.map(|project| project.framework.title().to_owned()),
        ignored,
        editor: editor(matches)?,
        tls,
    };
    samovar_server::development::begin(&mut settings, options)
        .map_err(|error| Early::Wrong(format!("samovar: {error:#}")))?;
    Ok(Dev { settings, sources })
}

/// Returns the editor's link of the flag, the environment, or the default.
fn editor(matches: &ArgMatches) -> Result<String, Early> {
    if let Some(link) = matches.get_one::<String>("editor") {
        return Ok(link.clone());
    }
    let typed = std::env::var(EDITOR_ENV).ok().filter(|typed| !typed.is_empty());
    editor_link(typed.as_deref().unwrap_or(EDITORS[0].0)).map_err(|why| {
        Early::Wrong(format!("samovar: invalid value in `{EDITOR_ENV}`\nhint: {why}"))
    })
}

/// Returns the first usual address on which no program listens.
fn free_address() -> String {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = PORTS.clone().find(is_free).unwrap_or(PORTS.start);
    format!("127.0.0.1:{port}")
}

/// Returns the folder to watch: the working directory, unless the root is elsewhere. A public
/// folder's code is usually next to it.
fn watched(folder: &Path, root: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_public = root.file_name().is_some_and(|name| {
        ["public", "web", "htdocs", "public_html", "www"].iter().any(|known| name == *known)
    });
    match root.parent() {
        _ if root.starts_with(&folder) => folder,
        Some(parent) if is_public => parent.to_owned(),
        _ => root.to_owned(),
    }
}

impl Run for Dev {
    fn run(&self, predecessor: Option<&Predecessor>) -> Result<ExitCode> {
        samovar_server::run(self.settings.clone(), self.sources.clone(), predecessor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_are_names_or_links() {
        assert_eq!(editor_link("phpstorm"), Ok("phpstorm://open?file=%f&line=%l".to_owned()));
        assert_eq!(editor_link("none"), Ok(String::new()));
        assert_eq!(editor_link("x://%f?%l"), Ok("x://%f?%l".to_owned()));
        assert!(editor_link("emacs").is_err_and(|why| why.contains("vscode, ")));
    }

    #[test]
    fn folder_with_the_code_is_watched() {
        for (folder, root, expected) in [
            ("/nowhere/shop", "/nowhere/shop/public", "/nowhere/shop"),
            ("/nowhere/shop", "/nowhere/shop", "/nowhere/shop"),
            ("/nowhere", "/elsewhere/shop/public", "/elsewhere/shop"),
            ("/nowhere", "/elsewhere/shop", "/elsewhere/shop"),
        ] {
            let found = watched(Path::new(folder), Path::new(root));
            assert_eq!(found, Path::new(expected), "{folder} {root}");
        }
    }

    #[test]
    fn defaults_are_replaced_by_flags_only() {
        let parsed = |args: &[&str], file: &str| {
            let folder = tempfile(file);
            let words = std::iter::once("dev").chain(args.iter().copied());
            let matches = define().try_get_matches_from(words).expect("flags");
            let parsed = parse(&matches, Sources::new(&folder));
            std::fs::remove_dir_all(&folder).expect("our folder");
            parsed
        };
        let file = "workers = 32\nlisten = [\":80\"]\n[php]\ndisplay_errors = false\n";
        let dev = parsed(&[], file).expect("settings");
        assert_eq!((dev.settings.workers.min, dev.settings.workers.max), (4, 4));
        assert_eq!(dev.settings.php["display_errors"], "1");
        let dev = parsed(&["-w", "2", "-d", "display_errors=0", "-l", "[::1]:0"], file);
        let dev = dev.expect("settings");
        assert_eq!(dev.settings.workers.max, 2);
        assert_eq!(dev.settings.php["display_errors"], "0");
        let refused = parsed(&["-l", ":8080"], file).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("`0.0.0.0:8080`, which other machines can reach"), "{refused}");
    }

    fn tempfile(toml: &str) -> PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("samovar-dev-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("public")).expect("a folder");
        std::fs::write(folder.join("public/index.php"), "<?php").expect("our folder");
        std::fs::write(folder.join("samovar.toml"), toml).expect("our folder");
        folder
    }
}
