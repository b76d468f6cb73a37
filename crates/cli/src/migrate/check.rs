//! `samovar migrate check`: scan, baseline, fixes, report.

use super::range;
use anyhow::{Context, Result, bail};
use samovar_migrate::{Baseline, Checked, Format, Options, Range, Severity, Version};
use samovar_server::terminal;
use similar::TextDiff;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code if there are findings.
const EXIT_FINDINGS: u8 = 1;
/// Exit code if a path cannot be read.
const EXIT_USAGE: u8 = 2;
/// Lines of context of a difference.
const CONTEXT_LINES: usize = 3;

/// Use of the safe changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixes {
    Keep,
    Show,
    Write,
}

/// A check with its options.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) from: Option<Version>,
    pub(super) to: Version,
    pub(super) format: Format,
    pub(super) severity: Severity,
    pub(super) paths: Vec<PathBuf>,
    pub(super) exclude: Vec<String>,
    pub(super) has_vendor: bool,
    pub(super) files_max: usize,
    pub(super) baseline: Option<PathBuf>,
    pub(super) new_baseline: Option<PathBuf>,
    pub(super) fixes: Fixes,
}

impl Check {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if let Some(missing) = self.paths.iter().find(|path| std::fs::metadata(path).is_err()) {
            let path = missing.display();
            terminal::complain(&format!(
                "samovar: cannot read `{path}`\nhint: pass files and folders that exist"
            ));
            return Ok(ExitCode::from(EXIT_USAGE));
        }
        let known = self.baseline.as_deref().map(read_baseline).transpose()?;
        let range = self.range()?;
        let options = Options {
            range,
            exclude: self.exclude.clone(),
            has_vendor: self.has_vendor,
            files_max: self.files_max,
        };
        let mut checked = samovar_migrate::scan(&self.paths, &options);
        for (_, findings) in &mut checked.files {
            findings.retain(|finding| finding.severity() >= self.severity);
        }
        checked.files.retain(|(_, findings)| !findings.is_empty());
        if let Some(path) = &self.new_baseline {
            let baseline = Baseline::of(&checked);
            baseline
                .write(path)
                .with_context(|| format!("cannot write the baseline `{}`", path.display()))?;
            let (count, path) = (counted(baseline.len(), "finding"), path.display());
            terminal::print(&format!("{count} written to {path}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let in_baseline = known.map_or(0, |known| known.remove_known(&mut checked));
        if self.fixes != Fixes::Keep {
            return self.fix(&mut checked, range, in_baseline);
        }
        self.report(&checked, range, in_baseline)
    }

    fn report(&self, checked: &Checked, range: Range, known: usize) -> Result<ExitCode> {
        terminal::print(&samovar_migrate::render(checked, range, known, self.format))?;
        let is_clean = checked.files.is_empty();
        Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FINDINGS) })
    }

    fn range(&self) -> Result<Range> {
        let (from, source) = match self.from {
            Some(from) => (from, "--from".to_owned()),
            None => range::current(&self.paths),
        };
        let to = self.to;
        if from >= to {
            bail!("PHP {from} ({source}) is not older than PHP {to}\nhint: pass --from and --to");
        }
        if self.from.is_none() && self.format == Format::Text {
            terminal::complain(&format!("samovar: from PHP {from}: {source}"));
        }
        Ok(Range { from, to })
    }

    /// Shows or writes the safe changes, and reports the findings that remain.
    fn fix(&self, checked: &mut Checked, range: Range, known: usize) -> Result<ExitCode> {
        let mut changes = String::new();
        let (mut files, mut count) = (0, 0);
        for (path, findings) in &mut checked.files {
            let fixed = samovar_migrate::fix(path, findings)
                .with_context(|| format!("cannot read `{}`", path.display()))?;
            let Some(fixed) = fixed else { continue };
            files += 1;
            count += fixed.count;
            if self.fixes == Fixes::Show {
                changes.push_str(&difference(path, &fixed.before, &fixed.after));
                continue;
            }
            fixed.write(path).with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        if self.fixes == Fixes::Show {
            terminal::print(&changes)?;
            let sum = sum(count, files);
            terminal::complain(&format!("samovar: {sum}, not written"));
            return Ok(if count == 0 { ExitCode::SUCCESS } else { EXIT_FINDINGS.into() });
        }
        terminal::complain(&format!("samovar: {} written", sum(count, files)));
        // The files have changed: their lines and columns as well.
        let options = Options {
            range,
            exclude: self.exclude.clone(),
            has_vendor: self.has_vendor,
            files_max: self.files_max,
        };
        let mut again = samovar_migrate::scan(&self.paths, &options);
        for (_, findings) in &mut again.files {
            findings.retain(|finding| finding.severity() >= self.severity);
        }
        again.files.retain(|(_, findings)| !findings.is_empty());
        if let Some(path) = &self.baseline {
            read_baseline(path)?.remove_known(&mut again);
        }
        self.report(&again, range, known)
    }
}

/// `1 change in 2 files`.
fn sum(changes: usize, files: usize) -> String {
    format!("{} in {}", counted(changes, "change"), counted(files, "file"))
}

fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

fn read_baseline(path: &Path) -> Result<Baseline> {
    Baseline::read(path).with_context(|| {
        let path = path.display();
        format!("cannot read the baseline `{path}`\nhint: write it with --write-baseline {path}")
    })
}

/// Difference in the form of `diff -u`.
fn difference(path: &Path, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let path = path.display();
    TextDiff::from_lines(before.as_ref(), after.as_ref())
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}
