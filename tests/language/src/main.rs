//! `lint-language [PATH…]`: prints the findings in these files and folders; without a path it checks all counts.

use samovar_language::{Finding, commits, count, extract, names, rules, shape};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Files whose text is not ours to change.
const SKIPPED: &[&str] = &[
    "LICENSE",
    "bench/results/",
    "tests/language/",
    "docs/internals/decisions/language.md",
    "CHANGELOG.md",
];

/// Findings per area that are allowed now.
const ALLOWED: &str = "tests/language/allowed.tsv";

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    match run(&paths) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lint-language: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(paths: &[String]) -> Result<bool, String> {
    let root = PathBuf::from(".");
    let mut findings = Vec::new();
    for file in files(&root)? {
        if paths.is_empty() || paths.iter().any(|path| file.starts_with(path.as_str())) {
            findings.extend(check(&root, &file));
        }
    }
    if paths.is_empty() {
        findings.extend(commits::judge(&root));
    }
    findings.sort();
    let counts = count::count(&findings);
    if !paths.is_empty() {
        let mut out = std::io::stdout().lock();
        for finding in &findings {
            // A reader such as `head` may have left.
            if writeln!(out, "{finding}").is_err() {
                return Ok(false);
            }
        }
    }
    for (area, number) in &counts {
        println!("{}\t{number}", area.name());
    }
    if !paths.is_empty() {
        return Ok(findings.is_empty());
    }
    let text =
        std::fs::read_to_string(ALLOWED).map_err(|e| format!("cannot read {ALLOWED}: {e}"))?;
    let allowed = count::parse(&text)?;
    match count::compare(&counts, &allowed) {
        Ok(()) => Ok(true),
        Err(text) => {
            eprint!("{text}");
            eprintln!("hint: `lint-language PATH` shows each finding");
            Ok(false)
        }
    }
}

/// The files of the repository, as git knows them.
fn files(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_checked = |file: &&str| !SKIPPED.iter().any(|skipped| file.starts_with(skipped));
    Ok(text.lines().filter(is_checked).map(str::to_owned).collect())
}

fn check(root: &Path, file: &str) -> Vec<Finding> {
    // Pictures and the like are no text; a file that was removed and is still known to git is none either.
    let Ok(text) = std::fs::read_to_string(root.join(file)) else { return Vec::new() };
    let mut found = Vec::new();
    for piece in extract::pieces(file, &text) {
        for (line, message) in rules::judge(piece.area, &piece.text) {
            found.push(Finding {
                file: file.to_owned(),
                line: piece.line + line,
                area: piece.area,
                message,
            });
        }
    }
    found.extend(shape::judge(file, &text));
    found.extend(names::judge(file, &text));
    found
}
