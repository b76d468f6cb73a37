//! `samovar upgrade`: another server replaces the running one, without a lost request. If it
//! cannot, the old one continues.

mod failing;
mod handed;
mod left;
mod load;
mod protocols;

use load::Load;
use samovar_testkit::{Server, Start, eventually};
use std::path::PathBuf;

/// Number of upgrades of one server in the suite; the three models make thirty.
const ROUNDS: usize = 10;
/// Number of upgrades of a server with several front threads.
const ROUNDS_OF_THREADS: usize = 3;
/// Number of upgrades in `make nightly`.
const ROUNDS_NIGHTLY: usize = 100;

const SIGTERM: i32 = 15;
const SIGSTOP: i32 = 19;

const SCRIPT: &str = "<?php echo 'page ', $_SERVER['REQUEST_METHOD'];";
const CHECKPOINT: &str = "<?php Samovar\\checkpoint(); echo 'page ', $_SERVER['REQUEST_METHOD'];";
const RESIDENT: &str =
    "<?php Samovar\\serve(fn ($request) => new Samovar\\Response('page ' . $request->method()));";

/// Number of processes of a server, found by its folder's name in their environment.
fn processes(server: &Server) -> usize {
    let (name, value) = server.marker();
    samovar_testkit::family::with(name, &value).len()
}

/// Files in the server's folder and below.
fn files(server: &Server) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![server.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("its own folder").flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Tolerance for connections to the control socket and to pages that are open during the check. It
/// is lower than one descriptor per upgrade or attempt.
const DESCRIPTORS_LATER: u64 = 2;

/// Resources that a server holds.
#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    descriptors: u64,
    processes: usize,
    files: Vec<PathBuf>,
}

impl Belongings {
    fn of(server: &Server) -> Belongings {
        Belongings {
            descriptors: server.held().descriptors,
            processes: processes(server),
            files: files(server),
        }
    }

    /// Waits until the server holds no further resources. Closed connections are noticed with a
    /// delay, and so are their descriptors.
    fn are_all(&self, server: &Server, what: &str) {
        let mut last = None;
        eventually(&format!("nothing is left of {what}"), || {
            let now = Belongings::of(server);
            let is_same = now.processes <= self.processes && now.files == self.files;
            if is_same && now.descriptors <= self.descriptors + DESCRIPTORS_LATER {
                return Some(());
            }
            if last.as_ref() != Some(&now) {
                eprintln!("before: {self:?}\nnow: {now:?}");
                last = Some(now);
            }
            None
        });
    }
}

/// Upgrades the server repeatedly. No concurrent request may be refused or remain without a
/// response.
fn again_and_again(start: Start, rounds: usize) {
    let server = start.workers(2).start();
    server.upgrade([]).expect("the first");
    server.wait_for_predecessor();
    assert_eq!(server.get("/").text(), "page GET");
    let before = Belongings::of(&server);
    let load = Load::start(&server);
    let mut pids = vec![server.pid()];
    for round in 0..rounds {
        load.wait_for_more();
        let said = server.upgrade([]).unwrap_or_else(|why| panic!("round {round}: {why}"));
        assert!(said.starts_with(&format!("process {} (samovar ", server.pid())), "{said}");
        assert!(!pids.contains(&server.pid()), "{}", server.pid());
        pids.push(server.pid());
        load.wait_for_more();
        server.wait_for_predecessor();
    }
    let asked = load.finish();
    assert!(asked > 4 * rounds, "{asked} requests");
    before.are_all(&server, "the upgrades");
    let control = server.control();
    server.stop();
    assert!(!control.exists(), "the last one takes it away");
}

#[test]
fn upgrade_in_script_model_loses_no_request() {
    again_and_again(Server::script(SCRIPT), ROUNDS);
}

#[test]
fn upgrade_in_checkpoint_model_loses_no_request() {
    again_and_again(Server::script(CHECKPOINT), ROUNDS);
}

#[test]
fn upgrade_in_resident_model_loses_no_request() {
    again_and_again(Server::script(RESIDENT), ROUNDS);
}

#[test]
fn upgrade_with_several_front_threads_loses_no_request() {
    let start = Server::script(CHECKPOINT).args(["--front-threads", "3"]);
    again_and_again(start, ROUNDS_OF_THREADS);
}

#[test]
#[ignore = "takes minutes: make nightly"]
fn hundred_upgrades_lose_no_request() {
    for php in [SCRIPT, CHECKPOINT, RESIDENT] {
        again_and_again(Server::script(php), ROUNDS_NIGHTLY);
    }
}
