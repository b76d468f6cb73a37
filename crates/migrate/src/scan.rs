//! Checks all files, on all cores.

use crate::check;
use crate::files::{self, Found, Pattern, Search};
use crate::finding::Finding;
use crate::ini;
use crate::project::{FileFacts, Project};
use crate::version::Range;
use foldhash::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum size of a file.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Stack of a thread: the parser is recursive, with a limit of its own depth.
const STACK_BYTES: usize = 256 << 20;
/// Maximum number of threads.
const THREADS_MAX: usize = 64;
/// Maximum number of findings that are kept. Further ones are counted.
const FINDINGS_MAX: usize = 200_000;

/// Options of a check.
#[derive(Clone, Debug)]
pub struct Options {
    /// The upgrade.
    pub range: Range,
    /// Patterns of paths to leave out, in the form of .gitignore.
    pub exclude: Vec<String>,
    /// Whether to check folders with the name `vendor`.
    pub has_vendor: bool,
    /// Maximum number of files.
    pub files_max: usize,
}

/// A file that was not checked.
#[derive(Debug)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// Result of all files.
#[derive(Debug, Default)]
pub struct Checked {
    /// Files with their findings, in the order of paths; each list in the order of lines.
    pub files: Vec<(PathBuf, Vec<Finding>)>,
    /// Files that were not checked.
    pub skipped: Vec<Skipped>,
    /// Number of checked files.
    pub file_count: usize,
    /// Number of lines in them.
    pub line_count: usize,
    /// Findings above the limits, which are not listed.
    pub dropped: usize,
    /// Whether there are more files than the limit.
    pub is_truncated: bool,
}

/// Checks the files below these paths.
pub fn scan(paths: &[PathBuf], options: &Options) -> Checked {
    let patterns: Vec<Pattern> = options.exclude.iter().map(|text| Pattern::new(text)).collect();
    let (has_vendor, files_max) = (options.has_vendor, options.files_max);
    let search = Search { exclude: &patterns, has_vendor, has_settings: true, files_max };
    let mut found = Found::default();
    for path in paths {
        files::find(path, &search, &mut found);
    }
    for path in &mut found.files {
        if let Ok(plain) = path.strip_prefix(".") {
            *path = plain.to_owned();
        }
    }
    let mut seen = HashSet::default();
    found.files.retain(|path| seen.insert(path.clone()));
    let (results, failures) = check_all(&found.files, options.range);
    let mut checked = Checked {
        is_truncated: found.is_truncated,
        file_count: results.len(),
        ..Checked::default()
    };
    let skipped = found.unreadable.into_iter().chain(failures);
    checked.skipped.extend(skipped.map(|(path, reason)| Skipped { path, reason }));
    checked.skipped.sort_by(|one, other| one.path.cmp(&other.path));
    link(results, &found.files, &mut checked);
    checked
}

/// Checks one text, as if it were the only file.
pub fn check_text(text: &[u8], range: Range) -> Vec<Finding> {
    let mut checked = Checked::default();
    let files = [PathBuf::from("text.php")];
    link(vec![(0, check::check(text, range))], &files, &mut checked);
    checked.files.pop().map(|(_, findings)| findings).unwrap_or_default()
}

type Failures = Vec<(PathBuf, String)>;

/// Result of each file that could be read, by its position in the list.
fn check_all(files: &[PathBuf], range: Range) -> (Vec<(usize, FileFacts)>, Failures) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let failures = Mutex::new(Vec::new());
    let work = || {
        let mut own = Vec::new();
        let mut failed = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(at) else { break };
            match check_file(path, range) {
                Ok(facts) => own.push((at, facts)),
                Err(reason) => failed.push((path.clone(), reason)),
            }
        }
        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(own);
        failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(failed);
    };
    thread::scope(|scope| {
        for _ in 0..cores.min(THREADS_MAX).min(files.len()) {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            // With one thread less the others do its work.
            let _ = thread.spawn_scoped(scope, work);
        }
    });
    // Without any thread this one does it all.
    work();
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    (results, failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
}

fn check_file(path: &Path, range: Range) -> Result<FileFacts, String> {
    let text = read(path).map_err(|error| error.to_string())?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let checked = catch_unwind(AssertUnwindSafe(|| {
        if ini::is_settings(name) {
            ini::check(name, &text, range)
        } else {
            check::check(&text, range)
        }
    }));
    checked.map_err(|_| "the check failed: please report this file as a bug".to_owned())
}

/// Reads a file up to the limit of its size.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = Vec::with_capacity(metadata.len().min(FILE_BYTES_MAX) as usize);
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let limit = FILE_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("it has more than {limit} MiB")));
    }
    Ok(text)
}

/// Decides the findings that need the facts of all files.
fn link(mut results: Vec<(usize, FileFacts)>, files: &[PathBuf], checked: &mut Checked) {
    let mut project = Project::default();
    for (_, facts) in &mut results {
        project.add(facts);
        checked.line_count += facts.lines;
        checked.dropped += facts.dropped;
    }
    let mut kept = 0;
    for (at, facts) in results {
        let candidates = facts.candidates.into_iter();
        let mut findings: Vec<Finding> = candidates
            .filter(|candidate| project.holds(candidate))
            .map(|candidate| candidate.finding)
            .collect();
        let room = FINDINGS_MAX - kept;
        if findings.len() > room {
            checked.dropped += findings.len() - room;
            findings.truncate(room);
        }
        kept += findings.len();
        if findings.is_empty() {
            continue;
        }
        findings.sort_by(|one, other| {
            (one.line, one.column, one.rule).cmp(&(other.line, other.column, other.rule))
        });
        findings.dedup_by(|one, other| {
            one.line == other.line
                && one.column == other.column
                && one.rule == other.rule
                && one.message == other.message
        });
        checked.files.push((files[at].clone(), findings));
    }
}
