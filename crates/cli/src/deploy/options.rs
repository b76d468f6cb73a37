//! Flags that `deploy`, `rollback` and `releases` share.

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_deploy::{Hosts, Site};
use std::path::PathBuf;

/// Flags that another host does not get.
const OWN: [&str; 6] = ["source", "name", "host", "ssh", "remote-command", "release"];

/// Where the releases are.
#[derive(Debug)]
pub(crate) struct SiteOptions {
    folder: PathBuf,
    link: String,
    /// Whether the server reloads.
    pub(crate) reloads: bool,
    /// Other machines; `None`: this one.
    pub(crate) hosts: Option<Hosts>,
    remote_command: Vec<String>,
}

/// Flags that select the folder.
pub(crate) fn arguments() -> [Arg; 2] {
    [
        Arg::new("folder")
            .long("folder")
            .value_name("FOLDER")
            .overrides_with("folder")
            .default_value(".")
            .value_parser(value_parser!(PathBuf))
            .help("Folder of the application, with releases/, shared/ and the link"),
        Arg::new("link")
            .long("link")
            .value_name("NAME")
            .overrides_with("link")
            .default_value("current")
            .help("Name of the link to the serving release"),
    ]
}

/// Flags about the server and other hosts.
pub(crate) fn remote_arguments() -> [Arg; 4] {
    [
        Arg::new("no-reload")
            .long("no-reload")
            .action(ArgAction::SetTrue)
            .overrides_with("no-reload")
            .help("Only switch the link, without a server; such as for the first release"),
        Arg::new("host")
            .long("host")
            .value_name("HOST")
            .action(ArgAction::Append)
            .help("Do it on this host over ssh; several hosts in this order, up to a failure"),
        Arg::new("ssh")
            .long("ssh")
            .value_name("COMMAND")
            .overrides_with("ssh")
            .default_value("ssh")
            .value_parser(words_of)
            .requires("host")
            .help("Program that runs a command on a host, such as 'ssh -p 2222'"),
        Arg::new("remote-command")
            .long("remote-command")
            .value_name("COMMAND")
            .overrides_with("remote-command")
            .default_value("samovar")
            .value_parser(words_of)
            .requires("host")
            .help("The command samovar there, such as 'sudo -u www-data samovar'"),
    ]
}

/// Words of a command line.
#[derive(Clone)]
struct Words(Vec<String>);

fn words_of(text: &str) -> Result<Words, String> {
    shlex::split(text).filter(|words| !words.is_empty()).map(Words).ok_or_else(String::new)
}

pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--ssh <COMMAND>" => Some("it takes a command line, such as 'ssh -p 2222'"),
        "--remote-command <COMMAND>" => Some("it takes a command line, such as 'sudo samovar'"),
        _ => None,
    }
}

impl SiteOptions {
    pub(crate) fn of(matches: &ArgMatches) -> SiteOptions {
        let words = |name: &str| {
            let words = matches.try_get_one::<Words>(name).ok().flatten();
            words.map_or_else(Vec::new, |words| words.0.clone())
        };
        let hosts = matches.try_get_many::<String>("host").ok().flatten();
        let hosts = hosts.map(|names| Hosts { names: names.cloned().collect(), ssh: words("ssh") });
        SiteOptions {
            folder: matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default(),
            link: matches.get_one::<String>("link").cloned().unwrap_or_default(),
            reloads: !matches!(matches.try_get_one::<bool>("no-reload"), Ok(Some(true))),
            hosts,
            remote_command: words("remote-command"),
        }
    }

    /// Returns the site on this machine.
    pub(crate) fn site(&self) -> Result<Site> {
        let folder = std::path::absolute(&self.folder)
            .with_context(|| format!("cannot resolve `{}`", self.folder.display()))?;
        // The links to shared files must not depend on the working directory or on a link above.
        let folder = folder.canonicalize().unwrap_or(folder);
        Ok(Site::new(folder, &self.link)?)
    }

    /// Returns the begin of the command line on another host.
    pub(crate) fn command(&self, name: &str) -> Vec<String> {
        let mut words = self.remote_command.clone();
        words.push(name.to_owned());
        words
    }
}

/// Returns the given flags that another host gets, too, as words of a command line.
pub(crate) fn words(matches: &ArgMatches, command: &Command) -> Vec<String> {
    let mut words = Vec::new();
    for flag in command.get_arguments() {
        let (id, Some(long)) = (flag.get_id().as_str(), flag.get_long()) else { continue };
        let is_given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        if !is_given || OWN.contains(&id) {
            continue;
        }
        if !flag.get_action().takes_values() {
            words.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            words.push(format!("--{long}={}", value.to_string_lossy()));
        }
    }
    words
}
