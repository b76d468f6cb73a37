//! Result of the command: for people, and as JSON.

use super::collect::Collected;
use super::measured::Measured;
use super::plan::Plan;
use crate::control_client::printable;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Maximum number of left-out files for people; the preload file and JSON list all.
const SHOWN_MAX: usize = 20;
const FAILURES_MAX: usize = 10;

#[derive(Debug, Serialize)]
struct FileLine {
    file: String,
    share: f64,
}

#[derive(Debug, Serialize)]
struct LeftOutLine {
    file: String,
    reason: String,
}

/// Result of the command.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    output: PathBuf,
    /// Number of requests whose files were recorded.
    requests: u64,
    routes: usize,
    files: Vec<FileLine>,
    left_out: Vec<LeftOutLine>,
    /// `null`: nothing was measured.
    pub(super) measured: Option<Measured>,
    /// Whether `opcache.preload_user` is necessary.
    needs_user: bool,
    failures: Vec<String>,
}

impl Report {
    pub(super) fn new(of: &Collected, output: &Path, needs_user: bool) -> Report {
        Report {
            output: output.to_owned(),
            requests: of.requests,
            routes: of.routes,
            files: Vec::new(),
            left_out: Vec::new(),
            measured: None,
            needs_user,
            failures: of.failures.clone(),
        }
    }

    pub(super) fn plan(&mut self, plan: &Plan) {
        let chosen = plan.files.iter();
        self.files = chosen.map(|it| FileLine { file: it.file.clone(), share: it.share }).collect();
        let left = plan.left_out.iter().cloned();
        self.left_out = left.map(|it| LeftOutLine { file: it.file, reason: it.reason }).collect();
    }

    pub(super) fn is_written(&self) -> bool {
        !self.files.is_empty()
    }

    /// Lines for the head of the preload file.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} of {} used files, from {} requests of {} routes.",
            self.files.len(),
            self.files.len() + self.left_out.len(),
            self.requests,
            self.routes
        )];
        lines.extend(self.measured.iter().flat_map(Measured::lines));
        lines.push(String::new());
        lines.push("Settings of samovar.toml:".to_owned());
        lines.push(String::new());
        lines.extend(self.setting().lines().map(|line| format!("    {line}")));
        lines
    }

    fn setting(&self) -> String {
        let path = toml(&self.output.to_string_lossy());
        let mut text = format!("[php]\n\"opcache.preload\" = {path}\n");
        if self.needs_user {
            text.push_str(
                "# Only for a server that runs as root:\n\"opcache.preload_user\" = \"root\"\n",
            );
        }
        text
    }

    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for failure in self.failures.iter().take(FAILURES_MAX) {
            let _ = writeln!(out, "failed: {failure}");
        }
        let used = self.files.len() + self.left_out.len();
        let _ = writeln!(
            out,
            "{} requests of {} routes include {used} files",
            self.requests, self.routes
        );
        if !self.left_out.is_empty() {
            let _ = writeln!(out, "\n{} files are not preloaded:", self.left_out.len());
        }
        for left in self.left_out.iter().take(SHOWN_MAX) {
            let _ = writeln!(out, "  {}\n    {}", left.file, left.reason);
        }
        if self.left_out.len() > SHOWN_MAX {
            let _ = writeln!(
                out,
                "  … and {} more, listed in the preload file",
                self.left_out.len() - SHOWN_MAX
            );
        }
        if self.is_written() {
            let shown = self.output.display();
            let _ = writeln!(out, "\n{} files are preloaded by {shown}", self.files.len());
            for line in self.measured.iter().flat_map(Measured::lines) {
                let _ = writeln!(out, "{line}");
            }
            if self.measured.as_ref().is_some_and(Measured::is_clear_gain) {
                let _ = write!(out, "\nadd to samovar.toml:\n{}", self.setting());
            } else {
                out.push_str("\nthe file saves no CPU time that this measurement can show\n");
            }
        } else {
            out.push_str("\nnothing can be preloaded\n");
        }
        printable(&out)
    }
}

/// Returns a TOML string.
pub(super) fn toml(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
