//! The steps of a deploy, and of a rollback.

use crate::command::{self, Environment};
use crate::disk;
use crate::error::Error;
use crate::picked::Picked;
use crate::site::{Name, Site};
use crate::source::Source;
use crate::state::{Release, State, Verdict};
use crate::tree;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum number of kept releases. The release before is always kept: requests that began in it
/// may still run, and a rollback needs it.
pub const KEEP_MIN: usize = 2;

/// The server that serves the site.
pub trait Server {
    /// Checks that the server can be reached, before anything is changed.
    fn check(&self) -> Result<(), Error>;

    /// Boots the application again, through the link, and names the generation after `release`.
    /// Returns a line when the new generation serves. After an error, the old generation serves.
    fn reload(&self, release: Option<&Name>) -> Result<String, Error>;
}

/// A release to deploy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where its files come from.
    pub source: Source,
    /// Its name.
    pub name: Name,
    /// Number of releases that are kept, [`KEEP_MIN`] at least.
    pub keep: usize,
    /// Paths in it that all releases share.
    pub share: Vec<PathBuf>,
    /// Paths in it that are left out.
    pub exclude: Vec<PathBuf>,
    /// Number of leading folders that are removed from the names in an archive.
    pub strip: usize,
    /// Commands that run in its folder before the switch.
    pub before: Vec<String>,
    /// Commands that run in its folder after the switch.
    pub after: Vec<String>,
    /// Time limit of each command.
    pub command_limit: Duration,
}

/// A line for the operator: a step and its time.
pub type Report<'a> = &'a mut dyn FnMut(&str);

/// Deploys a release. After an error the old release serves, unless the text says otherwise.
pub fn deploy(
    site: &Site,
    plan: &Plan,
    server: Option<&dyn Server>,
    report: Report<'_>,
) -> Result<(), Error> {
    let share = plan.share.iter().map(|path| tree::inner(path));
    let share = share.collect::<Result<Vec<_>, _>>()?;
    let exclude = plan.exclude.iter().map(|path| tree::inner(path));
    let picked = Picked { exclude: exclude.collect::<Result<_, _>>()?, strip: plan.strip };
    // Wrong names, a missing server and an occupied link end the command before the long work.
    let before = site.target()?;
    if let Some(server) = server {
        server.check()?;
    }
    let _lock = site.lock()?;
    let previous = site.current()?;
    let mut state = site.state()?;
    clean_up_failed(site, &mut state, previous.as_ref())?;

    let since = Instant::now();
    let partial = site.begin(&plan.name)?;
    let unpacked = plan.source.unpack(&partial, &picked).inspect_err(|_| {
        // The next deploy removes the rest.
        let _ = disk::remove_tree(&partial);
    })?;
    let mut attempt = Attempt { site, plan, state };
    // Known before it has its name: the next deploy removes it if this one is killed.
    attempt.mark(Verdict::Unpacked)?;
    let folder = site.finish(&partial, &plan.name)?;
    report(&format!("unpacked {unpacked} files into {} ({})", folder.display(), time(since)));
    let previous = previous.as_ref().map_or("", Name::as_str).to_owned();
    let of = Environment { folder: &folder, release: plan.name.as_str(), previous: &previous };
    let prepared = share
        .iter()
        .try_for_each(|path| tree::share(&folder, &site.shared(), path))
        .and_then(|()| run_all(&plan.before, &of, plan.command_limit, report));
    if let Err(error) = prepared {
        attempt.mark(Verdict::Failed)?;
        return Err(error);
    }

    let since = Instant::now();
    site.switch_to(&plan.name)?;
    let outcome = server.map_or(Ok(String::new()), |server| server.reload(Some(&plan.name)));
    match outcome {
        Ok(of_server) => {
            let link = site.link();
            let text = match server {
                Some(_) => format!("{of_server} ({})", time(since)),
                None => format!("{} names the release; no server was reloaded", link.display()),
            };
            report(&text);
        }
        Err(error) => {
            let restored = go_back(site, before.as_deref(), server, &error);
            attempt.mark(Verdict::Failed)?;
            restored?;
            return Err(error);
        }
    }
    attempt.mark(Verdict::Served)?;
    attempt.prune(&previous, report);
    run_all(&plan.after, &of, plan.command_limit, report).map_err(|error| {
        Error::new(format!("the release `{}` serves, but {error}", plan.name.as_str()))
    })
}

/// Switches to a release that served before: the named one, or the one deployed before the current
/// one. Returns its name. After an error the current release serves.
pub fn rollback(
    site: &Site,
    to: Option<&Name>,
    server: Option<&dyn Server>,
    report: Report<'_>,
) -> Result<Name, Error> {
    if let Some(server) = server {
        server.check()?;
    }
    let before = site.target()?;
    let _lock = site.lock()?;
    let current = site.current()?;
    let mut state = site.state()?;
    let target = match to {
        Some(name) => named(site, name)?,
        None => before_current(site, &state, current.as_ref())?,
    };
    if current.as_ref() == Some(&target) {
        return Err(Error::new(format!("the release `{}` already serves", target.as_str())));
    }
    let since = Instant::now();
    site.switch_to(&target)?;
    match server.map(|server| server.reload(Some(&target))) {
        Some(Ok(text)) => report(&format!("{text} ({})", time(since))),
        None => {
            let link = site.link();
            report(&format!("{} names the release; no server was reloaded", link.display()));
        }
        Some(Err(error)) => {
            go_back(site, before.as_deref(), server, &error)?;
            return Err(error);
        }
    }
    state.set(target.as_str(), Verdict::Served);
    state.write(&site.state_file())?;
    Ok(target)
}

/// Puts the link back after a failed reload. Pools that took over nevertheless boot the old
/// release.
fn go_back(
    site: &Site,
    before: Option<&Path>,
    server: Option<&dyn Server>,
    error: &Error,
) -> Result<(), Error> {
    let explained = |own: Error| {
        Error::new(format!("{error}\nafter that, the old release was not restored: {own}"))
    };
    site.restore(before).map_err(explained)?;
    match server.filter(|_| error.is_partial()) {
        Some(server) => server.reload(site.current()?.as_ref()).map(drop).map_err(explained),
        None => Ok(()),
    }
}

fn named(site: &Site, name: &Name) -> Result<Name, Error> {
    if site.release(name).is_dir() {
        return Ok(name.clone());
    }
    Err(Error::new(format!(
        "there is no release `{}` in `{}`\nhint: `samovar releases` lists the releases",
        name.as_str(),
        site.folder().display()
    )))
}

/// Returns the release that was deployed before the current one, and has served.
fn before_current(site: &Site, state: &State, current: Option<&Name>) -> Result<Name, Error> {
    let current = current.ok_or_else(|| {
        Error::new(format!(
            "`{}` does not name a release\nhint: choose one: `samovar rollback NAME`",
            site.link().display()
        ))
    })?;
    let at = state.releases.iter().position(|release| release.name == current.as_str());
    let older = &state.releases[..at.unwrap_or(0)];
    let found = older.iter().rev().find(|release| release.verdict == Verdict::Served);
    found.and_then(|release| release.name.parse().ok()).ok_or_else(|| {
        Error::new(format!(
            "no release that has served is older than `{}`\nhint: `samovar releases` lists the \
             releases; `samovar rollback NAME` serves any of them",
            current.as_str()
        ))
    })
}

/// Runs commands one after the other, up to the first that fails.
fn run_all(
    lines: &[String],
    of: &Environment<'_>,
    limit: Duration,
    report: Report<'_>,
) -> Result<(), Error> {
    for line in lines {
        let since = Instant::now();
        command::run(line, of, limit)?;
        report(&format!("ran {} ({})", line.escape_debug(), time(since)));
    }
    Ok(())
}

/// Removes releases that never served: the operator has seen the error, or it was killed.
fn clean_up_failed(site: &Site, state: &mut State, current: Option<&Name>) -> Result<(), Error> {
    let is_current = |name: &str| current.is_some_and(|current| current.as_str() == name);
    let (kept, failed) = std::mem::take(&mut state.releases)
        .into_iter()
        .partition(|release| release.verdict == Verdict::Served || is_current(&release.name));
    state.releases = kept;
    let failed: Vec<Release> = failed;
    for name in failed.iter().filter_map(|release| release.name.parse::<Name>().ok()) {
        site.remove(&name)?;
    }
    Ok(())
}

/// A deploy whose release is unpacked.
struct Attempt<'a> {
    site: &'a Site,
    plan: &'a Plan,
    state: State,
}

impl Attempt<'_> {
    fn mark(&mut self, verdict: Verdict) -> Result<(), Error> {
        self.state.set(self.plan.name.as_str(), verdict);
        self.state.write(&self.site.state_file())
    }

    /// Removes the oldest releases. An error is only reported, because the new release serves.
    fn prune(&mut self, previous: &str, report: Report<'_>) {
        let own = self.plan.name.as_str().to_owned();
        let mut surplus = self.state.releases.len().saturating_sub(self.plan.keep.max(KEEP_MIN));
        let mut removed = Vec::new();
        for release in &self.state.releases {
            if surplus == 0 {
                break;
            }
            if release.name == own || release.name == previous {
                continue;
            }
            let gone = release.name.parse().and_then(|name| self.site.remove(&name));
            if let Err(error) = gone {
                report(&format!("cannot remove the release `{}`: {error}", release.name));
                return;
            }
            removed.push(release.name.clone());
            surplus -= 1;
        }
        self.state.releases.retain(|release| !removed.contains(&release.name));
        let written = self.state.write(&self.site.state_file());
        match written {
            Err(error) => report(&error.to_string()),
            Ok(()) if !removed.is_empty() => report(&format!("removed {}", removed.join(", "))),
            Ok(()) => {}
        }
    }
}

fn time(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}
