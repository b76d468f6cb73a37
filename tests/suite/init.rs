//! `samovar init` in the applications of this tree, and `samovar explain`.

use samovar_testkit::copy::copy_of;
use samovar_testkit::{binary, family, workspace};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `samovar` in a folder, without the tester's settings.
fn samovar(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder).env_clear();
    command.env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The written file fits: a server would start with it.
#[test]
fn settings_written_for_each_application_pass_check() {
    for (application, framework, model, root) in [
        ("tests/apps/symfony-shop", "a Symfony application", "script now", "public"),
        ("examples/symfony", "a Symfony application", "script now", "public"),
        ("tests/apps/laravel-notes", "a Laravel application", "script now", "public"),
        ("examples/slim", "an application with a front controller", "script now", "public"),
        ("examples/resident", "an application with a front controller", "resident", "."),
        ("examples/hello", "an application with a front controller", "script now", "public"),
        ("tests/apps/conformance", "plain scripts", "script", "public"),
        ("/usr/share/wordpress", "WordPress", "script", "."),
    ] {
        let project = copy_of(&workspace().join(application));
        let project = project.path();
        let written = samovar(project, &["init"]);
        let said = text(&written.stdout);
        assert!(written.status.success(), "{application}: {}", text(&written.stderr));
        for part in [
            &format!("wrote samovar.toml: {framework} "),
            &format!("root {root}\n"),
            &format!("\nmodel: {model}"),
            "\nguide: docs/start/",
        ] {
            assert!(said.contains(part), "{application}: {part} is not in\n{said}");
        }
        let guide = said.lines().find_map(|line| line.strip_prefix("guide: "));
        assert!(workspace().join(guide.expect("a guide")).is_file(), "{said}");
        let check = samovar(project, &["check", "--allow-root"]);
        let found = text(&check.stdout);
        assert!(check.status.success(), "{application}:\n{found}{}", text(&check.stderr));
        assert!(found.contains("ok       settings: `samovar.toml`"), "{found}");
    }
}

#[test]
fn init_keeps_existing_file_and_prints_without_writing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("samovar.toml");
    std::fs::write(folder.path().join("index.php"), "<?php").expect("our own folder");
    let printed = samovar(folder.path(), &["init", "--print"]);
    assert!(text(&printed.stdout).contains("root = \".\""), "{}", text(&printed.stdout));
    assert!(!file.exists());

    std::fs::write(&file, "# mine\n").expect("our own folder");
    let refused = samovar(folder.path(), &["init"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("hint: pass --force"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(&file).expect("our own file"), "# mine\n");
    assert!(samovar(folder.path(), &["init", "--force"]).status.success());
    assert!(std::fs::read_to_string(&file).expect("our own file").contains("root = "));
}

#[test]
fn explain_prints_meaning_or_suggestions() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = samovar(folder.path(), &["explain", "503"]);
    assert!(found.status.success());
    assert!(text(&found.stdout).starts_with("503 with Retry-After\n"), "{}", text(&found.stdout));
    let words = ["explain", "a", "reload", "is", "in", "progress"];
    let found = samovar(folder.path(), &words);
    assert!(text(&found.stdout).contains("hint: try again after it"), "{}", text(&found.stdout));
    let unknown = samovar(folder.path(), &["explain", "kernel-objekt"]);
    assert_eq!(unknown.status.code(), Some(1));
    let said = text(&unknown.stderr);
    assert!(said.contains("hint: did you mean `kernel-object`?"), "{said}");
}

/// The exit code of `init` says whether the file is written, also if nothing reads the advice.
#[test]
fn unwritable_output_does_not_change_result_of_init() {
    let run = |folder: &Path, args: &[&str], stdout: Stdio| {
        let mut command = Command::new(binary());
        command.args(args).current_dir(folder).env_clear().env(family::RUN, family::run());
        command.stdout(stdout).output().expect("the binary runs")
    };
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("a device"));
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    for (args, stdout, code, is_written) in [
        (&["init"][..], full(), 0, true),
        (&["init"], closed(), 0, true),
        (&["init", "--print"], full(), 1, false),
        (&["init", "--print"], closed(), 0, false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("index.php"), "<?php").expect("our own folder");
        let output = run(folder.path(), args, stdout);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
        assert_eq!(folder.path().join("samovar.toml").exists(), is_written, "{args:?}");
    }
}

#[test]
fn explain_accepts_flags_and_coloured_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, part) in [
        (&["explain", "--workers"][..], "setting workers\n"),
        (&["explain", "-w"], "setting workers\n"),
        (&["explain", "HTTP", "503"], "503 with Retry-After\n"),
        (&["explain", "\x1b[31mHTTP 503\x1b[0m"], "503 with Retry-After\n"),
    ] {
        let found = samovar(folder.path(), args);
        assert!(text(&found.stdout).starts_with(part), "{args:?}: {found:?}");
    }
    let help = samovar(folder.path(), &["explain", "--help"]);
    assert!(text(&help.stdout).contains("Usage:"), "{help:?}");
}
