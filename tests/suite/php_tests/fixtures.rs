//! Projects with tests, and their runs by `phpunit` and by `samovar test`.

use samovar_testkit::binary;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A project with the tests in `tests`.
pub(super) struct Project(TempDir);

/// A run of its tests.
pub(super) struct Finished {
    pub(super) status: i32,
    /// Both outputs.
    pub(super) text: String,
    /// The file of results.
    pub(super) log: String,
}

impl Project {
    /// Writes a project with these files.
    pub(super) fn new(files: &[(&str, &str)]) -> Project {
        let project = Project(TempDir::with_prefix("samovar-php-tests-").expect("a folder"));
        for (name, text) in files {
            let file = project.path(name);
            std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("our folder");
            std::fs::write(file, text).expect("our folder");
        }
        let bootstrap = files.iter().any(|(name, _)| *name == "tests/bootstrap.php");
        let bootstrap = if bootstrap { " bootstrap=\"tests/bootstrap.php\"" } else { "" };
        let configuration = format!(
            "<?xml version=\"1.0\"?>\n<phpunit{bootstrap}
            beStrictAboutTestsThatDoNotTestAnything=\"true\">
            <testsuites><testsuite name=\"all\"><directory>tests</directory>
            <directory suffix=\".phpt\">tests</directory></testsuite></testsuites></phpunit>"
        );
        std::fs::write(project.path("phpunit.xml"), configuration).expect("our folder");
        project
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn log(&self) -> PathBuf {
        self.path("results.xml")
    }

    fn finish(&self, output: &Output) -> Finished {
        let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        Finished { status: output.status.code().unwrap_or(-1), text, log }
    }

    /// Runs a script on the command line.
    pub(super) fn php(&self, script: &str) {
        let status = Command::new("php").current_dir(self.0.path()).arg(script).status();
        assert!(status.expect("php is installed").success());
    }

    /// Runs the tests in one process.
    pub(super) fn phpunit(&self, options: &[&str]) -> Finished {
        let _ = std::fs::remove_file(self.log());
        let mut command = Command::new("phpunit");
        command.current_dir(self.0.path()).arg("--log-junit").arg(self.log()).args(options);
        self.finish(&command.output().expect("phpunit is installed"))
    }

    fn command(&self, flags: &[&str], options: &[&str]) -> Command {
        let _ = std::fs::remove_file(self.log());
        let mut command = Command::new(binary());
        command.current_dir(self.0.path()).arg("test").args(flags).args(["--", "phpunit"]);
        command.arg("--log-junit").arg(self.log()).args(options);
        command
    }

    /// Runs the tests in forks.
    pub(super) fn test(&self, flags: &[&str]) -> Finished {
        self.test_with(flags, &[])
    }

    /// Runs the tests in forks, with options of phpunit.
    pub(super) fn test_with(&self, flags: &[&str], options: &[&str]) -> Finished {
        self.finish(&self.command(flags, options).output().expect("the binary runs"))
    }

    /// Starts a run of the tests.
    pub(super) fn start(&self) -> Child {
        let mut command = self.command(&[], &[]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs")
    }
}

/// Returns the text of a class of tests.
pub(super) fn class(name: &str, methods: &[(&str, &str)]) -> String {
    let methods: Vec<_> = methods
        .iter()
        .map(|(method, body)| format!("    public function {method}(): void {{ {body} }}\n"))
        .collect();
    let methods = methods.concat();
    format!("<?php final class {name} extends PHPUnit\\Framework\\TestCase\n{{\n{methods}}}\n")
}

/// Returns the results of a file in `JUnit`'s format: the end of each test, by name.
pub(super) fn junit(log: &str) -> BTreeMap<String, String> {
    let attribute = |text: &str, name: &str| -> String {
        let value = text.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest);
        value
            .and_then(|rest| rest.split_once('"'))
            .map(|(value, _)| value.to_owned())
            .unwrap_or_default()
    };
    let mut found = BTreeMap::new();
    for part in log.split("<testcase").skip(1) {
        let head = part.split_once('>').map_or(part, |(head, _)| head);
        let body = part.split_once("</testcase>").map_or("", |(body, _)| body);
        let end = ["<failure", "<error", "<warning", "<skipped"]
            .into_iter()
            .find(|end| !head.ends_with('/') && body.contains(end));
        let class = attribute(head, "class");
        // PHPUnit gives the warnings about a class no name of it.
        let name = attribute(head, "name");
        let is_about_class = matches!(name.as_str(), "Warning" | "Error");
        let id = if is_about_class { name } else { format!("{class}::{name}") };
        found.insert(id, format!("{} {}", end.unwrap_or("passed"), attribute(head, "assertions")));
    }
    found
}
