//! Laravel's queue in a `[[queue]]` of the server, with the files of the guide
//! (docs/guide/queues-in-frameworks.md).

use super::artisan::run;
use super::{CHECKPOINT, Copy, RUNTIME, steps};
use crate::frameworks::guide::block;
use samovar_testkit::visitor::Visitor;
use samovar_testkit::{Server, eventually, workspace};
use serde_json::Value;
use std::path::Path;

const PAGE: &str = "queues-in-frameworks";

/// Writes a line per run.
const JOB: &str = r#"<?php
namespace App\Jobs;
final class Probe implements \Illuminate\Contracts\Queue\ShouldQueue
{
    use \Illuminate\Foundation\Bus\Dispatchable;
    use \Illuminate\Queue\InteractsWithQueue;
    use \Illuminate\Bus\Queueable;
    private float $pushed;
    public function __construct(public string $kind) { $this->pushed = microtime(true); }
    public function handle(): void
    {
        $when = microtime(true) - $this->pushed < 1 ? 'early' : 'late';
        $this->note("$this->kind {$this->attempts()}" . ($this->kind === 'later' ? " $when" : ''));
        if ($this->kind === 'fail') { throw new \RuntimeException('this job is poison'); }
    }
    public function failed($thrown): void { $this->note($thrown->getMessage()); }
    private function note(string $line): void
    {
        file_put_contents(base_path('ran'), "$line\n", FILE_APPEND | LOCK_EX);
    }
}
"#;

/// Dispatches jobs.
const ROUTE: &str = r"
Route::get('/jobs/{kind}', static function (string $kind) {
    match ($kind) {
        'later' => App\Jobs\Probe::dispatch($kind)->delay(1),
        'bulk' => Illuminate\Support\Facades\Queue::bulk([
            new App\Jobs\Probe('first'),
            new App\Jobs\Probe('second'),
        ]),
        default => App\Jobs\Probe::dispatch($kind),
    };
    return ['size' => Illuminate\Support\Facades\Queue::size()];
});
";

fn append(file: &Path, text: &str) {
    let before = std::fs::read_to_string(file).expect("our own file");
    std::fs::write(file, before + text).expect("our own file");
}

/// Does the work of `composer require samovar/runtime`, and adds the files of the guide. Returns
/// the settings of the queue.
fn move_to_samovar(copy: &Copy) -> String {
    let at = |name: &str| copy.path().join(name);
    let package = format!("require_once '{}/php/autoload.php';\n", workspace().display());
    append(&at("bootstrap/autoload.php"), &package);
    let app = std::fs::read_to_string(at("config/app.php")).expect("our own file");
    let provider =
        "'providers' => [\n        Samovar\\Runtime\\Laravel\\QueueServiceProvider::class,";
    std::fs::write(at("config/app.php"), app.replace("'providers' => [", provider))
        .expect("a file");
    std::fs::create_dir(at("vendor")).expect("our own folder");
    std::fs::write(
        at("vendor/autoload.php"),
        "<?php require __DIR__ . '/../bootstrap/autoload.php';",
    )
    .expect("our own file");
    append(&at(".env"), &block(PAGE, "QUEUE_CONNECTION=samovar"));
    std::fs::create_dir(at("jobs")).expect("our own folder");
    std::fs::write(at("jobs/laravel.php"), block(PAGE, "// jobs/laravel.php")).expect("a file");
    std::fs::write(at("app/Jobs/Probe.php"), JOB).expect("our own file");
    append(&at("routes/api.php"), ROUTE);
    let table = block(PAGE, "handler = \"jobs/laravel.php\"");
    table.replace("jobs/laravel.php", &at("jobs/laravel.php").display().to_string())
        + &format!("backoff = '10ms'\n[jobs]\nstore = '{}'\n", at("jobs.store").display())
}

fn dispatch(server: &Server, kind: &str) -> Value {
    let text = server.get(&format!("/api/jobs/{kind}")).text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}\n{}", server.log()))
}

fn wait_for_lines(folder: &Path, expected: &[&str]) {
    eventually(&format!("the lines {expected:?}"), || {
        let text = std::fs::read_to_string(folder.join("ran")).unwrap_or_default();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        (lines == expected).then_some(())
    });
}

#[test]
fn laravel_jobs_in_a_queue_of_the_server_are_run_retried_delayed_and_failed() {
    for way in [&CHECKPOINT, &RUNTIME] {
        let copy = Copy::new("file");
        let settings = move_to_samovar(&copy);
        let server = copy.serve_with(way, &settings);
        assert_eq!(dispatch(&server, "later")["size"], 1);
        let mut visitor = Visitor::new(server.address());
        steps::register(&mut visitor, "ann");
        steps::store(&mut visitor, "First", "one two three", None);
        eventually("the note has a summary", || {
            visitor.get("/notes").text().contains("<p>3 words</p>").then_some(())
        });
        dispatch(&server, "bulk");
        dispatch(&server, "fail");
        wait_for_lines(
            copy.path(),
            &[
                "fail 1",
                "fail 2",
                "fail 3",
                "first 1",
                "later 1 late",
                "second 1",
                "this job is poison",
            ],
        );
        let failed = eventually("a failed job", || {
            let failed = run(copy.path(), &["queue:failed"]);
            failed.contains("samovar").then_some(failed)
        });
        assert!(failed.contains(r"App\Jobs\Probe"), "{failed}");
        eventually("an empty queue", || {
            let queue = server.status()["queues"][0].clone();
            let is_empty = ["ready", "delayed", "running", "dead"].iter().all(|of| queue[of] == 0);
            is_empty.then_some(())
        });
        assert_eq!(run(copy.path(), &["notes:count"]), "1 users, 1 notes, 0 jobs\n");
        server.stop();
    }
}

/// Without a provider of failed jobs, the server keeps them.
#[test]
fn laravel_job_is_dead_if_the_application_keeps_no_failed_jobs() {
    let copy = Copy::new("file");
    let settings = move_to_samovar(&copy);
    let file = copy.path().join("config/queue.php");
    let config = std::fs::read_to_string(&file).expect("our own file");
    std::fs::write(&file, config.replace("'database-uuids'", "'null'")).expect("our own file");
    let server = copy.serve_with(&CHECKPOINT, &settings);
    dispatch(&server, "fail");
    eventually("a dead job", || (server.status()["queues"][0]["dead"] == 1).then_some(()));
    server.wait_for_log("a job is dead: RuntimeException: this job is poison");
    server.stop();
}
