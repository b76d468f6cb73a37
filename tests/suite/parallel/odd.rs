//! Requests that end at unusual points while tasks run, in random order. No state of them is left,
//! and no response contains data of another request.
//!
//! `TASKS_SEED` repeats an order, `TASKS_REQUESTS` makes it longer: `make interrupted`.

use crate::parallel::ends::{open, stacks};
use crate::parallel::peers::{MODELS, Peers, ask};
use samovar_testkit::http::Request;
use samovar_testkit::order::{Order, number_of, seed};
use samovar_testkit::{Server, eventually};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Number of requests for all models together.
const REQUESTS: usize = 500;
/// The last requests of each model end no process, so that leftover state can be counted.
const LAST: usize = 100;
/// Tolerance for temporary memory mappings.
const MAPPINGS: usize = 60;
const TASKS_MAX: usize = 4;
const AFTER_US_MAX: usize = 4000;

const WORKS: [&str; 13] = [
    "open",
    "kept",
    "pool",
    "pool open",
    "mysql",
    "redis",
    "deaf",
    "fiber",
    "child",
    "buffer",
    "finally",
    "lock",
    "nested",
];
const ENDS: [&str; 9] =
    ["return", "cancel", "await", "exit", "fatal", "memory", "exception", "time", "abort"];
/// A killed worker costs a boot, so this is rare.
const KILL_EVERY: usize = 60;

#[test]
fn tasks_ended_at_random_points_leave_no_state() {
    let seed = seed("TASKS_SEED");
    let requests = number_of("TASKS_REQUESTS").map_or(REQUESTS, |n| n as usize) / MODELS.len();
    let peers = Peers::start();
    std::thread::scope(|scope| {
        for (number, model) in MODELS.iter().enumerate() {
            let peers = &peers;
            scope.spawn(move || Visits::of(peers, model).all(Order::new(seed, number), requests));
        }
    });
    // For all three models together, because they use one database.
    let server = peers.asked_by("script").start();
    eventually("nobody holds a connection or a transaction", || {
        let left = ask(&server, "/odd/seen");
        let none =
            ["connections", "transactions", "my connections"].map(|name| left[name].as_u64());
        assert_eq!(left["never"], 0, "rows of transactions that were never ended: {left}");
        (none == [Some(0); 3]).then_some(())
    });
    server.stop();
}

/// Requests to one server.
struct Visits {
    model: &'static str,
    server: Server,
    /// Folder with the record of the stored rows.
    kept: tempfile::TempDir,
}

impl Visits {
    fn of(peers: &Peers, model: &'static str) -> Visits {
        let kept = tempfile::TempDir::with_prefix("samovar-odd-").expect("a temporary folder");
        let path = kept.path().join("kept");
        let start = peers.asked_by(model).env("ODD", path.to_str().expect("our own name"));
        Visits { model, server: start.start(), kept }
    }

    fn all(self, mut order: Order, requests: usize) {
        // Two concurrent requests may both find that a table is missing.
        eventually("the tables are there", || {
            (self.server.get("/odd/prepare").status == 200).then_some(())
        });
        for number in 0..requests.saturating_sub(LAST) {
            self.visit(&mut order, number, KILL_EVERY);
        }
        self.rests();
        for end in ENDS {
            self.request(&format!("{}-warm", self.model), end, "task", "kept,deaf", 0);
        }
        self.rests();
        let (before, mapped) = (open(&self.server), stacks(&self.server));
        for number in requests..requests + LAST {
            self.visit(&mut order, number, usize::MAX);
        }
        eventually(&format!("{}: the worker holds nothing", self.model), || {
            self.rests();
            (open(&self.server) == before).then_some(())
        });
        let now = stacks(&self.server);
        assert!(now <= mapped + MAPPINGS, "{}: {mapped} mappings, then {now}", self.model);
        self.kept_is_there();
        let log = self.server.stop();
        assert!(!log.contains("CROSSED"), "{}: {log}", self.model);
        assert!(!log.contains("could not be ended"), "{}: {log}", self.model);
    }

    fn visit(&self, order: &mut Order, number: usize, kill_every: usize) {
        let who = format!("{}-{number}", self.model);
        let kills = kill_every != usize::MAX && order.next(kill_every) == 0;
        let how = if kills { "kill" } else { ENDS[order.next(ENDS.len())] };
        let place = ["task", "driver"][order.next(2)];
        let count = 1 + order.next(TASKS_MAX);
        let works: Vec<_> = (0..count).map(|_| WORKS[order.next(WORKS.len())]).collect();
        self.request(&who, how, place, &works.join(","), order.next(AFTER_US_MAX));
    }

    fn request(&self, who: &str, how: &str, place: &str, works: &str, after_us: usize) {
        let works = works.replace(' ', "+");
        let target = format!("/odd?who={who}&how={how}&in={place}&works={works}&after={after_us}");
        if how == "abort" {
            let mut client = self.server.client();
            client.send(&Request::get(&target).bytes());
            let _ = client.read_head();
            return;
        }
        let text = self.server.get(&target).text();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let is_visitor = MODELS.iter().any(|m| word.starts_with(&format!("{m}-")));
            assert!(!is_visitor || word.starts_with(who), "{target}: {text}");
        }
    }

    /// Checks that all pooled connections are usable, and none is missing.
    fn rests(&self) {
        assert_eq!(
            ask(&self.server, "/odd/rest"),
            json!(["a", "b", "c", "d", "e", "f"]),
            "{}",
            self.model
        );
    }

    fn kept_is_there(&self) {
        let told = ask(&self.server, "/odd/seen");
        let rows: BTreeSet<&str> =
            told["rows"].as_array().into_iter().flatten().filter_map(|row| row.as_str()).collect();
        for who in lines(&self.kept.path().join("kept")) {
            assert!(rows.contains(who.as_str()), "{who} was committed");
        }
    }
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
