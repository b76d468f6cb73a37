//! Logs that are not read, cannot be written, or are full.

use crate::chaos::limits::prepare_disks;
use crate::chaos::stage::{Sink, Stage, Surroundings};
use samovar_testkit::http::Request;
use samovar_testkit::order::Order;
use samovar_testkit::{Reader, kill};

/// Good responses while a log is out of order. Each is a line of the access log.
const MEANWHILE: u64 = 60;

/// More than a pipe holds (64 KiB).
const FLOOD_BYTES: usize = 200_000;

/// Provokes all kinds of log lines of server and PHP.
fn complain(stage: &Stage, order: &mut Order) {
    for _ in 0..3 {
        stage.provoke(&Request::get(&format!("/complain?bytes={FLOOD_BYTES}")));
    }
    if let Some(worker) = stage.workers().get(order.next(4)) {
        kill(*worker, 9);
    }
    stage.provoke(&Request::get("/crash?how=exception"));
    if order.next(2) == 0 {
        stage.server.ask_to_reload();
    }
}

pub(crate) fn stderr_gone(stage: &Stage, order: &mut Order) {
    stage.server.stderr_reader().set(Reader::Gone);
    stage.wait_for("the pipe is closed", || stage.server.stderr_reader().is_closed());
    stage.did("the reader of standard error is gone");
    complain(stage, order);
    stage.progress(MEANWHILE, "while standard error is closed");
    stage.settled();
}

pub(crate) fn stderr_stuck(stage: &Stage, order: &mut Order) {
    // A closed reader stays closed.
    let tap = stage.server.stderr_reader();
    if tap.is_closed() {
        return;
    }
    tap.set(Reader::Stopped);
    stage.did("the reader of standard error stands still");
    complain(stage, order);
    stage.progress(MEANWHILE, "while nobody reads standard error");
    tap.set(Reader::Reads);
    stage.settled();
}

pub(crate) fn stdout_gone(stage: &Stage, _order: &mut Order) {
    let Some(tap) = stage.server.stdout_reader() else { return };
    tap.set(Reader::Gone);
    stage.wait_for("the pipe is closed", || tap.is_closed());
    stage.did("the reader of the access log is gone");
    stage.progress(MEANWHILE, "while the access log's pipe is closed");
}

pub(crate) fn stdout_stuck(stage: &Stage, _order: &mut Order) {
    let Some(tap) = stage.server.stdout_reader().filter(|tap| !tap.is_closed()) else { return };
    tap.set(Reader::Stopped);
    stage.did("the reader of the access log stands still");
    // A line has about 100 bytes: the pipe is full well before the end.
    stage.progress(10 * MEANWHILE, "while nobody reads the access log");
    tap.set(Reader::Reads);
}

pub(crate) fn prepare_log(around: &mut Surroundings) -> Result<(), String> {
    prepare_disks(around)?;
    around.log = Sink::Disk;
    Ok(())
}

pub(crate) fn prepare_access(around: &mut Surroundings) -> Result<(), String> {
    prepare_disks(around)?;
    around.access = Sink::Disk;
    Ok(())
}

pub(crate) fn log_full(stage: &Stage, order: &mut Order) {
    let disk = stage.server.disk("logs");
    disk.fill();
    stage.did("the log's disk is full");
    complain(stage, order);
    stage.progress(MEANWHILE, "while the log's disk is full");
    disk.empty();
    complain(stage, order);
    stage.settled();
    stage.look_at_log();
    shorten(stage, &disk, "server");
}

pub(crate) fn access_log_full(stage: &Stage, _order: &mut Order) {
    let disk = stage.server.disk("logs");
    disk.fill();
    stage.did("the access log's disk is full");
    stage.progress(MEANWHILE, "while the access log's disk is full");
    disk.empty();
    shorten(stage, &disk, "access");
    stage.progress(MEANWHILE, "after the access log's disk was full");
    stage.wait_for("the access log is written again", || {
        std::fs::metadata(disk.path("access")).is_ok_and(|file| file.len() > 0)
    });
}

/// Truncates the log, so that it does not fill the disk before the next disturbance.
fn shorten(stage: &Stage, disk: &samovar_testkit::Disk, name: &str) {
    let file = std::fs::File::options().write(true).open(disk.path(name));
    if let Err(error) = file.and_then(|file| file.set_len(0)) {
        stage.find(format!("the log `{name}` is not there: {error}"));
    }
}
