//! `samovar dev trust`: adds the authority of `samovar dev --tls` to the lists of the system and of
//! browsers, or removes it.

use super::trust_plan::{self, DATABASES_MAX, Facts, Step};
use crate::subcommand::Run;
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use samovar_server::Predecessor;
use samovar_server::development::LocalTls;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
The authority is created in ~/.local/share/samovar/dev, readable only by you. It can issue
certificates for localhost, 127.0.0.0/8 and ::1 only. Without root, the commands for the system's
list are printed, not run.

Examples:
  samovar dev trust             install it for browsers, and print the rest
  samovar dev trust --print     only print the commands
  samovar dev trust --remove    remove the authority from all lists";

/// Places of databases of Chromium and of profiles of Firefox, below the home folder.
const DATABASES: [&str; 1] = [".pki/nssdb"];
const PROFILES: [&str; 3] =
    [".mozilla/firefox", ".config/mozilla/firefox", "snap/firefox/common/.mozilla/firefox"];

/// Options of the command.
#[derive(Debug)]
pub(super) struct TrustOptions {
    print: bool,
    remove: bool,
}

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        let flag = Arg::new(name).long(name).action(ArgAction::SetTrue);
        flag.overrides_with(name).help(help)
    };
    Command::new("trust")
        .about("Has browsers and curl accept the certificate of samovar dev --tls")
        .after_help(HELP)
        .arg(flag("print", "Print the commands, run none"))
        .arg(flag("remove", "Remove the authority from all lists"))
}

pub(super) fn parse(matches: &ArgMatches) -> TrustOptions {
    TrustOptions { print: matches.get_flag("print"), remove: matches.get_flag("remove") }
}

impl Run for TrustOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let user_id = rustix::process::geteuid();
        let is_of_other = std::env::var("SUDO_UID").is_ok_and(|id| id != "0");
        if user_id.is_root() && is_of_other {
            bail!(
                "sudo would create and trust an authority of root, not yours\nhint: run `samovar \
                 dev trust` without sudo; it prints the commands that need root"
            );
        }
        let tls = if self.remove { LocalTls::find()? } else { LocalTls::open()? };
        let facts = facts(&tls, user_id.as_raw(), self.remove);
        let plan = trust_plan::plan(&facts);
        println!("authority {} ({})", facts.authority.display(), facts.name);
        let (own, of_root): (Vec<_>, Vec<_>) =
            plan.steps.iter().partition(|step| user_id.is_root() || !step.needs_root);
        for step in own {
            if self.print {
                println!("    {step}");
            } else {
                run(step, self.remove)?;
            }
        }
        if !of_root.is_empty() {
            println!("run for the list of the system, which needs root:");
            for step in of_root {
                println!("    sudo {step}");
            }
        }
        for hint in plan.hints {
            println!("note: {hint}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn run(step: &Step, removes: bool) -> Result<()> {
    let [program, arguments @ ..] = step.words.as_slice() else { return Ok(()) };
    let output = std::process::Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run `{program}`"))?;
    if output.status.success() {
        println!("done: {step}");
    } else if step.may_fail {
        if removes {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = samovar_log::printable(why.trim()).into_owned();
            println!("not removed, or it was not there: {step}: {why}");
        }
    } else {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("`{step}` failed ({}): {}", output.status, why.trim());
    }
    Ok(())
}

fn facts(tls: &LocalTls, user_id: u32, removes: bool) -> Facts {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Users without root may have no /usr/sbin in PATH; the commands are printed for them.
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    let exists = |program: &&str| places.iter().any(|folder| folder.join(program).is_file());
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    Facts {
        authority: tls.authority(),
        name: tls.name(),
        user_id,
        programs: trust_plan::programs().filter(exists).collect(),
        folders: trust_plan::folders().map(PathBuf::from).filter(|path| path.is_dir()).collect(),
        databases: home.map(|home| databases(&home)).unwrap_or_default(),
        removes,
    }
}

fn databases(home: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = DATABASES.iter().map(|place| home.join(place)).collect();
    for place in PROFILES {
        let profiles = std::fs::read_dir(home.join(place)).into_iter().flatten();
        found.extend(profiles.flatten().take(DATABASES_MAX).map(|entry| entry.path()));
    }
    found.retain(|folder| folder.join("cert9.db").is_file());
    found.truncate(DATABASES_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_browsers_are_found() {
        let home = std::env::temp_dir().join(format!("samovar-trust-{}", std::process::id()));
        for folder in [".pki/nssdb", ".mozilla/firefox/a.default", ".mozilla/firefox/Crash Reports"]
        {
            std::fs::create_dir_all(home.join(folder)).expect("our folder");
        }
        for file in [".pki/nssdb/cert9.db", ".mozilla/firefox/a.default/cert9.db"] {
            std::fs::write(home.join(file), "").expect("our folder");
        }
        let found = databases(&home);
        std::fs::remove_dir_all(&home).expect("our folder");
        assert_eq!(found, [home.join(".pki/nssdb"), home.join(".mozilla/firefox/a.default")]);
    }
}
