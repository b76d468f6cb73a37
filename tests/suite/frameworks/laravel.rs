//! tests/apps/laravel-notes: Laravel on Debian's packages, in each execution model beside php-fpm.
//!
//! No line of it changes between the models; what does is the front controller that is served:
//! Laravel's own, one for `symfony/runtime`, Octane's, and a worker script for FrankenPHP.

mod artisan;
mod everybody;
mod steps;

use crate::frameworks::crowd::crowd;
use crate::frameworks::reloads::while_reloading;
use samovar_testkit::copy::copy_of;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::compare;
use samovar_testkit::{Oracle, Server, eventually, workspace};
use std::path::Path;
use tempfile::TempDir;

/// A way to serve the application.
pub(crate) struct Way {
    /// What is served, below `public/`.
    target: &'static str,
    /// Further arguments of `samovar serve`.
    args: &'static [&'static str],
    /// What `samovar status` says of its workers.
    model: &'static str,
}

const SCRIPT: Way = Way { target: "", args: &[], model: "script" };
/// Not a line says that it is checkpointed.
const CHECKPOINT: Way = Way {
    target: "index.php",
    args: &["--checkpoint-after", "bootstrap/app.php"],
    model: "checkpoint",
};
pub(crate) const RUNTIME: Way = Way { target: "runtime.php", args: &[], model: "checkpoint" };
pub(crate) const OCTANE: Way = Way { target: "samovar-worker.php", args: &[], model: "resident" };
const FRANKENPHP: Way = Way { target: "frankenphp-worker.php", args: &[], model: "resident" };
const FRANKENPHP_ROLLED_BACK: Way =
    Way { target: "frankenphp-worker.php", args: &["--rollback-every", "1"], model: "checkpoint" };
/// It resets nothing: the rollback alone keeps its visitors apart.
const NAIVE_ROLLED_BACK: Way =
    Way { target: "naive-worker.php", args: &["--rollback-every", "1"], model: "checkpoint" };

/// What differs between two runs.
const RULES: &[Rule] = &[
    Rule { name: "session", before: "set-cookie: notes_session=", after: ";" },
    Rule { name: "token", before: "set-cookie: XSRF-TOKEN=", after: ";" },
    Rule { name: "encrypted", before: "set-cookie: favourite_locale=", after: ";" },
    Rule { name: "later", before: "expires=", after: ";" },
    // What is left of them, to the second.
    Rule { name: "two hours", before: "Max-Age=7", after: ";" },
    Rule { name: "an hour", before: "Max-Age=3", after: ";" },
    Rule { name: "token", before: "name=\"csrf-token\" content=\"", after: "\"" },
    Rule { name: "token", before: "name=\"_token\" value=\"", after: "\"" },
    Rule { name: "dump", before: "sf-dump-", after: " " },
    Rule { name: "dump", before: "Sfdump(\"sf-dump-", after: "\"" },
    // Whole seconds of a minute that began in another second.
    Rule { name: "a minute", before: "retry-after: ", after: "\n" },
];

/// A copy of the application with its tables made.
pub(crate) struct Copy {
    folder: TempDir,
}

impl Copy {
    pub(crate) fn new(session_driver: &str) -> Copy {
        let folder = copy_of(&workspace().join("tests/apps/laravel-notes"));
        let settings = format!("SESSION_DRIVER={session_driver}\n");
        std::fs::write(folder.path().join(".env"), settings).expect("our own folder");
        // A copy of what was served by hand has one already.
        std::fs::write(folder.path().join("database/database.sqlite"), "").expect("our own folder");
        artisan::run(folder.path(), &["migrate", "--force"]);
        // Laravel 8 writes a compiled view in place: who asks at the same time may read none of it.
        artisan::run(folder.path(), &["view:cache"]);
        Copy { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn serve(&self, way: &Way) -> Server {
        self.serve_with(way, "")
    }

    pub(crate) fn serve_with(&self, way: &Way, config: &str) -> Server {
        let package = workspace().join("php").display().to_string();
        let mut start = Server::at(self.path().join("public").join(way.target))
            .relinked()
            .workers(2)
            .config(config)
            .env("RUNTIME_PACKAGE", &package);
        for pair in way.args.chunks(2) {
            let value = match pair[0] {
                "--checkpoint-after" => self.path().join(pair[1]).display().to_string(),
                _ => pair[1].to_owned(),
            };
            start = start.args([pair[0], &value]);
        }
        let server = start.start();
        eventually(&format!("workers of the model {}", way.model), || {
            let workers = server.status()["workers"].clone();
            let workers = workers.as_array().expect("a list");
            let are_there = !workers.is_empty() && workers.iter().all(|w| w["model"] == way.model);
            // Where nothing says that it is booted ahead, the first request finds out.
            are_there.then_some(()).or_else(|| {
                server.get("/style.css");
                server.get("/api/echo");
                None
            })
        });
        server
    }
}

/// Both sides, on copies of their own.
fn beside_the_oracle(
    way: &Way,
    session_driver: &str,
    visit: impl Fn(&Server, &Side, &Side) -> usize,
) {
    let (our_copy, their_copy) = (Copy::new(session_driver), Copy::new(session_driver));
    let ours = our_copy.serve(way);
    let theirs = Oracle::start(&their_copy.path().join("public"));
    let count = visit(
        &ours,
        &Side { address: ours.address(), folder: our_copy.path(), own: ours.folder() },
        &Side { address: theirs.address(), folder: their_copy.path(), own: theirs.folder() },
    );
    println!("laravel {} {:?}, {session_driver}: {count} answers equal", way.target, way.args);
    let models = ours.status()["workers"].clone();
    let models = models.as_array().expect("a list");
    assert!(models.iter().all(|worker| worker["model"] == way.model), "{models:?}\n{}", ours.log());
    ours.stop();
}

fn walk(way: &Way, session_driver: &str, steps: fn(&mut Visitor)) {
    beside_the_oracle(way, session_driver, |_, ours, theirs| compare(steps, RULES, ours, theirs));
}

fn visit_by_all(way: &Way, session_driver: &str) {
    beside_the_oracle(way, session_driver, |_, ours, theirs| everybody(ours, theirs));
}

fn everybody(ours: &Side, theirs: &Side) -> usize {
    // The framework's own error pages: `view:cache` does not know them (see `Copy::new`).
    for side in [ours, theirs] {
        steps::errors(&mut Visitor::new(side.address));
    }
    crowd(&everybody::PLAN, ours, theirs)
}

/// The crowd's answers are the same, whoever takes over from whom meanwhile.
#[test]
fn a_crowd_of_laravel_does_not_notice_reloads() {
    for way in [&RUNTIME, &OCTANE, &FRANKENPHP] {
        beside_the_oracle(way, "file", |server, ours, theirs| {
            while_reloading(server, || everybody(ours, theirs))
        });
    }
}

/// Laravel takes what stands behind `/index.php` for the path: a location that refuses the path refuses that, too.
#[test]
fn laravel_answers_no_refused_route_behind_its_scripts_name() {
    let copy = Copy::new("file");
    let open = copy.serve(&SCRIPT);
    let refused = copy.serve_with(&SCRIPT, "[[location]]\npath = \"/whoami\"\ndeny = true\n");
    for target in [
        "/whoami",
        "/index.php/whoami",
        "/index.php//whoami",
        "//index.php/./whoami",
        "/index%2ephp/%77hoami",
    ] {
        let routed = open.get(target).status;
        assert!(routed == 200 || routed == 404, "{target}: {routed}");
        let answer = refused.get(target);
        assert_eq!(answer.status, 403, "{target}: {}", answer.text());
    }
    assert_eq!(open.get("/index.php/whoami").status, 200, "Laravel routes it");
    assert_eq!(refused.get("/index.php/opened").status, open.get("/index.php/opened").status);
    refused.stop();
    open.stop();
}

#[test]
fn laravel_is_the_oracles() {
    walk(&SCRIPT, "file", steps::all_by_name);
}

#[test]
fn laravel_checkpointed_after_a_file_is_the_oracles() {
    walk(&CHECKPOINT, "file", steps::all_by_name);
}

#[test]
fn laravel_checkpointed_by_the_runtime_is_the_oracles() {
    walk(&RUNTIME, "database", steps::all);
}

#[test]
fn laravel_under_octane_is_the_oracles() {
    walk(&OCTANE, "file", steps::all_but_fatal);
}

#[test]
fn laravel_as_a_worker_of_frankenphp_is_the_oracles() {
    walk(&FRANKENPHP, "database", steps::all_but_fatal);
}

#[test]
fn laravel_as_a_worker_of_frankenphp_rolled_back_is_the_oracles() {
    walk(&FRANKENPHP_ROLLED_BACK, "file", steps::all);
}

#[test]
fn laravel_as_a_naive_worker_rolled_back_is_the_oracles() {
    walk(&NAIVE_ROLLED_BACK, "database", steps::all);
}

#[test]
fn a_crowd_of_laravel_as_a_naive_worker_rolled_back_is_the_oracles() {
    visit_by_all(&NAIVE_ROLLED_BACK, "file");
}

#[test]
fn a_crowd_of_laravel_checkpointed_is_the_oracles() {
    visit_by_all(&CHECKPOINT, "file");
}

#[test]
fn a_crowd_of_laravel_checkpointed_by_the_runtime_is_the_oracles() {
    visit_by_all(&RUNTIME, "database");
}

#[test]
fn a_crowd_of_laravel_as_a_worker_of_frankenphp_is_the_oracles() {
    visit_by_all(&FRANKENPHP, "file");
}

#[test]
fn a_crowd_of_laravel_as_a_worker_of_frankenphp_rolled_back_is_the_oracles() {
    visit_by_all(&FRANKENPHP_ROLLED_BACK, "file");
}

#[test]
fn a_fatal_error_in_a_resident_laravel_is_one_requests() {
    for way in [&OCTANE, &FRANKENPHP] {
        let copy = Copy::new("file");
        let server = copy.serve(way);
        let answer = server.get("/fatal");
        // Laravel's error page comes from a shutdown function of the boot, which is no request's.
        assert_eq!((answer.status, answer.text().as_str()), (500, ""), "{}", way.target);
        assert_eq!(server.get("/").status, 200, "{}", server.log());
        server.wait_for_log("Allowed memory size of");
        server.stop();
    }
}
