//! `samovar migrate from`: configuration of other servers → samovar.toml.

use crate::init::write_settings;
use anyhow::{Context, Result, anyhow};
use samovar_config::Sources;
use samovar_config::sources::DEFAULT_FILE;
use samovar_migrate::from::{Converted, Level, Note, Origin, Rejection, Written, convert};
use samovar_server::terminal;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A conversion with its options.
#[derive(Debug)]
pub(super) struct Conversion {
    pub(super) files: Vec<PathBuf>,
    pub(super) output: Option<PathBuf>,
    pub(super) is_forced: bool,
    pub(super) is_json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    toml: &'a str,
    settings: Vec<Setting<'a>>,
    notes: Vec<Line<'a>>,
    notes_left_out: usize,
    problems: &'a [String],
}

#[derive(Serialize)]
struct Setting<'a> {
    key: &'a str,
    value: &'a str,
    sources: Vec<Source<'a>>,
}

#[derive(Serialize)]
struct Source<'a> {
    file: String,
    line: u32,
    text: &'a str,
}

#[derive(Serialize)]
struct Line<'a> {
    level: Level,
    #[serde(flatten)]
    source: Source<'a>,
    advice: &'a str,
}

impl Conversion {
    pub(super) fn run(&self) -> Result<ExitCode> {
        // Relative paths of the settings start at the folder of their file.
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
        let folder = std::env::current_dir().context("cannot determine the working directory")?;
        let validate = |text: &str| rejections(&folder, &file, text);
        let converted = convert(&self.files, &validate).map_err(|error| anyhow!("{error}"))?;
        if let Some(output) = &self.output {
            write_settings(output, &converted.toml, self.is_forced)?;
        }
        if self.is_json {
            terminal::print(&(serde_json::to_string_pretty(&document(&converted))? + "\n"))?;
        } else if self.output.is_none() {
            terminal::print(&converted.toml)?;
        }
        terminal::complain(&summary(&converted, self.output.as_deref()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Mistakes that a server would report.
fn rejections(folder: &Path, file: &Path, text: &str) -> Vec<Rejection> {
    let sources = Sources::new(folder).config_text(file, text);
    let Err(problems) = sources.resolve() else { return Vec::new() };
    let prefix = format!("{}:", file.display());
    let rejection = |problem: &samovar_config::Problem| {
        let message = problem.message.strip_prefix(&prefix).unwrap_or(&problem.message);
        let message = message.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':').trim();
        Rejection { line: problem.line(), reason: format!("{message}; {}", problem.hint) }
    };
    problems.iter().map(rejection).collect()
}

fn document(converted: &Converted) -> Document<'_> {
    Document {
        toml: &converted.toml,
        settings: converted.settings.iter().map(setting).collect(),
        notes: converted.notes.iter().map(line).collect(),
        notes_left_out: converted.notes_left_out,
        problems: &converted.problems,
    }
}

fn setting(written: &Written) -> Setting<'_> {
    let sources = written.origins.iter().map(source).collect();
    Setting { key: &written.key, value: &written.value, sources }
}

fn line(note: &Note) -> Line<'_> {
    Line { level: note.level, source: source(&note.origin), advice: &note.advice }
}

fn source(origin: &Origin) -> Source<'_> {
    let file = origin.file.to_string_lossy().into_owned();
    Source { file, line: origin.line, text: &origin.text }
}

/// Lines without a counterpart, for people.
fn summary(converted: &Converted, output: Option<&Path>) -> String {
    let mut text = String::new();
    for (level, word) in [(Level::Missing, "no counterpart"), (Level::Differs, "differs")] {
        for note in converted.notes.iter().filter(|note| note.level == level) {
            let Origin { file, line, text: code } = &note.origin;
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "{}:{line}: {word}: {code}\n    {}", file.display(), note.advice);
        }
    }
    for problem in &converted.problems {
        let _ = writeln!(text, "to be changed: {problem}");
    }
    let count = |level| converted.notes.iter().filter(|note| note.level == level).count();
    let (missing, differs) = (count(Level::Missing), count(Level::Differs));
    let target = output.map_or(String::new(), |file| format!(" written to `{}`", file.display()));
    let settings = converted.settings.len();
    let _ = write!(
        text,
        "samovar: {settings} settings{target}; without counterpart: {}, different: {differs}",
        missing + converted.notes_left_out
    );
    text
}
