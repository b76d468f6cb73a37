//! `samovar init`: writes a commented settings file that fits the project, and prints the next
//! commands.
//!
//! `project.rs` recognizes the framework from composer.json and the files, `template.rs` writes the
//! settings, `advice.rs` explains the execution model. It runs no code of the project.

mod advice;
mod project;
#[cfg(test)]
mod sample;
mod template;

use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
pub(crate) use project::Project;
use samovar_config::Sources;
use samovar_config::sources::DEFAULT_FILE;
use samovar_server::{Predecessor, terminal};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Recognizes Symfony, Laravel, Slim, WordPress, a front controller, and plain scripts, by
composer.json and by their files. It reads files, and runs no code of the project.

Examples:
  samovar init                write samovar.toml for the project in this folder
  samovar init /srv/shop      write /srv/shop/samovar.toml
  samovar init --print        print the settings, write nothing

Exit codes: 0 written, 1 not written, 2 wrong flags.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

#[derive(Debug)]
struct Init {
    folder: PathBuf,
    force: bool,
    print: bool,
}

fn define() -> Command {
    let switch = |name: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name)
    };
    let folder = Arg::new("folder").value_name("FOLDER").value_parser(value_parser!(PathBuf));
    Command::new("init")
        .about("Writes a settings file that fits the project in a folder")
        .after_help(HELP)
        .arg(folder.default_value(".").help("Folder of the project"))
        .arg(switch("force").help("Overwrite an existing samovar.toml"))
        .arg(switch("print").help("Print the settings, and write nothing"))
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default();
    let (force, print) = (matches.get_flag("force"), matches.get_flag("print"));
    Ok(Box::new(Init { folder, force, print }))
}

impl Run for Init {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let project = Project::of(&self.folder)?;
        let settings = template::settings(&project);
        if self.print {
            terminal::print(&settings)?;
            return Ok(ExitCode::SUCCESS);
        }
        let is_current = self.folder == Path::new(".");
        let file =
            if is_current { PathBuf::from(DEFAULT_FILE) } else { self.folder.join(DEFAULT_FILE) };
        write_settings(&file, &settings, self.force)?;
        // The exit code says whether the file is written.
        if let Err(error) = terminal::print(&advice::text(&project, &self.folder, &file)) {
            terminal::complain(&format!("samovar: {}", terminal::words(&error)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the file. Without `force` it must not exist. With it, the former file stays until the new
/// one is complete: the disk may be full.
pub(crate) fn write_settings(file: &Path, text: &str, force: bool) -> Result<()> {
    let new = file.with_extension(format!("toml.{}", std::process::id()));
    let place = if force { &new } else { file };
    let what = || format!("cannot write `{}`", file.display());
    let opened = OpenOptions::new().write(true).create_new(true).open(place);
    let mut open = match opened {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !force => {
            bail!("`{}` exists\nhint: pass --force to overwrite it", file.display())
        }
        opened => opened.with_context(what)?,
    };
    let mut written = open.write_all(text.as_bytes());
    if force {
        written = written.and_then(|()| std::fs::rename(place, file));
    }
    written.with_context(what).inspect_err(|_| {
        // No half-written file stays. A second error would hide the first.
        let _ = std::fs::remove_file(place);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_is_overwritten_only_by_force() {
        let folder = std::env::temp_dir().join(format!("samovar-init-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("samovar.toml");
        std::fs::write(&file, "mine, and longer").expect("our own folder");
        let error = write_settings(&file, "new", false).unwrap_err().to_string();
        assert!(error.contains("exists\nhint: pass --force"), "{error}");
        let read = || std::fs::read_to_string(&file).expect("our own file");
        assert_eq!(read(), "mine, and longer");
        write_settings(&file, "new", true).expect("our own file");
        assert_eq!(read(), "new");
        assert_eq!(folder.read_dir().expect("a folder").count(), 1, "no temporary file is left");
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
