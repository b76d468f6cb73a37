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
    /// Checks that the server can be reached, before anything is changed. Returns the label of the
    /// serving generation; empty: it has none.
    fn check(&self) -> Result<String, Error>;

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
    let share = shared_paths(&plan.share)?;
    let exclude = plan.exclude.iter().map(|path| tree::inner(path));
    let picked = Picked { exclude: exclude.collect::<Result<_, _>>()?, strip: plan.strip };
    // Wrong names, a missing server and an occupied link end the command before the long work.
    site.target()?;
    let serving = server.map_or(Ok(String::new()), Server::check)?;
    let lock = site.lock()?;
    let (before, previous) = (site.target()?, site.current()?);
    let mut state = site.state()?;
    settle(&mut state, previous.as_ref(), &serving);
    clean_up_failed(site, &mut state, (previous.as_ref(), &serving), report);

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
    let of = Environment {
        folder: &folder,
        release: plan.name.as_str(),
        previous: &previous,
        lock: &lock,
    };
    let prepared = share
        .iter()
        .try_for_each(|path| tree::share(&folder, &site.shared(), path))
        .and_then(|()| run_all(&plan.before, &of, plan.command_limit, report));
    if let Err(error) = prepared {
        // The error of the step is the more useful one; `unpacked` has the same effect.
        let _ = attempt.mark(Verdict::Failed);
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
        Err(error) if error.is_unknown() => return Err(unknown(&error)),
        Err(error) => {
            let restored = go_back(site, before.as_deref(), server, &error);
            let _ = attempt.mark(Verdict::Failed);
            restored?;
            return Err(error);
        }
    }
    let but =
        |error| Error::new(format!("the release `{}` serves, but {error}", plan.name.as_str()));
    attempt.state.set_before(plan.name.as_str(), &previous);
    attempt.mark(Verdict::Served).map_err(but)?;
    attempt.prune(&previous, report);
    run_all(&plan.after, &of, plan.command_limit, report).map_err(but)
}

/// Returns the shared paths. None of them may be within another one.
fn shared_paths(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut share = paths.iter().map(|path| tree::inner(path)).collect::<Result<Vec<_>, _>>()?;
    share.sort();
    share.dedup();
    for pair in share.windows(2) {
        if pair[1].starts_with(&pair[0]) {
            return Err(Error::new(format!(
                "`{}` is within `{}`, which is shared already\nhint: share one of them",
                pair[1].display(),
                pair[0].display()
            )));
        }
    }
    Ok(share)
}

/// A deploy that was ended while its canary went on has not recorded its result. The link names
/// its release; it serves unless the label of the server is that of another release.
fn settle(state: &mut State, current: Option<&Name>, serving: &str) {
    let Some(current) = current.map(Name::as_str) else { return };
    let is_known = |name: &str| state.releases.iter().any(|release| release.name == name);
    let is_other = serving != current && is_known(serving);
    let found = state.releases.iter_mut().find(|release| release.name == current);
    if let Some(release) = found.filter(|release| release.verdict == Verdict::Unpacked && !is_other)
    {
        release.verdict = Verdict::Served;
    }
}

fn unknown(error: &Error) -> Error {
    Error::new(format!(
        "{error}\nthe link names the new release, which may serve or not\nhint: see `samovar \
         status`; `samovar rollback` serves another release"
    ))
}

/// Switches to a release that served before: the named one, or the one deployed before the current
/// one. Returns its name. After an error the current release serves.
pub fn rollback(
    site: &Site,
    to: Option<&Name>,
    server: Option<&dyn Server>,
    report: Report<'_>,
) -> Result<Name, Error> {
    let serving = server.map_or(Ok(String::new()), Server::check)?;
    let _lock = site.lock()?;
    let (before, current) = (site.target()?, site.current()?);
    let mut state = site.state()?;
    settle(&mut state, current.as_ref(), &serving);
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
        Some(Err(error)) if error.is_unknown() => return Err(unknown(&error)),
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

/// Returns the release that served before the current one; if that is unknown or gone, the one
/// that was deployed before it and has served.
fn before_current(site: &Site, state: &State, current: Option<&Name>) -> Result<Name, Error> {
    let current = current.ok_or_else(|| {
        Error::new(format!(
            "`{}` does not name a release\nhint: choose one: `samovar rollback NAME`",
            site.link().display()
        ))
    })?;
    let at = state.releases.iter().position(|release| release.name == current.as_str());
    let older = &state.releases[..at.unwrap_or(0)];
    let has_served = |release: &&Release| release.verdict == Verdict::Served;
    let before = at.map_or("", |at| &state.releases[at].before);
    let recorded = older.iter().filter(has_served).find(|release| release.name == before);
    let found = recorded.or_else(|| older.iter().rev().find(has_served));
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

/// Removes releases that never served: the operator has seen the error, or it was killed. The
/// current one stays, and the one whose label the server has.
fn clean_up_failed(
    site: &Site,
    state: &mut State,
    (current, serving): (Option<&Name>, &str),
    report: Report<'_>,
) {
    state.releases.retain(|release| {
        let is_used = current.is_some_and(|current| current.as_str() == release.name)
            || serving == release.name;
        if release.verdict == Verdict::Served || is_used {
            return true;
        }
        match release.name.parse().and_then(|name| site.remove(&name)) {
            Ok(()) => false,
            Err(error) => {
                report(&format!("cannot remove the release `{}`: {error}", release.name));
                release.name.parse().is_ok_and(|name| site.release(&name).is_dir())
            }
        }
    });
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
                surplus -= 1;
                continue;
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
