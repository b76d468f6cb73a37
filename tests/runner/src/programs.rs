//! Finds the test programs that cargo has built, and the tests in each.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// First part of the name of each of its tests. For a library: the name of the crate. For a
    /// file in `tests/`: the package's name without `samovar-`, and the name of the file, as in
    /// `front/rooms`.
    pub name: String,
    /// Path of the executable.
    pub executable: PathBuf,
    /// Arguments before the name of the test.
    pub arguments: Vec<String>,
    /// Folder of the package, in which its tests run.
    pub folder: PathBuf,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// `PROGRAM::PATH::NAME`. For a program without libtest's harness: only the program's name.
    pub id: String,
    /// Index of its program.
    pub program: usize,
    /// Name of the test in the program. `None`: the program is the test.
    pub name: Option<String>,
    /// The test has `#[ignore]`, or does not belong to this tier.
    pub is_ignored: bool,
}

/// Parses the messages of `cargo test --no-run --message-format=json`.
pub fn read(messages: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("a line of cargo's messages")?;
        programs.extend(program_of(&message));
    }
    programs.sort_by(|a: &Program, b| a.name.cmp(&b.name));
    if let Some(twice) = programs.windows(2).find(|two| two[0].name == two[1].name) {
        bail!("two test programs are named `{}`", twice[0].name);
    }
    Ok(programs)
}

fn program_of(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let target = &message["target"];
    let name = target["name"].as_str()?.replace('-', "_");
    let package = folder.file_name()?.to_str()?.to_owned();
    let kind = target["kind"][0].as_str()?;
    let name = match kind {
        // Tests of the suite are named only by their folders.
        "test" if package == "tests" => name,
        "test" => format!("{package}/{name}"),
        "bin" => format!("{package}/bin/{name}"),
        "example" => format!("{package}/example/{name}"),
        _ => package,
    };
    Some(Program { name, executable, arguments: Vec::new(), folder })
}

/// A shell command, run in the folder, as a program that is one test.
pub fn command(name: &str, line: &str, folder: &Path) -> Program {
    Program {
        name: name.to_owned(),
        executable: PathBuf::from("/bin/sh"),
        arguments: vec!["-ec".to_owned(), line.to_owned()],
        folder: folder.to_owned(),
    }
}

/// Queries each program for its tests. Programs that are `single` are one test each.
pub fn list(programs: &[Program], is_single: impl Fn(&str) -> bool) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        if is_single(&program.name) {
            let id = program.name.clone();
            tests.push(Test { id, program: index, name: None, is_ignored: false });
            continue;
        }
        let all = names(program, &[])?;
        let ignored = names(program, &["--ignored"])?;
        for name in all {
            let id = format!("{}::{name}", program.name);
            let is_ignored = ignored.contains(&name);
            tests.push(Test { id, program: index, name: Some(name), is_ignored });
        }
    }
    Ok(tests)
}

fn names(program: &Program, more: &[&str]) -> Result<Vec<String>> {
    let shown = program.executable.display();
    let output = Command::new(&program.executable)
        .args(["--list", "--format", "terse"])
        .args(more)
        .current_dir(&program.folder)
        .output()
        .with_context(|| format!("cannot run {shown}"))?;
    if !output.status.success() {
        bail!("`{shown} --list` ended with {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, name: &str, folder: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"{folder}/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":true}},"executable":"/t/{name}-1"}}"#
        )
    }

    #[test]
    fn programs_are_named_by_package_and_target() {
        let text = [
            message("lib", "samovar_front", "/w/crates/front"),
            message("test", "rooms", "/w/crates/front"),
            message("bin", "samovar-php", "/w/crates/worker"),
            message("test", "suite", "/w/tests"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let names: Vec<String> =
            read(&text).unwrap().into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["front", "front/rooms", "suite", "worker/bin/samovar_php"]);
    }

    #[test]
    fn artifacts_without_tests_are_no_programs() {
        let text = message("lib", "a", "/w/a").replace("\"test\":true", "\"test\":false");
        assert_eq!(read(&text).unwrap(), []);
    }

    #[test]
    fn two_programs_of_one_name_are_an_error() {
        let text = [message("lib", "a", "/w/a"), message("lib", "b", "/other/a")].join("\n");
        assert_eq!(read(&text).unwrap_err().to_string(), "two test programs are named `a`");
    }
}
