//! `samovar deploy`: unpacks a release next to the others, and makes the server boot it.

mod options;
pub(crate) mod releases;
mod report;
pub(crate) mod rollback;
mod server;

use crate::arguments::{control, control_arguments, pool_argument};
use crate::commands::reload;
use crate::control_client::printable;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use options::SiteOptions;
use report::{begins, conclude, say};
use samovar_config::Sources;
use samovar_deploy::{Hosts, KEEP_MIN, Name, Plan, Source};
use samovar_server::Predecessor;
use samovar_wire::{CanaryQuestion, ReloadOptions};
use server::Running;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

const HELP: &str = "\
Examples:
  samovar deploy build/ --folder /srv/shop        copy a folder, and serve it
  samovar deploy shop.tar.gz --folder /srv/shop   the same with an archive
  samovar deploy shop.tar.gz --folder /srv/shop --share var/log --share .env \\
      --before 'bin/console cache:warmup' --probe /health
  samovar deploy shop.tar.gz --folder /srv/shop --canary 5%,25%,100%
  samovar deploy shop.tar.gz --folder /srv/shop --host web1 --host web2
  samovar releases --folder /srv/shop             list the releases
  samovar rollback --folder /srv/shop             serve the release before

The release is in FOLDER/releases/NAME, and the link FOLDER/current names the serving one. Let the
server serve a path through the link, such as /srv/shop/current/public. If the release does not
boot, the link is switched back and the old release keeps serving. See docs/guide/releases.md.";

#[derive(Debug)]
struct Deploy {
    place: SiteOptions,
    control: Option<PathBuf>,
    source: PathBuf,
    name: Option<Name>,
    keep: usize,
    share: Vec<PathBuf>,
    exclude: Vec<PathBuf>,
    strip: usize,
    before: Vec<String>,
    after: Vec<String>,
    command_limit: Duration,
    /// Conditions of the takeover, without the label of the release.
    takeover: ReloadOptions,
    canary: Option<Box<CanaryQuestion>>,
    /// The arguments that another host gets, too.
    words: Vec<String>,
}

fn define() -> Command {
    Command::new("deploy")
        .about("Unpacks a release, boots it next to the old one, and switches to it")
        .after_help(HELP)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder, or archive (.tar, .tar.gz, .tar.zst); `-` is standard input"),
        )
        .args(options::arguments())
        .args(options::remote_arguments())
        .args(control_arguments())
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .overrides_with("name")
                .value_parser(|text: &str| text.parse::<Name>())
                .help("Name of the release [default: the time, such as 20261129T011530Z]"),
        )
        .arg(
            Arg::new("keep")
                .long("keep")
                .value_name("COUNT")
                .overrides_with("keep")
                .default_value("5")
                .value_parser(keep)
                .help("Number of releases to keep; the one before is always kept"),
        )
        .arg(paths("share", "Path that all releases share, in FOLDER/shared; such as var/log"))
        .arg(paths("exclude", "Path of the source to leave out; .git, .hg and .svn always are"))
        .arg(
            Arg::new("strip")
                .long("strip")
                .value_name("COUNT")
                .overrides_with("strip")
                .default_value("0")
                .value_parser(value_parser!(u8))
                .help("Leading folders to remove from the names in an archive"),
        )
        .arg(commands("before", "Command to run in the release before the switch"))
        .arg(commands("after", "Command to run in the release after the switch"))
        .arg(
            Arg::new("command-limit")
                .long("command-limit")
                .value_name("TIME")
                .overrides_with("command-limit")
                .default_value("15m")
                .value_parser(limit)
                .help("Time limit of each command"),
        )
        .args(reload::takeover_arguments())
        .arg(pool_argument("Reload only this pool"))
        .args(reload::canary_arguments().into_iter().filter(|flag| flag.get_id() != "root"))
}

fn paths(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("PATH")
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

fn commands(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("COMMAND").action(ArgAction::Append).help(help)
}

fn keep(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (KEEP_MIN..=1_000).contains(count)).ok_or_else(String::new)
}

fn limit(text: &str) -> Result<Duration, String> {
    samovar_config::duration(text).filter(|time| !time.is_zero()).ok_or_else(String::new)
}

fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--keep <COUNT>" => Some("it takes a number from 2 to 1000"),
        "--strip <COUNT>" => Some("it takes a number from 0 to 255"),
        "--command-limit <TIME>" => Some("it takes a time, such as `15m`"),
        "--name <NAME>" => Some("it takes up to 64 letters, digits, `.`, `_` and `-`"),
        _ => options::hint(flag),
    }
}

fn all<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    matches.get_many::<T>(name).into_iter().flatten().cloned().collect()
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    let takeover = ReloadOptions {
        force: matches.get_flag("force"),
        probe: matches.get_one::<String>("probe").cloned(),
        pool: matches.get_one::<String>("pool").cloned(),
        release: None,
    };
    let words = options::words(matches, &define());
    Ok(Box::new(Deploy {
        place: SiteOptions::of(matches),
        control: control(matches, sources)?,
        source: matches.get_one::<PathBuf>("source").cloned().unwrap_or_default(),
        name: matches.get_one::<Name>("name").cloned(),
        keep: matches.get_one::<usize>("keep").copied().unwrap_or(KEEP_MIN),
        share: all(matches, "share"),
        exclude: all(matches, "exclude"),
        strip: matches.get_one::<u8>("strip").copied().unwrap_or(0).into(),
        before: all(matches, "before"),
        after: all(matches, "after"),
        command_limit: matches.get_one::<Duration>("command-limit").copied().unwrap_or_default(),
        canary: reload::canary_question(matches, &takeover)?.map(Box::new),
        takeover,
        words,
    }))
}

impl Run for Deploy {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let source = Source::new(&self.source)?;
        let name = self.name.clone().unwrap_or_else(Name::now);
        if self.strip > 0 && matches!(source, Source::Folder(_)) {
            bail!("`--strip` is for archives, and `{}` is a folder", self.source.display());
        }
        if let Some(hosts) = &self.place.hosts {
            return self.on(hosts, &source, &name);
        }
        let site = self.place.site()?;
        let plan = Plan {
            source,
            name: name.clone(),
            keep: self.keep,
            share: self.share.clone(),
            exclude: self.exclude.clone(),
            strip: self.strip,
            before: self.before.clone(),
            after: self.after.clone(),
            command_limit: self.command_limit,
        };
        let running = self.place.reloads.then(|| {
            let canary = self.canary.as_deref().cloned();
            Running::new(self.control.as_ref(), self.takeover.clone(), canary)
        });
        let running = running.transpose()?;
        let server = running.as_ref().map(|running| running as &dyn samovar_deploy::Server);
        samovar_deploy::deploy(&site, &plan, server, &mut say)
            .with_context(|| format!("release `{}`", name.as_str()))
            .map_err(|error| flat(&error))?;
        say(&format!("the release {} serves", name.as_str()));
        Ok(ExitCode::SUCCESS)
    }
}

impl Deploy {
    /// Deploys on each host, up to the first failure.
    fn on(&self, hosts: &Hosts, source: &Source, name: &Name) -> Result<ExitCode> {
        let mut words = self.place.command("deploy");
        words.extend(["-".to_owned(), format!("--name={}", name.as_str())]);
        words.extend(self.words.iter().cloned());
        let exclude = &self.exclude;
        let outcome = samovar_deploy::deploy_to(hosts, source, exclude, &words, &mut begins)?;
        conclude(&outcome, &format!("the release {}", name.as_str()), true)
    }
}

/// Puts the context before the text, so that a hint stays the last line.
fn flat(error: &anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", printable(&format!("{error:#}")))
}
