//! Exhausted limits: processes and threads, memory, descriptors, disk space for uploads.

use crate::chaos::load::{PATIENCE, noise};
use crate::chaos::stage::{Stage, Surroundings};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::order::Order;
use samovar_testkit::{Cgroup, kernel, kill, may_mount};
use std::sync::atomic::Ordering;

const MEANWHILE: u64 = 40;

/// Names of the same limit in versions 1 and 2 of control groups.
const PIDS_MAX: [&str; 2] = ["pids.max", "pids.max"];
const MEMORY_MAX: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];
const MEMORY_NOW: [&str; 2] = ["memory.usage_in_bytes", "memory.current"];

/// Memory that the group may use beyond its current use, and memory that the script allocates,
/// which is more.
const SPARE_BYTES: u64 = 48 << 20;
const HOG_MB: u64 = 400;

/// Descriptors that the whole server may have, and connections that the test holds open.
const DESCRIPTORS: u64 = 192;
const HELD: usize = 260;

pub(crate) fn prepare_disks(around: &mut Surroundings) -> Result<(), String> {
    may_mount()?;
    around.disks = true;
    Ok(())
}

pub(crate) fn prepare_temp(around: &mut Surroundings) -> Result<(), String> {
    prepare_disks(around)
}

pub(crate) fn prepare_memory(around: &mut Surroundings) -> Result<(), String> {
    around.memory = Some(Cgroup::create("memory")?);
    Ok(())
}

/// Prepares a control group. Without one, users other than root fall back to the limit of processes
/// per user. Root is exempt from that limit.
pub(crate) fn prepare_pids(around: &mut Surroundings) -> Result<(), String> {
    around.files_later = true;
    match Cgroup::create("pids") {
        Ok(group) => around.pids = Some(group),
        Err(why) if may_mount().is_ok() => {
            return Err(format!("{why}, and root is above RLIMIT_NPROC"));
        }
        Err(_) => {}
    }
    Ok(())
}

pub(crate) fn prepare_descriptors(around: &mut Surroundings) {
    around.descriptors_max = Some(DESCRIPTORS);
}

/// A script allocates more memory than the whole server may have. The kernel kills its process, and
/// no other.
pub(crate) fn memory(stage: &Stage, order: &mut Order) {
    let Some(group) = &stage.around.memory else { return };
    let used = group.number(MEMORY_NOW).unwrap_or(0);
    group.limit(MEMORY_MAX, &(used + SPARE_BYTES).to_string());
    let target = format!("/hog?mb={HOG_MB}");
    let hog =
        if order.next(2) == 0 { Request::get(&target) } else { Request::form(&target, "a=b") };
    stage.did(&format!("a script takes {HOG_MB} MB; there are {} MB", SPARE_BYTES >> 20));
    match stage.poke(&hog) {
        Ok(response) if response.status == 200 => {
            stage.find(format!("{HOG_MB} MB were there after all: {}", response.text()));
        }
        Ok(_) => {}
        Err(error) => stage.find(format!("no answer to a script without memory: {error}")),
    }
    stage.progress(MEANWHILE, "when memory was short");
    group.limit(MEMORY_MAX, if used > 0 { "9223372036854771712" } else { "max" });
    stage.settled();
}

/// No thread or process can be created, and none was created before for these purposes: files,
/// uploads, a worker's death, a reload.
pub(crate) fn pids(stage: &Stage, order: &mut Order) {
    let fixed = |most: Option<u64>| match &stage.around.pids {
        Some(group) => {
            group.limit(PIDS_MAX, &most.map_or("max".to_owned(), |most| most.to_string()));
        }
        None => {
            for pid in [vec![stage.server.pid()], stage.templates(), stage.images()].concat() {
                if let Err(error) = kernel::limit_processes(pid, most) {
                    stage.did(&error);
                }
            }
        }
    };
    fixed(Some(1));
    stage.did("no more threads and processes");
    // More files at once than there are threads that read files.
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| stage.provoke(&Request::get("/large.bin")));
            scope.spawn(|| stage.provoke(&upload(300_000)));
        }
    });
    if let Some(worker) = stage.workers().get(order.next(4)) {
        kill(*worker, 9);
    }
    stage.progress(MEANWHILE, "while no thread and no process can be made");
    if order.next(2) == 0 {
        stage.server.ask_to_reload();
        stage.progress(MEANWHILE, "while a reload cannot have a process");
    }
    fixed(None);
    stage.load.shared.files.store(true, Ordering::SeqCst);
    stage.settled();
}

/// The test holds more connections open than there are descriptors. Files, reload, status and new
/// clients must still be served.
pub(crate) fn descriptors(stage: &Stage, order: &mut Order) {
    let held: Vec<_> = (0..HELD)
        .filter_map(|_| {
            let mut client = Client::try_connect(stage.address(), PATIENCE).ok()?;
            // Some clients send a request before they become silent.
            if order.next(2) == 0 {
                let _ = client.try_send(&Request::get("/hello?nonce=held").bytes());
            }
            Some(client)
        })
        .collect();
    stage.did(&format!("{} connections held open, {DESCRIPTORS} descriptors", held.len()));
    stage.wait_for("status while descriptors are short", || stage.status().is_some());
    if let Some(worker) = stage.workers().get(order.next(4)) {
        stage.did("a worker ends by itself");
        kill(*worker, 15);
    }
    stage.provoke(&Request::get("/large.bin"));
    stage.provoke(&upload(300_000));
    if let Err(why) = stage.reload() {
        stage.find(format!("a reload while descriptors are short: {}", why.trim()));
    }
    stage.progress(MEANWHILE, "while descriptors are short");
    drop(held);
    stage.settled();
}

/// Uploads to a full disk: they get an error response, and all other requests are served.
pub(crate) fn temp_full(stage: &Stage, order: &mut Order) {
    let disk = stage.server.disk("temp");
    let half_way = order.next(2) == 0;
    disk.fill();
    if half_way {
        // The first part of a large file still fits.
        disk.give_back(2 << 20);
    }
    stage.did("the disk for uploads is full");
    let request = upload(if half_way { 7_900_000 } else { 300_000 });
    std::thread::scope(|scope| {
        for _ in 0..if half_way { 3 } else { 1 } {
            scope.spawn(|| stage.provoke(&request));
        }
    });
    stage.progress(MEANWHILE, "while the disk for uploads is full");
    disk.empty();
    stage.wait_for("an upload after the disk was full", || {
        stage.poke(&upload(300_000)).is_ok_and(|response| response.status == 200)
    });
}

fn upload(bytes: usize) -> Request {
    let content = noise(bytes, 3);
    let begin = b"--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n";
    let body = [begin.as_slice(), &content, b"\r\n--xx--\r\n"].concat();
    Request::post("/upload?nonce=big", "multipart/form-data; boundary=xx", body)
}
