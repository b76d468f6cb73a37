//! Idle periods, clocks that jump, and unusual file dates.

use crate::chaos::stage::{Stage, Surroundings, told};
use samovar_testkit::http::Request;
use samovar_testkit::order::Order;
use samovar_testkit::workspace;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

const MEANWHILE: u64 = 40;

/// Idle timeout of the server. Short, so that it expires within seconds. Longer than the time that
/// a client of a busy machine needs between its connection and its first byte.
const IDLE: Duration = Duration::from_secs(1);

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// Seconds from 1970 to a day in the year 10000.
const YEAR_10000: u64 = 253_402_300_800 + 86_400;

/// Seconds in four centuries.
const CENTURIES: u64 = 12_622_780_800;

/// Seconds from 1970 to the last day that an HTTP date can express. No real clock is later.
const YEAR_9999: i64 = 253_402_300_800 - DAY;

pub(crate) fn prepare_quiet(around: &mut Surroundings) {
    around.arg("--idle-timeout", &format!("{}ms", IDLE.as_millis()));
}

/// Sends no request for longer than the idle timeout. Then each first request must be served.
pub(crate) fn quiet(stage: &Stage, order: &mut Order) {
    stage.load.shared.pause();
    let pause = IDLE * (3 + order.next(3) as u32) / 2;
    stage.did(&format!("quiet for {pause:?}"));
    // The idle period itself, not a wait for a condition.
    std::thread::sleep(pause);
    first_request(stage, "after a quiet time");
    stage.load.shared.resume();
    stage.progress(MEANWHILE, "after a quiet time");
}

fn first_request(stage: &Stage, when: &str) {
    for (name, request) in
        [("script", Request::get("/hello?nonce=first")), ("file", Request::get("/small.txt"))]
    {
        match stage.poke(&request) {
            Ok(response) if response.status == 200 && response.complete => {}
            response => {
                stage.find(format!("the first request {when} ({name}): {}", told(&response)));
            }
        }
    }
}

/// Builds the library that changes the reported time, once.
fn library() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let source = workspace().join("tests/apps/chaos/clock.c");
        let name = format!("samovar-chaos-clock-{}.so", std::process::id());
        let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = Command::new("cc");
        command.args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(&library);
        let output = command.arg(&source).output().map_err(|e| format!("no C compiler: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "clock.c: {said}");
        Ok(library)
    };
    BUILT.get_or_init(build).clone()
}

pub(crate) fn prepare_clock(around: &mut Surroundings) -> Result<(), String> {
    around.clock = Some(library()?);
    Ok(())
}

/// Sets the offsets that the server's processes add to the time of day and to the time since boot.
fn set(stage: &Stage, realtime: i64, monotonic: i64) {
    use std::os::unix::fs::FileExt;
    let path = stage.app.path().join("clock");
    let file = std::fs::File::options().write(true).open(path).expect("our own file");
    let bytes = [realtime.to_ne_bytes(), monotonic.to_ne_bytes()].concat();
    file.write_all_at(&bytes, 0).expect("our own file");
}

fn monotonic(stage: &Stage) -> i64 {
    let bytes = std::fs::read(stage.app.path().join("clock")).expect("our own file");
    i64::from_ne_bytes(bytes[8..16].try_into().expect("8 bytes"))
}

/// The time of day jumps under load, as when an administrator or NTP sets it.
pub(crate) fn jumps(stage: &Stage, order: &mut Order) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let to_1970 = 1 - now.as_secs().cast_signed();
    let to_9999 = YEAR_9999 - now.as_secs().cast_signed();
    let all = [HOUR, -HOUR, 400 * DAY, -400 * DAY, to_1970, to_1970 - DAY, to_9999];
    let by = all[order.next(all.len())];
    stage.did(&format!("the time of day jumps by {by} s"));
    // The offset includes the earlier jumps of all clocks.
    set(stage, by - monotonic(stage), monotonic(stage));
    stage.progress(MEANWHILE, &format!("after the time of day jumped by {by} s"));
    set(stage, 0, monotonic(stage));
}

/// A machine that was suspended: all clocks are hours later, and nothing happened in between.
pub(crate) fn leaps(stage: &Stage, order: &mut Order) {
    let shared = &stage.load.shared;
    shared.pause();
    let by = [10, HOUR, 30 * DAY][order.next(3)];
    let monotonic = monotonic(stage) + by;
    stage.did(&format!("nobody asks, and all clocks leap by {by} s"));
    set(stage, 0, monotonic);
    first_request(stage, &format!("after a leap by {by} s"));
    shared.resume();
    stage.progress(MEANWHILE, &format!("after all clocks leaped by {by} s"));
    stage.settled();
}

/// Requests files with modification times that no HTTP date can express.
pub(crate) fn dates(stage: &Stage, order: &mut Order) {
    let disk = stage.server.disk_at(&stage.app.path().join("public/dated"));
    let (before, after) = (Duration::from_secs(CENTURIES), Duration::from_secs(YEAR_10000));
    let epoch = SystemTime::UNIX_EPOCH;
    for (name, time) in [
        ("10000.txt", epoch + after),
        ("200000.txt", epoch + after * 20),
        ("1570.txt", epoch - before),
        ("1969.txt", epoch - Duration::from_nanos(1)),
    ] {
        let path = disk.path(name);
        let written = std::fs::write(&path, name)
            .and_then(|()| std::fs::File::options().write(true).open(&path)?.set_modified(time));
        if let Err(error) = written {
            stage.did(&format!("no file of that time: {name}: {error}"));
            continue;
        }
        stage.did(&format!("a file of {name}"));
        let mut request = Request::new(["GET", "HEAD"][order.next(2)], &format!("/dated/{name}"));
        if order.next(2) == 0 {
            request = request.header("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT");
        }
        stage.provoke(&request);
        stage.provoke(&Request::get(&format!("/dated/{name}")));
    }
    stage.progress(MEANWHILE, "after files of strange dates");
}
