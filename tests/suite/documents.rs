//! Files about the command line: completion scripts, in real shells, and manual pages, read by
//! `mandoc`.

use samovar_testkit::binary;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn samovar(args: &[&str]) -> String {
    let output = Command::new(binary()).args(args).output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A completion script in a file.
fn script(shell: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(samovar(&["completions", shell]).as_bytes()).expect("our own file");
    file
}

/// Runs a shell command without the tester's settings; returns its output.
fn shell(program: &str, args: &[&str], file: &Path) -> String {
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new(program)
        .args(args)
        .env("HOME", home.path())
        .env("SCRIPT", file)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{program} {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let file = script("bash");
    for (line, expected) in [
        ("samovar relo", "reload"),
        ("samovar serve --relin", "--relink"),
        ("samovar serve --relink ", "true false"),
        ("samovar serve --log-level w", "warn"),
        ("samovar completions ", "bash zsh fish"),
        // Hidden flags are not completed.
        ("samovar serve --companion", ""),
    ] {
        let run = r#"
            source "$SCRIPT"
            read -ra COMP_WORDS <<<"$1"
            [[ $1 != *' ' ]] || COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _samovar samovar "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            echo "${COMPREPLY[@]}""#;
        let said = shell("bash", &["--norc", "-c", run, "bash", line], file.path());
        let said = said.trim().replace(" --help", "").replace("-h ", "");
        let ends = said.split(' ').filter(|word| !["-h", "--help"].contains(word));
        assert_eq!(ends.collect::<Vec<_>>().join(" "), expected, "{line}");
    }
}

#[test]
fn fish_completes_commands_and_flags() {
    let file = script("fish");
    for (line, expected) in [
        ("samovar relo", "reload"),
        ("samovar serve --relin", "--relink"),
        ("samovar serve --relink t", "true"),
    ] {
        let run = "source $SCRIPT; complete -C $argv[1]";
        let said = shell("fish", &["--no-config", "-c", run, line], file.path());
        let first = said.split(['\t', '\n']).next().unwrap_or_default();
        assert_eq!(first, expected, "{line}: {said}");
    }
}

#[test]
fn zsh_accepts_its_script() {
    let file = script("zsh");
    let path = file.path().to_str().expect("UTF-8").to_owned();
    shell("zsh", &["-f", "-n", &path], file.path());
    let text = std::fs::read_to_string(file.path()).expect("our own file");
    assert!(text.starts_with("#compdef samovar\n"), "{text:.80}");
}

#[test]
fn manual_pages_have_no_errors() {
    for (page, parts) in [
        ("samovar", &["NAME", "samovar serve [PATH]", "EXIT STATUS", "--SETTING VALUE"][..]),
        ("samovar.toml", &["NAME", "timeouts.queue", "SAMOVAR_WORKERS", "[[console]]"]),
    ] {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(samovar(&["man", page]).as_bytes()).expect("our own file");
        let path = file.path().to_str().expect("UTF-8");
        let lint = Command::new("mandoc").args(["-T", "lint", "-W", "warning", path]).output();
        let lint = lint.expect("mandoc runs");
        let said = String::from_utf8_lossy(&lint.stdout).into_owned();
        // A page that is generated has no date.
        let wrong: Vec<_> = said.lines().filter(|line| !line.contains("missing date")).collect();
        assert!(wrong.is_empty(), "{page}:\n{}", wrong.join("\n"));
        let shown = Command::new("mandoc").args(["-T", "utf8", path]).output();
        let shown = String::from_utf8_lossy(&shown.expect("mandoc runs").stdout).into_owned();
        // Bold letters are written twice, with a backspace between.
        let mut plain = String::new();
        for character in shown.chars() {
            if character == '\u{8}' {
                plain.pop();
            } else {
                plain.push(character);
            }
        }
        for part in parts {
            assert!(plain.contains(part), "{part} is not in {page}:\n{plain}");
        }
    }
}

#[test]
fn unknown_shell_and_page_give_hint() {
    for (args, hint) in [
        (["completions", "tcsh"], "it takes bash, zsh or fish"),
        (["man", "samovar.ini"], "it takes samovar or samovar.toml"),
    ] {
        let output = Command::new(binary()).args(args).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(hint), "{said}");
    }
}
