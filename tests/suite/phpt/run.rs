//! Runs many `.phpt` files as requests, and finds those with the expected response.

use crate::phpt::case::{Case, Pairs};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, php, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Settings for which php-src's tests are written.
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

/// Outcome of a test.
pub(crate) enum Outcome {
    Delivery(Vec<u8>),
    Skipped(String),
    Broken(String),
}

/// Settings and environment of tests that can share a server.
type Group = (Pairs, Pairs);

/// Runs `cases` and returns the outcome of each by its name. `settings` are flags of the server and
/// their values.
pub(crate) fn all<'a>(
    cases: &'a [Case],
    root: &Path,
    verdicts: &Path,
    settings: &[[&str; 2]],
) -> BTreeMap<&'a str, Outcome> {
    let mut groups: BTreeMap<Group, Vec<&Case>> = BTreeMap::new();
    let mut outcomes = BTreeMap::new();
    for case in cases {
        if let Some(reason) = case.foreign() {
            outcomes.insert(case.name.as_str(), Outcome::Skipped(reason.to_owned()));
            continue;
        }
        let folder = root.join(&case.name);
        let ini = case.ini(folder.parent().expect("below the root"));
        groups.entry((ini, case.environment().0)).or_default().push(case);
    }
    // Sequential: tests of a folder use the same files.
    for (group, cases) in groups {
        outcomes.extend(run_group(&group, &cases, root, verdicts, settings));
    }
    outcomes
}

/// A copy of a folder of tests, as document root: the tests contain additional files, and write
/// some.
pub(crate) fn document_root(folder: &str) -> TempDir {
    let tests = workspace().join("target/php-src").join(folder);
    assert!(
        tests.is_dir(),
        "php-src's tests are missing\nhint: `make setup-test`, or scripts/php-src.sh, fetches them"
    );
    let root = TempDir::with_prefix("samovar-phpt-").expect("a temporary folder");
    let copied = Command::new("cp").arg("-r").arg(tests.join(".")).arg(root.path()).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy `{}`", tests.display());
    root
}

/// All tests below `root`, in order.
pub(crate) fn cases(root: &Path) -> Vec<Case> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("our own folder") {
            let path: PathBuf = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "phpt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().map(|path| Case::read(path, root)).collect()
}

fn run_group<'a>(
    (ini, environment): &Group,
    cases: &[&'a Case],
    root: &Path,
    verdicts: &Path,
    settings: &[[&str; 2]],
) -> Vec<(&'a str, Outcome)> {
    let start = Server::at(root).relinked().plain_ini().workers(1);
    let start = settings.iter().fold(start, |start, setting| start.args(*setting));
    let base = BASE_INI.iter().map(|(key, value)| (*key, *value));
    let own = ini.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let start = base.chain(own).fold(start, |start, (key, value)| start.define(key, value));
    let start = environment.iter().fold(start, |start, (name, value)| start.env(name, value));
    // A server that does not start is a failure of its own tests only.
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
        let response = server.get(&script(".skip", &skip)).text();
        if response.trim_start().to_ascii_lowercase().starts_with("skip") {
            return Outcome::Skipped(response.trim().to_owned());
        }
    }
    script("", case.section("FILE").unwrap_or_default());
    let mut client = Client::connect(server.address());
    let responded = client.try_send(&case.request()).and_then(|()| client.try_read(false));
    if let Some(clean) = case.section("CLEAN") {
        server.get(&script(".clean", clean));
    }
    match responded {
        Ok(response) => {
            write_verdict(case, &response.body, verdicts);
            Outcome::Delivery(response.body)
        }
        Err(e) => Outcome::Broken(format!("no answer: {e}")),
    }
}

/// Replaces a slash in file names; no test has this character in its name.
const SLASH: &str = "@";

/// Writes response and expectation to the files that `judge.php` reads.
fn write_verdict(case: &Case, response: &[u8], verdicts: &Path) {
    let name = case.name.replace('/', SLASH);
    std::fs::write(verdicts.join(format!("{name}.out")), response).expect("our own folder");
    for section in ["EXPECT", "EXPECTF", "EXPECTREGEX"] {
        if let Some(expected) = case.section(section) {
            let file = format!("{name}.{}", section.to_ascii_lowercase());
            std::fs::write(verdicts.join(file), expected).expect("our own folder");
        }
    }
}

/// Tests with the expected response.
pub(crate) fn matching(verdicts: &Path) -> BTreeSet<String> {
    let judge = workspace().join("tests/suite/phpt/judge.php");
    let output = Command::new(php::program("php")).arg(judge).arg(verdicts).output();
    let output = output.unwrap_or_else(|e| panic!("cannot run PHP: {e}"));
    assert!(output.status.success(), "judge.php: {output:?}");
    let names = String::from_utf8_lossy(&output.stdout);
    names.lines().map(|name| name.replace(SLASH, "/")).collect()
}
