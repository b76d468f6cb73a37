//! An application in a separate folder, and the command that checks it.

use samovar_testkit::{binary, family, is_root};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) const CLEAN: i32 = 0;
pub(crate) const LEAKS: i32 = 1;
pub(crate) const WRONG_USE: i32 = 2;

/// Creates a folder with the application as `index.php`.
pub(crate) fn application(php: &str) -> TempDir {
    let folder = TempDir::with_prefix("samovar-leaks-test-").expect("a temporary folder");
    std::fs::write(folder.path().join("index.php"), format!("<?php\n{php}")).expect("our folder");
    std::fs::create_dir(folder.path().join("sessions")).expect("our folder");
    folder
}

pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("leaks").arg(folder.join("index.php")).args(args).current_dir(folder).env_clear();
    command.args(["-d", "session.save_path=sessions", "-d", "display_errors=1"]);
    command.env(family::RUN, family::run()).stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if is_root() {
        command.arg("--allow-root");
    }
    command
}

pub(crate) fn leaks(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().expect("the binary runs")
}

/// Exit status and report.
pub(crate) fn report(folder: &TempDir, args: &[&str]) -> (Option<i32>, Value) {
    let output = leaks(folder.path(), &[args, &["--json"]].concat());
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|e| panic!("{e}: {}", text(&output))))
}

/// Names of the findings that are problems.
pub(crate) fn problems(report: &Value) -> Vec<String> {
    let problems = ["grows", "carries", "stays", "declares"];
    let all = report["findings"].as_array().into_iter().flatten();
    all.filter(|f| f["verdict"].as_str().is_some_and(|verdict| problems.contains(&verdict)))
        .map(|f| f["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}
