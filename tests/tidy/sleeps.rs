//! Checks that tests wait for conditions instead of sleeping. Tests of time itself are listed here
//! as exceptions.

use crate::tree::{files, is_kind, none, read};

/// File, number of sleeps in it, reason.
const ALLOWED: &[(&str, usize, &str)] = &[
    ("crates/load/tests/load/server.rs", 2, "a server that answers late"),
    ("crates/admin/examples/demo/main.rs", 1, "the rate of requests"),
    ("crates/front/src/tests/failures.rs", 1, "between two looks at a condition"),
    ("crates/front/src/tests/slow.rs", 1, "a client that is slow"),
    ("crates/testkit/src/family.rs", 1, "between two looks at a condition"),
    ("crates/testkit/src/process.rs", 1, "between two looks at a condition"),
    ("crates/testkit/src/server/heir.rs", 1, "between two looks at a condition"),
    (
        "crates/testkit/src/server/start.rs",
        2,
        "between two looks at a condition; a server that is ended at a chosen moment",
    ),
    ("crates/testkit/src/tap.rs", 1, "between two looks at a condition"),
    ("crates/testkit/src/wait.rs", 1, "between two looks at a condition"),
    ("php/tests/Server.php", 3, "between two looks at a condition"),
    ("php/tests/ServerTest.php", 1, "between two looks at a condition"),
    ("php/tests/Symfony/TerminableKernel.php", 1, "work after the answer that takes its time"),
    ("tests/suite/chaos/clients.rs", 3, "clients that are slow; readers who have begun"),
    ("tests/suite/chaos/clock.rs", 1, "a quiet time"),
    ("tests/suite/chaos/crashes.rs", 1, "the rate of crashes"),
    ("tests/suite/chaos/deaths.rs", 1, "the rate of deaths"),
    ("tests/suite/chaos/load.rs", 4, "clients that rest; between two looks at a condition"),
    ("tests/suite/chaos/rates.rs", 1, "the rate of crashes"),
    ("tests/suite/chaos/run.rs", 1, "between two disturbances"),
    ("tests/suite/chaos/stage.rs", 3, "between two looks at a condition"),
    ("tests/suite/chaos/stops.rs", 1, "how long a process is stopped"),
    ("tests/suite/edge/certificates.rs", 1, "a list grows old"),
    ("tests/suite/faults/deaths.rs", 1, "the rate of deaths"),
    ("tests/suite/faults/descriptors.rs", 1, "connections grow old"),
    ("tests/suite/faults/desertions.rs", 1, "a server that is ended at a chosen moment"),
    ("tests/suite/faults/quiet.rs", 1, "a quiet time"),
    ("tests/suite/faults/stopped.rs", 2, "a standstill; work beyond a time-out"),
    ("tests/suite/frameworks/reloads.rs", 1, "the rate of reloads"),
    ("tests/suite/frankenphp.rs", 1, "a client that reads late"),
    ("tests/suite/guides/walk.rs", 1, "between two looks at a condition"),
    (
        "tests/suite/queues/kills.rs",
        4,
        "the rate of deaths; pushers that pause; between two looks at a condition",
    ),
    (
        "tests/suite/reload.rs",
        1,
        "a signal is on its way: nothing tells of it before the boot goes on",
    ),
    ("tests/suite/service/manager.rs", 1, "a sign of life that does not come"),
];

#[test]
fn tests_do_not_sleep() {
    let mut found = Vec::new();
    let files = files();
    for file in files.iter().filter(|file| is_test(file)) {
        let sleeps = count(file, &read(file));
        let known =
            ALLOWED.iter().find(|(name, ..)| name == file).map_or(0, |(_, known, _)| *known);
        if sleeps != known {
            found.push(format!("{file}: {sleeps} sleeps, {known} in tidy/sleeps.rs"));
        }
    }
    let gone = ALLOWED.iter().filter(|(name, ..)| !files.iter().any(|file| file == name));
    found.extend(gone.map(|(name, ..)| format!("{name}: in tidy/sleeps.rs, and not there")));
    none(
        "wait on a condition (samovar_testkit::eventually), or say in tidy/sleeps.rs why not",
        &found,
    );
}

/// Whether the whole file is test code or shared by tests. Applications under test may sleep.
fn is_test(file: &str) -> bool {
    if is_kind(file, &["php"]) {
        return file.starts_with("php/tests/") && !file.starts_with("php/tests/apps/");
    }
    let is_whole = file.contains("/tests/")
        || file.ends_with("/tests.rs")
        || file.starts_with("crates/testkit/");
    is_kind(file, &["rs"]) && is_whole && !file.starts_with("tests/tidy")
}

/// Counts sleep calls in the file's own language. A PHP script in a Rust string belongs to the
/// application under test.
fn count(file: &str, text: &str) -> usize {
    let calls: &[&str] = if is_kind(file, &["rs"]) {
        &["thread::sleep", "time::sleep"]
    } else {
        &["usleep(", " sleep("]
    };
    calls.iter().map(|call| text.matches(call).count()).sum()
}
