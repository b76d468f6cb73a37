//! `php artisan` next to a server: migrations, and a queue worker that handles jobs dispatched over
//! HTTP.

use super::{CHECKPOINT, Copy, FRANKENPHP, OCTANE, RUNTIME, steps};
use crate::frameworks::guide::console_workers;
use samovar_testkit::visitor::Visitor;
use samovar_testkit::{eventually, php};
use std::path::Path;
use std::process::Command;

/// Runs `artisan` with PHP's own program and returns its output.
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

/// Number of the application's jobs that a queue worker reports as done: `Processed: …` in Laravel
/// 8, `… DONE` in later versions.
fn jobs_done(log: &str) -> usize {
    let of_jobs = log.lines().filter(|line| line.contains(r"App\Jobs\Summarise"));
    of_jobs.filter(|line| line.contains("Processed:") || line.contains(" DONE")).count()
}

#[test]
fn artisan_queue_worker_handles_jobs_dispatched_over_http() {
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

/// Queue workers next to HTTP, configured as in the guide.
#[test]
fn laravel_queue_console_worker_handles_jobs_next_to_http() {
    for way in [&CHECKPOINT, &OCTANE] {
        let copy = Copy::new("file");
        let server = copy.serve_with(way, &console_workers("laravel"));
        let mut visitor = Visitor::new(server.address());
        steps::register(&mut visitor, "ann");
        // One job at a time: a transaction of SQLite that reads before it writes fails next to
        // another writer, and Laravel then handles the job again after 90 s.
        for (notes, title, text) in [(1, "First", "one two three"), (2, "Second", "a b c d")] {
            steps::store(&mut visitor, title, text, None);
            let summary = format!("<p>{} words</p>", text.split(' ').count());
            eventually("the job is done", || {
                visitor.get("/notes").text().contains(&summary).then_some(())
            });
            // A job is removed from the queue after its handler has finished.
            let empty = format!("1 users, {notes} notes, 0 jobs\n");
            eventually("an empty queue", || {
                (run(copy.path(), &["notes:count"]) == empty).then_some(())
            });
        }
        let log = server.stop();
        assert_eq!(jobs_done(&log), 2, "{log}");
        assert!(!log.contains("did not exit within"), "{log}");
    }
}

#[test]
fn artisan_lists_routes_and_rolls_back_migrations() {
    let copy = Copy::new("file");
    let routes = run(copy.path(), &["route:list"]);
    assert!(routes.contains("notes/{note}/attachment"), "{routes}");
    run(copy.path(), &["migrate:rollback", "--force"]);
    let status = run(copy.path(), &["migrate:status"]);
    // A table in Laravel 8, a list in later versions.
    let waiting = status
        .lines()
        .filter(|line| line.contains("| No ") || line.trim_end().ends_with(" Pending"));
    assert_eq!(waiting.count(), 2, "{status}");
}
