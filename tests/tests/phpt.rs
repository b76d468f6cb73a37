//! php-src's own tests, each as a request to the server: forms, uploads, cookies, output buffers.
//!
//! `scripts/php-src.sh` fetches them. Tests with the same INI section share a server, which is
//! started with these settings.

#[path = "../phpt/case.rs"]
mod case;
#[path = "../phpt/differences.rs"]
mod differences;

use case::{Case, Pairs};
use differences::EXPECTED_DIFFERENCES;
use samovar_testkit::http::Client;
use samovar_testkit::{Server, php, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The settings under which php-src's tests are meant to run.
const BASE_INI: &[(&str, &str)] = &[
    ("output_buffering", "0"),
    ("error_reporting", "32767"),
    ("display_errors", "1"),
    ("display_startup_errors", "1"),
    ("log_errors", "0"),
    ("html_errors", "0"),
    ("docref_root", ""),
    ("docref_ext", ".html"),
    ("precision", "14"),
    ("serialize_precision", "-1"),
    ("memory_limit", "128M"),
    ("zend.assertions", "1"),
    ("zend.exception_ignore_args", "0"),
    ("zend.exception_string_param_max_len", "15"),
    ("short_open_tag", "0"),
    ("variables_order", "EGPCS"),
    ("request_order", ""),
    ("register_argc_argv", "1"),
    ("expose_php", "0"),
];

/// How a test ended.
enum Outcome {
    Answered(Vec<u8>),
    Skipped(String),
    Broken(String),
}

/// Tests that can share a server: settings, environment.
type Group = (Pairs, Pairs);

#[test]
fn the_tests_of_php_src() {
    let root = document_root();
    let cases = cases(root.path());
    let verdicts = TempDir::new().expect("a temporary folder");
    let mut groups: BTreeMap<Group, Vec<&Case>> = BTreeMap::new();
    let mut outcomes = BTreeMap::new();
    for case in &cases {
        if let Some(reason) = case.foreign() {
            outcomes.insert(case.name.as_str(), Outcome::Skipped(reason.to_owned()));
            continue;
        }
        let folder = root.path().join(&case.name);
        let ini = case.ini(folder.parent().expect("below the root"));
        groups.entry((ini, case.environment().0)).or_default().push(case);
    }
    // One after the other: tests of a folder use the same files.
    for (group, cases) in groups {
        outcomes.extend(run_group(&group, &cases, root.path(), verdicts.path()));
    }
    report(&outcomes, &matching(verdicts.path()));
}

/// A copy of the tests as document root: they bring files of their own, and write some.
fn document_root() -> TempDir {
    let tests = workspace().join("target/php-src/tests");
    assert!(
        tests.is_dir(),
        "php-src's tests are missing\nhint: `make setup-test`, or scripts/php-src.sh, fetches them"
    );
    let root = TempDir::with_prefix("samovar-phpt-").expect("a temporary folder");
    let copied = Command::new("cp").arg("-r").arg(tests.join(".")).arg(root.path()).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy `{}`", tests.display());
    root
}

fn cases(root: &Path) -> Vec<Case> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("our own folder");
        let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let files = list(root).into_iter().flat_map(|folder| list(&folder));
    files.filter(|f| f.extension().is_some_and(|e| e == "phpt")).map(|f| Case::read(&f)).collect()
}

fn run_group<'a>(
    (ini, environment): &Group,
    cases: &[&'a Case],
    root: &Path,
    verdicts: &Path,
) -> Vec<(&'a str, Outcome)> {
    let start = Server::at(root).plain_ini().workers(1);
    let base = BASE_INI.iter().map(|(key, value)| (*key, *value));
    let own = ini.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let start = base.chain(own).fold(start, |start, (key, value)| start.define(key, value));
    let start = environment.iter().fold(start, |start, (name, value)| start.env(name, value));
    // A server that does not start is the failure of its tests, not of all.
    let server = catch_unwind(AssertUnwindSafe(|| start.start()));
    let outcome = |case| match &server {
        Ok(server) => run(server, case, root, verdicts),
        Err(_) => Outcome::Broken("the server does not start".to_owned()),
    };
    cases.iter().map(|case| (case.name.as_str(), outcome(case))).collect()
}

fn run(server: &Server, case: &Case, root: &Path, verdicts: &Path) -> Outcome {
    let script = |suffix: &str, content: &[u8]| {
        let file = format!("{}{suffix}.php", case.name);
        std::fs::write(root.join(&file), content).expect("our own folder");
        format!("/{file}")
    };
    if let Some(skip) = case.skip_script() {
        let answer = server.get(&script(".skip", &skip)).text();
        if answer.trim_start().to_ascii_lowercase().starts_with("skip") {
            return Outcome::Skipped(answer.trim().to_owned());
        }
    }
    script("", case.section("FILE").unwrap_or_default());
    let mut client = Client::connect(server.address());
    let answered = client.try_send(&case.request()).and_then(|()| client.try_read(false));
    if let Some(clean) = case.section("CLEAN") {
        server.get(&script(".clean", clean));
    }
    match answered {
        Ok(answer) => {
            write_verdict(case, &answer.body, verdicts);
            Outcome::Answered(answer.body)
        }
        Err(e) => Outcome::Broken(format!("no answer: {e}")),
    }
}

/// Puts answer and expectation where `judge.php` looks for them.
fn write_verdict(case: &Case, answer: &[u8], verdicts: &Path) {
    let name = case.name.replace('/', "__");
    std::fs::write(verdicts.join(format!("{name}.out")), answer).expect("our own folder");
    for section in ["EXPECT", "EXPECTF", "EXPECTREGEX"] {
        if let Some(expected) = case.section(section) {
            let file = format!("{name}.{}", section.to_ascii_lowercase());
            std::fs::write(verdicts.join(file), expected).expect("our own folder");
        }
    }
}

/// The tests whose answer is the expected one.
fn matching(verdicts: &Path) -> BTreeSet<String> {
    let judge = workspace().join("tests/phpt/judge.php");
    let output = Command::new(php::program("php")).arg(judge).arg(verdicts).output();
    let output = output.unwrap_or_else(|e| panic!("cannot run PHP: {e}"));
    assert!(output.status.success(), "judge.php: {output:?}");
    let names = String::from_utf8_lossy(&output.stdout);
    names.lines().map(|name| name.replace("__", "/")).collect()
}

/// As much of an answer as one wants to read.
fn beginning(answer: &[u8]) -> String {
    const CHARS_MAX: usize = 600;
    String::from_utf8_lossy(answer).chars().take(CHARS_MAX).collect()
}

fn report(outcomes: &BTreeMap<&str, Outcome>, matching: &BTreeSet<String>) {
    let (mut passed, mut skipped, mut differ) = (0, 0, 0);
    let mut failures: Vec<String> = Vec::new();
    for (name, outcome) in outcomes {
        let expected = EXPECTED_DIFFERENCES.iter().find(|(n, _)| n == name).map(|(_, why)| why);
        let failure = match outcome {
            Outcome::Skipped(why) => {
                println!("skipped {name}: {why}");
                skipped += 1;
                continue;
            }
            Outcome::Answered(_) if matching.contains(*name) => None,
            Outcome::Answered(answer) => Some(format!("answers\n{}", beginning(answer))),
            Outcome::Broken(why) => Some(why.clone()),
        };
        match (failure, expected) {
            (None, None) => passed += 1,
            (None, Some(_)) => failures.push(format!("{name}: passes; take it off the list")),
            (Some(_), Some(why)) => {
                println!("differs {name}: {why}");
                differ += 1;
            }
            (Some(failure), None) => failures.push(format!("{name}: {failure}")),
        }
    }
    let failed = failures.len();
    println!("{passed} passed, {failed} failed, {skipped} skipped, {differ} differ as expected");
    assert!(failures.is_empty(), "{failed} failed:\n{}", failures.join("\n"));
}
