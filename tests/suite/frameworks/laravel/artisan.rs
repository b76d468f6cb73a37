//! `php artisan` beside a server: migrations, and a worker of the queue that handles what was
//! dispatched over HTTP.

use super::{CHECKPOINT, Copy, FRANKENPHP, OCTANE, RUNTIME, steps};
use crate::frameworks::guide::console_workers;
use samovar_testkit::visitor::Visitor;
use samovar_testkit::{eventually, php};
use std::path::Path;
use std::process::Command;

/// Runs it with PHP's own program and returns what it printed.
pub(super) fn run(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(php::program("php"))
        .arg("artisan")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .expect("php runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "php artisan {args:?}: {text}\n{output:?}");
    text
}

/// How many of the application's jobs a queue worker says that it has done: `Processed: …` in Laravel 8,
/// `… DONE` in later ones.
fn jobs_done(log: &str) -> usize {
    let of_jobs = log.lines().filter(|line| line.contains(r"App\Jobs\Summarise"));
    of_jobs.filter(|line| line.contains("Processed:") || line.contains(" DONE")).count()
}

#[test]
fn a_queue_worker_of_laravel_handles_what_requests_have_dispatched() {
    for way in [&CHECKPOINT, &RUNTIME, &OCTANE, &FRANKENPHP] {
        let copy = Copy::new("file");
        let server = copy.serve(way);
        let mut visitor = Visitor::new(server.address());
        steps::register(&mut visitor, "ann");
        steps::store(&mut visitor, "First", "one two three", None);
        steps::store(&mut visitor, "Second", "one two three four", None);
        assert_eq!(visitor.get("/notes").text().matches("<p>waits</p>").count(), 2);
        assert_eq!(run(copy.path(), &["notes:count"]), "1 users, 2 notes, 2 jobs\n");

        let log = run(copy.path(), &["queue:work", "--stop-when-empty"]);
        assert_eq!(jobs_done(&log), 2, "{log}");
        assert_eq!(run(copy.path(), &["notes:count"]), "1 users, 2 notes, 0 jobs\n");
        let page = visitor.get("/notes").text();
        for summary in ["<p>3 words</p>", "<p>4 words</p>"] {
            assert!(page.contains(summary), "{}: {summary} in {page}", way.target);
        }
        assert!(!page.contains("<p>waits</p>"), "{page}");
        server.stop();
    }
}

/// As the guide has it: workers of the queue beside HTTP.
#[test]
fn a_queue_is_worked_off_beside_http() {
    for way in [&CHECKPOINT, &OCTANE] {
        let copy = Copy::new("file");
        let server = copy.serve_with(way, &console_workers("laravel"));
        let mut visitor = Visitor::new(server.address());
        steps::register(&mut visitor, "ann");
        steps::store(&mut visitor, "First", "one two three", None);
        steps::store(&mut visitor, "Second", "one two three four", None);
        eventually("both jobs are done", || {
            let page = visitor.get("/notes").text();
            (page.contains("<p>3 words</p>") && page.contains("<p>4 words</p>")).then_some(())
        });
        // A job leaves the queue when its handler is done.
        eventually("an empty queue", || {
            let count = run(copy.path(), &["notes:count"]);
            (count == "1 users, 2 notes, 0 jobs\n").then_some(())
        });
        let log = server.stop();
        assert_eq!(jobs_done(&log), 2, "{log}");
        assert!(!log.contains("has not left within"), "{log}");
    }
}

#[test]
fn artisan_shows_laravels_routes_and_rolls_its_migrations_back() {
    let copy = Copy::new("file");
    let routes = run(copy.path(), &["route:list"]);
    assert!(routes.contains("notes/{note}/attachment"), "{routes}");
    run(copy.path(), &["migrate:rollback", "--force"]);
    let status = run(copy.path(), &["migrate:status"]);
    // A table in Laravel 8, a list in later ones.
    let waiting = status
        .lines()
        .filter(|line| line.contains("| No ") || line.trim_end().ends_with(" Pending"));
    assert_eq!(waiting.count(), 2, "{status}");
}
