//! Laravel's `schedule:run` as a `[[schedule]]`, with the settings of the guide
//! (docs/guide/schedules.md).

use super::{CHECKPOINT, Copy};
use crate::frameworks::guide::block;
use samovar_testkit::{binary, eventually};
use std::process::Command;

const TASKS: &str = r#"
    protected function schedule(\Illuminate\Console\Scheduling\Schedule $schedule): void
    {
        $note = static function (): void {
            file_put_contents(base_path('ran'), 'a callback in ' . PHP_SAPI . "\n", FILE_APPEND);
        };
        $schedule->call($note)->everyMinute();
        $schedule->command('notes:count')->everyMinute()->appendOutputTo(base_path('ran'));
        $schedule->command('notes:count')->yearlyOn(2, 30)->appendOutputTo(base_path('ran'));
    }

    protected function commands(): void
"#;

#[test]
fn laravel_schedule_run_starts_callbacks_and_commands() {
    let copy = Copy::new("file");
    let at = |name: &str| copy.path().join(name);
    let kernel = std::fs::read_to_string(at("app/Console/Kernel.php")).expect("our own file");
    let with_tasks = kernel.replace("    protected function commands(): void\n", &TASKS[1..]);
    assert_ne!(kernel, with_tasks);
    std::fs::write(at("app/Console/Kernel.php"), with_tasks).expect("our own file");
    let table = block("schedules", "command = \"schedule:run\"");
    let script = format!("script = \"{}\"", at("artisan").display());
    let config = table.replace("script = \"artisan\"", &script);
    assert_ne!(table, config);
    let store = format!("\n[jobs]\nstore = '{}'\n", at("jobs.store").display());
    let server = copy.serve_with(&CHECKPOINT, &(config + &store));
    // The clock may have started a run.
    eventually("a run", || {
        let output = Command::new(binary())
            .args(["schedule", "run", "laravel", "--control"])
            .arg(server.control())
            .output()
            .expect("the command runs");
        String::from_utf8_lossy(&output.stdout).contains("is started").then_some(())
    });
    let ran = eventually("a successful run", || {
        let result = server.status()["schedules"][0]["result"].clone();
        (result == "succeeded").then(|| std::fs::read_to_string(at("ran")).unwrap_or_default())
    });
    assert!(ran.starts_with("a callback in cli\n0 users, 0 notes, 0 jobs\n"), "{ran}");
    server.stop();
}
