//! Workers that write garbage into the ring: no other request is harmed, and no slot is lost for
//! good.

use crate::faults::stage::{Load, app, assert_serves, is_hello, parent_of, wait_for_in_flight};
use samovar_ring::offsets as ring;
use samovar_testkit::http::Request;
use samovar_testkit::{eventually, is_root};

const ONES: &str = "ffffffffffffffff";
const ZEROS: &str = "0000000000000000";
const NOISE: &str = "b16b00b5deadbeef";

/// Makes `at` relative to the request's own slot, which is the only taken slot while one client
/// sends requests.
fn own_slot() -> String {
    format!("&slots={}&slot_bytes={}&taken={}", ring::SLOTS, ring::SLOT_BYTES, ring::STATE_TAKEN)
}

/// Lets a worker write garbage into the ring, then checks requests that must still succeed.
fn scribble(name: &str, own: bool, at: usize, hex: &str, times: usize) {
    let start = app().workers(2).args(["--queue-max", "16", "--response-timeout", "2s"]);
    let server = start.args(["--queue-timeout", "5s"]).start();
    assert_serves(&server, "at first");
    let own = if own { own_slot() } else { String::new() };
    let target = format!("/garbage?at={at}&hex={hex}&times={times}{own}");
    let mut liar = server.client();
    let response = liar.try_request(&Request::form(&target, "a=b"));
    assert!(
        response.as_ref().is_ok_and(|a| matches!(a.status, 200 | 502 | 503 | 504)),
        "{name}: {response:?}\n{}",
        server.log()
    );
    eventually(&format!("{name}: an answer\n{}", server.log()), || {
        is_hello(&server.get("/hello")).then_some(())
    });
    assert_serves(&server, name);
    // More concurrent requests than workers: no slot and no worker was lost for good.
    let load = Load::start(server.address(), 12, &Request::get("/sleep?ms=1"));
    eventually(&format!("{name}: load"), || {
        (server.status()["requests_total"].as_u64()? > 100).then_some(())
    });
    for response in load.stop() {
        assert!(response.is_ok_and(|a| a.text() == "slept"), "{name}");
    }
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn garbage_in_own_slot_harms_no_other_request() {
    for (name, at, hex, times) in [
        ("word: ones", ring::WORD, ONES, 1),
        ("word: free", ring::WORD, ZEROS, 1),
        ("word: noise", ring::WORD, NOISE, 1),
        ("word: queued again", ring::WORD, "02", 1),
        ("word: taken by another", ring::WORD, "0302", 1),
        ("word: orphaned", ring::WORD, "07000000", 1),
        ("body position", ring::BODY, ONES, 3),
        ("status", ring::STATUS, "9f860100", 1),
        ("head length", ring::HEAD_LENGTH, "ffffff7f", 1),
        ("usage", ring::USAGE, ONES, ring::USAGE_BYTES / 8),
        ("interim answers: too many", ring::INTERIM_LENGTH, ONES, 1),
        ("interim answers: none there", ring::INTERIM_LENGTH, "08000000", 1),
        ("response position", ring::RESPONSE_STREAM, ONES, 1),
        ("answer read position", ring::RESPONSE_STREAM + 8, NOISE, 1),
        ("answer end", ring::RESPONSE_STREAM + 16, ONES, 1),
        ("bell", ring::SLOT_BELL, ONES, 1),
        ("the whole slot", ring::WORD, NOISE, ring::SLOT_BYTES / 8),
    ] {
        scribble(&format!("own slot, {name}"), true, at, hex, times);
    }
}

#[test]
fn garbage_in_shared_ring_state_is_survived() {
    for (name, at, hex, times) in [
        ("bell asleep", ring::FRONT_BELL, ONES, 1),
        ("bell asleep: 1", ring::FRONT_BELL, "01000000", 1),
        ("news of all", ring::FRONT_BELL + 8, ONES, 64),
        ("no news", ring::FRONT_BELL, ZEROS, 65),
        ("workers of all lanes: nobody", ring::WORKER_SETS, ZEROS, ring::WORKER_SETS_BYTES / 8),
        ("workers of all lanes: all", ring::WORKER_SETS, ONES, ring::WORKER_SETS_BYTES / 8),
        ("pace", ring::PACE, ONES, 1),
        ("pace: brisk", ring::PACE, "01000000", 1),
        ("turns: everybody runs, any number may", ring::TURNS, ONES, ring::TURNS_BYTES / 8),
        ("turns: one may run, and there is one cell", ring::TURNS, "0100000001000000", 1),
        ("turns: two may run, and many do", ring::TURNS, "0200000002000000", ring::TURNS_BYTES / 8),
        ("turns: nobody", ring::TURNS, ZEROS, ring::TURNS_BYTES / 8),
        ("tail far ahead", ring::QUEUE_TAIL, ONES, 1),
        ("tail at 0", ring::QUEUE_TAIL, ZEROS, 1),
        ("head far ahead", ring::QUEUE_HEAD, ONES, 1),
        ("head beyond the tail", ring::QUEUE_HEAD, "0000000001000000", 1),
        ("head at 0", ring::QUEUE_HEAD, ZEROS, 1),
        ("entries: ones", ring::QUEUE_ENTRIES, ONES, 64),
        ("entries: noise", ring::QUEUE_ENTRIES, NOISE, 64),
        ("tail, head and entries", ring::QUEUE_TAIL, NOISE, 24),
        ("cells of all workers: ones", ring::WORKERS, ONES, 64),
        ("cells of all workers: zeros", ring::WORKERS, ZEROS, 64),
        ("words of all slots: ones", ring::SLOTS, ONES, ring::SLOT_BYTES / 8 * 16),
        ("words of all slots: zeros", ring::SLOTS, ZEROS, ring::SLOT_BYTES / 8 * 16),
        ("words of all slots: noise", ring::SLOTS, NOISE, ring::SLOT_BYTES / 8 * 16),
    ] {
        scribble(name, false, at, hex, times);
    }
}

#[test]
fn repeated_random_ring_garbage_is_survived() {
    let start = app().workers(2).args(["--queue-max", "16", "--response-timeout", "1s"]);
    let server = start.args(["--queue-timeout", "5s"]).start();
    let end = ring::SLOTS + 16 * ring::SLOT_BYTES;
    let mut random = 0x5eed_u64;
    for round in 0..40 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = (random >> 33) as usize % end / 8 * 8;
        let hex = [ONES, ZEROS, NOISE][round % 3];
        let target = format!("/garbage?at={at}&hex={hex}&times=8");
        let response = server.client().try_request(&Request::form(&target, "a=b"));
        assert!(response.is_ok(), "round {round}, at {at}: {response:?}\n{}", server.log());
        eventually(&format!("round {round}, at {at}: an answer"), || {
            is_hello(&server.get("/hello")).then_some(())
        });
    }
    wait_for_in_flight(&server, 0);
    server.stop();
}

#[test]
fn stop_flag_set_by_worker_does_not_stop_others_for_good() {
    scribble("stop", false, ring::STOP, "01000000", 1);
}

#[test]
fn worker_cells_set_by_worker_do_not_hold_others_for_good() {
    // A cell has 64 bytes. The worker's requested state is at 44: "hold" and "retire", for all
    // workers.
    for (name, standing) in [("hold", "01000000"), ("retire", "02000000"), ("noise", "efbeadde")] {
        let cell = format!("{standing}{}", "00".repeat(60));
        scribble(name, false, ring::WORKERS + 44, &cell, 64);
    }
}

#[test]
fn corrupt_ring_header_is_repaired_for_next_template() {
    let server = app().workers(2).args(["--queue-max", "16"]).start();
    // Read before the request: a worker that has written below /proc is replaced.
    let template = parent_of(server.worker_pid());
    let target = format!("/garbage?at={}&hex={NOISE}&times=2", ring::HEADER);
    assert_eq!(server.client().request(&Request::form(&target, "a=b")).status, 200);
    server.kill_worker(template);
    eventually("a new template", || (server.status()["generation"] == 2).then_some(()));
    assert_serves(&server, "after the header was broken");
    server.stop();
}

#[test]
fn ring_memory_file_cannot_be_resized_by_script() {
    // Links of the worker and of the template. The supervisor's link is accessible only to root and
    // without the sandbox.
    for (apart, ways) in [("true", 2), ("false", if is_root() { 3 } else { 2 })] {
        let fence = format!("--sandbox-isolate-processes={apart}");
        let server = app().workers(2).args([fence.as_str()]).start();
        let response = server.get("/resize");
        assert_eq!(response.status, 200, "{response:?}\n{}", server.log());
        let tries = response.text();
        assert_eq!(tries.lines().count(), ways, "{apart}: {tries}");
        for line in tries.lines() {
            let (_, statuses) = line.split_once(' ').expect("a link and what came of it");
            let statuses: Vec<i32> = serde_json::from_str(statuses).expect("numbers");
            assert_eq!((statuses.len(), statuses.contains(&0)), (3, false), "{line}");
        }
        assert_serves(&server, "after the tries");
        server.stop();
    }
}
