//! `samovar upgrade`: another server takes the running one's place, and nobody who asks for pages notices. Or it does not, and
//! nobody notices that either.

mod failing;
mod handed;
mod left;
mod load;
mod protocols;

use load::Load;
use samovar_testkit::{Server, Start, eventually};
use std::path::PathBuf;

/// Upgrades of one server in the suite; the three models make thirty.
const ROUNDS: usize = 10;
/// Of one whose front has several threads.
const ROUNDS_OF_THREADS: usize = 3;
/// The same in `make nightly`.
const ROUNDS_NIGHTLY: usize = 100;

const SIGTERM: i32 = 15;
const SIGSTOP: i32 = 19;

const SCRIPT: &str = "<?php echo 'page ', $_SERVER['REQUEST_METHOD'];";
const CHECKPOINT: &str = "<?php Samovar\\checkpoint(); echo 'page ', $_SERVER['REQUEST_METHOD'];";
const RESIDENT: &str =
    "<?php Samovar\\serve(fn ($request) => new Samovar\\Response('page ' . $request->method()));";

/// The processes of a server, by its folder's name in their environment.
fn processes(server: &Server) -> usize {
    let (name, value) = server.marker();
    samovar_testkit::family::with(name, &value).len()
}

/// What lies in its folder and below.
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

/// Connections to the server's socket for commands, and to its pages, that may be open at a look: fewer than a descriptor for each
/// upgrade or attempt would come to.
const DESCRIPTORS_LATER: u64 = 2;

/// What a server has beside its pages.
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

    /// Waits until nothing more is there. Connections that end are noticed a moment later, descriptors with them.
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

/// Upgrades it again and again, and nobody who asks meanwhile is refused or left without an answer.
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
fn no_request_is_lost_in_the_script_model() {
    again_and_again(Server::script(SCRIPT), ROUNDS);
}

#[test]
fn no_request_is_lost_in_the_checkpoint_model() {
    again_and_again(Server::script(CHECKPOINT), ROUNDS);
}

#[test]
fn no_request_is_lost_in_the_resident_model() {
    again_and_again(Server::script(RESIDENT), ROUNDS);
}

#[test]
fn no_request_is_lost_by_several_threads() {
    let start = Server::script(CHECKPOINT).args(["--front-threads", "3"]);
    again_and_again(start, ROUNDS_OF_THREADS);
}

#[test]
#[ignore = "takes minutes: make nightly"]
fn a_hundred_times() {
    for php in [SCRIPT, CHECKPOINT, RESIDENT] {
        again_and_again(Server::script(php), ROUNDS_NIGHTLY);
    }
}
