//! tests/apps/laravel-notes: Laravel on Debian's packages, in each execution model, compared with
//! php-fpm.
//!
//! The application is the same in all models. Only the front controller differs: Laravel's own, one
//! for `symfony/runtime`, Octane's, and a worker script for FrankenPHP.

mod artisan;
mod everybody;
mod own_queue;
mod scheduler;
pub(crate) mod steps;

use crate::frameworks::crowd::crowd;
use crate::frameworks::reloads::while_reloading;
use samovar_testkit::copy::copy_of;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::compare;
use samovar_testkit::{Oracle, Server, Start, eventually, workspace};
use std::path::Path;
use tempfile::TempDir;

/// A way to serve the application.
pub(crate) struct Way {
    /// The served path, below `public/`.
    target: &'static str,
    /// Additional arguments of `samovar serve`.
    args: &'static [&'static str],
    /// Model of the workers in `samovar status`.
    model: &'static str,
}

const SCRIPT: Way = Way { target: "", args: &[], model: "script" };
/// The application's code contains no call for the checkpoint.
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
/// This script resets nothing; only the rollback separates its visitors.
const NAIVE_ROLLED_BACK: Way =
    Way { target: "naive-worker.php", args: &["--rollback-every", "1"], model: "checkpoint" };

/// Masks for text that differs between two runs.
pub(crate) const RULES: &[Rule] = &[
    Rule { name: "session", before: "set-cookie: notes_session=", after: ";" },
    Rule { name: "token", before: "set-cookie: XSRF-TOKEN=", after: ";" },
    Rule { name: "encrypted", before: "set-cookie: favourite_locale=", after: ";" },
    Rule { name: "later", before: "expires=", after: ";" },
    // Remaining lifetime in seconds.
    Rule { name: "two hours", before: "Max-Age=7", after: ";" },
    Rule { name: "an hour", before: "Max-Age=3", after: ";" },
    Rule { name: "token", before: "name=\"csrf-token\" content=\"", after: "\"" },
    Rule { name: "token", before: "name=\"_token\" value=\"", after: "\"" },
    Rule { name: "dump", before: "sf-dump-", after: " " },
    Rule { name: "dump", before: "Sfdump(\"sf-dump-", after: "\"" },
    // Remaining seconds of a minute that started at different times.
    Rule { name: "a minute", before: "retry-after: ", after: "\n" },
];

/// A copy of the application with its database tables.
pub(crate) struct Copy {
    folder: TempDir,
}

impl Copy {
    pub(crate) fn new(session_driver: &str) -> Copy {
        Copy::with(&format!("SESSION_DRIVER={session_driver}\n"))
    }

    /// With these environment variables.
    pub(crate) fn with(settings: &str) -> Copy {
        let folder = copy_of(&workspace().join("tests/apps/laravel-notes"));
        std::fs::write(folder.path().join(".env"), settings).expect("our own folder");
        // Replaces the database of a working copy that was served by hand.
        std::fs::write(folder.path().join("database/database.sqlite"), "").expect("our own folder");
        artisan::run(folder.path(), &["migrate", "--force"]);
        // Laravel 8 writes a compiled view in place, so a concurrent request may read an incomplete
        // one.
        artisan::run(folder.path(), &["view:cache"]);
        Copy { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn serve(&self, way: &Way) -> Server {
        self.serve_with(way, "")
    }

    pub(crate) fn serve_with(&self, way: &Way, config: &str) -> Server {
        self.start_with(way, |start| start.config(config))
    }

    pub(crate) fn start_with(&self, way: &Way, change: impl FnOnce(Start) -> Start) -> Server {
        let package = workspace().join("php").display().to_string();
        let target = self.path().join("public").join(way.target);
        let mut start = Server::at(target).relinked().workers(2).env("RUNTIME_PACKAGE", &package);
        for pair in way.args.chunks(2) {
            let value = match pair[0] {
                "--checkpoint-after" => self.path().join(pair[1]).display().to_string(),
                _ => pair[1].to_owned(),
            };
            start = start.args([pair[0], &value]);
        }
        let server = change(start).start();
        eventually(&format!("workers of the model {}", way.model), || {
            let workers = server.status()["workers"].clone();
            let workers = workers.as_array().expect("a list");
            let are_there = !workers.is_empty() && workers.iter().all(|w| w["model"] == way.model);
            // If neither the text nor the settings name a checkpoint, the first request detects it.
            are_there.then_some(()).or_else(|| {
                server.get("/style.css");
                server.get("/api/echo");
                None
            })
        });
        server
    }
}

/// Starts both sides, each on its own copy, and runs `visit`.
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
    // Compiles the framework's own error pages, which `view:cache` does not include (see
    // `Copy::new`).
    for side in [ours, theirs] {
        steps::errors(&mut Visitor::new(side.address));
    }
    crowd(&everybody::PLAN, ours, theirs)
}

/// The crowd's responses are the same while generations replace each other.
#[test]
fn laravel_crowd_during_reloads_matches_php_fpm() {
    for way in [&RUNTIME, &OCTANE, &FRANKENPHP] {
        beside_the_oracle(way, "file", |server, ours, theirs| {
            while_reloading(server, || everybody(ours, theirs))
        });
    }
}

/// Laravel uses the text after `/index.php` as the path. A location that denies a path also denies
/// this form.
#[test]
fn denied_path_after_script_name_is_denied_in_laravel() {
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
        let response = refused.get(target);
        assert_eq!(response.status, 403, "{target}: {}", response.text());
    }
    assert_eq!(open.get("/index.php/whoami").status, 200, "Laravel routes it");
    assert_eq!(refused.get("/index.php/opened").status, open.get("/index.php/opened").status);
    refused.stop();
    open.stop();
}

#[test]
fn laravel_script_model_matches_php_fpm() {
    walk(&SCRIPT, "file", steps::all_by_name);
}

#[test]
fn laravel_checkpoint_after_file_matches_php_fpm() {
    walk(&CHECKPOINT, "file", steps::all_by_name);
}

#[test]
fn laravel_checkpoint_by_runtime_matches_php_fpm() {
    walk(&RUNTIME, "database", steps::all);
}

#[test]
fn laravel_octane_matches_php_fpm() {
    walk(&OCTANE, "file", steps::all_but_fatal);
}

#[test]
fn laravel_frankenphp_worker_matches_php_fpm() {
    walk(&FRANKENPHP, "database", steps::all_but_fatal);
}

#[test]
fn laravel_frankenphp_worker_with_rollback_matches_php_fpm() {
    walk(&FRANKENPHP_ROLLED_BACK, "file", steps::all);
}

#[test]
fn laravel_naive_worker_with_rollback_matches_php_fpm() {
    walk(&NAIVE_ROLLED_BACK, "database", steps::all);
}

#[test]
fn laravel_crowd_on_naive_worker_with_rollback_matches_php_fpm() {
    visit_by_all(&NAIVE_ROLLED_BACK, "file");
}

#[test]
fn laravel_crowd_on_checkpoint_after_file_matches_php_fpm() {
    visit_by_all(&CHECKPOINT, "file");
}

#[test]
fn laravel_crowd_on_checkpoint_by_runtime_matches_php_fpm() {
    visit_by_all(&RUNTIME, "database");
}

#[test]
fn laravel_crowd_on_frankenphp_worker_matches_php_fpm() {
    visit_by_all(&FRANKENPHP, "file");
}

#[test]
fn laravel_crowd_on_frankenphp_worker_with_rollback_matches_php_fpm() {
    visit_by_all(&FRANKENPHP_ROLLED_BACK, "file");
}

#[test]
fn fatal_error_in_resident_laravel_affects_own_request_only() {
    for way in [&OCTANE, &FRANKENPHP] {
        let copy = Copy::new("file");
        let server = copy.serve(way);
        let response = server.get("/fatal");
        // Laravel's error page comes from a shutdown function registered by the boot, so no request
        // runs it.
        assert_eq!((response.status, response.text().as_str()), (500, ""), "{}", way.target);
        assert_eq!(server.get("/").status, 200, "{}", server.log());
        server.wait_for_log("Allowed memory size of");
        server.stop();
    }
}
