//! Files that requests include: recorded by the running server, or by a private one that gets the
//! URLs.

use super::plan::Used;
use super::trial::Trial;
use crate::control_client;
use crate::includes;
use crate::trial::progress::Progress;
use crate::trial::server::Server;
use crate::trial::targets::Target;
use crate::trial::visitor::Visitor;
use anyhow::{Context, Result, bail};
use samovar_migrate::{Outline, outline};
use samovar_profile::loads::{Includes, SharedStart};
use samovar_wire::IncludesQuestion;
use std::io::Read;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Recorded requests per URL.
const TIMES: u32 = 2;
/// Smallest status of a failure.
const STATUS_FAILED: u16 = 500;
/// Timeout for the last reports of a private server.
const REPORT_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The parser is recursive, and code may be nested deeply. Unused pages are never touched.
const STACK_BYTES: usize = 256 << 20;
/// Route of the files that a boot includes, which every request of a booted application uses.
const BOOT: &str = "(boot)";

/// Files with the fraction of requests that include them, in the order of their inclusion.
pub(super) struct Collected {
    pub(super) used: Vec<Used>,
    pub(super) requests: u64,
    pub(super) routes: usize,
    /// The start that the scripts of all routes share.
    pub(super) shared: Option<SharedStart>,
    /// Paths of warm-up requests.
    pub(super) warmup: Vec<String>,
    /// Responses with a status from 500, and requests without a response.
    pub(super) failures: Vec<String>,
}

/// Asks the running server.
pub(super) fn of_running(control: Option<&PathBuf>) -> Result<Collected> {
    let path = control_client::path(control)?;
    let (_, all) = includes::query(&path, IncludesQuestion::default())?;
    let boot = IncludesQuestion { pool: None, route: Some(BOOT.to_owned()) };
    let (_, boot) = includes::query(&path, boot)?;
    collected(&all, &boot, Vec::new())
}

/// Requests the URLs from a private server, which runs whole scripts and records each of them.
pub(super) fn of_private(
    trial: &Trial<'_>,
    targets: &[Target],
    progress: &mut Progress,
) -> Result<Collected> {
    // The first requests fill the application's caches, and include files only for that. They are
    // sent to another server, which records nothing.
    request(&trial.warmer()?, targets, progress)?;
    let server = trial.collector()?;
    let failures = request(&server, targets, progress)?;
    for _again in 1..TIMES {
        request(&server, targets, progress)?;
    }
    let wanted = targets.len() as u64 * u64::from(TIMES);
    let begun = Instant::now();
    loop {
        let answer = includes::query(server.control(), IncludesQuestion::default());
        let is_late = begun.elapsed() > REPORT_LIMIT;
        match answer {
            Ok((_, all)) if all.requests >= wanted || is_late => {
                return collected(&all, &Includes::default(), failures);
            }
            Err(error) if is_late => return Err(error),
            _ => sleep(LOOK_EVERY),
        }
    }
}

/// Requests each URL once. Returns the failures.
fn request(server: &Server, targets: &[Target], progress: &mut Progress) -> Result<Vec<String>> {
    let (mut visitor, mut failures) = (Visitor::default(), Vec::new());
    for (n, target) in targets.iter().enumerate() {
        progress.say(|| format!("URL {} of {}", n + 1, targets.len()));
        let response = visitor.get(server.address(), target);
        server.must_live()?;
        match response {
            Ok(response) if response.status < STATUS_FAILED => {}
            Ok(response) => failures.push(format!("{target}: status {}", response.status)),
            Err(error) => failures.push(format!("{target}: {error:#}")),
        }
    }
    Ok(failures)
}

fn collected(all: &Includes, boot: &Includes, failures: Vec<String>) -> Result<Collected> {
    if all.requests == 0 {
        bail!("no request was recorded\nhint: pass URLs that PHP answers");
    }
    let in_boot = boot.files.iter().map(|file| (file.file.clone(), 1.0));
    #[allow(clippy::cast_precision_loss)] // A fraction.
    let share = |requests: u64| (requests as f64 / all.requests as f64).min(1.0);
    let is_new = |file: &&samovar_profile::loads::IncludedFile| {
        !boot.files.iter().any(|known| known.file == file.file)
    };
    let in_requests =
        all.files.iter().filter(is_new).map(|file| (file.file.clone(), share(file.requests)));
    let files: Vec<(String, f64)> = in_boot.chain(in_requests).collect();
    let read = move || {
        let used = |(file, share): (String, f64)| Used { outline: read(&file), file, share };
        files.into_iter().map(used).collect()
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let thread = thread.spawn(read).context("cannot start a thread for the parser")?;
    let Ok(used) = thread.join() else { bail!("the parser failed") };
    let routes = all.routes.iter().filter(|route| route.route != BOOT).count();
    let (shared, warmup) = (all.shared.clone(), all.warmup.clone());
    Ok(Collected { used, requests: all.requests, routes, shared, warmup, failures })
}

fn read(file: &str) -> Result<Outline, String> {
    let mut text = Vec::new();
    // A worker has named the file: a pipe would block, a device would have no end.
    match std::fs::metadata(file) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err("it is no regular file".to_owned()),
        Err(error) => return Err(format!("cannot open it: {error}")),
    }
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot open it: {error}"))?;
    let read = opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut text);
    read.map_err(|error| format!("cannot read it: {error}"))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20));
    }
    Ok(outline(&text))
}
