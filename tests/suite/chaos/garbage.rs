//! Scripts that overwrite the ring's memory.

use crate::chaos::stage::{Stage, Surroundings};
use samovar_ring::offsets;
use samovar_testkit::http::Request;
use samovar_testkit::order::Order;

const MEANWHILE: u64 = 20;

/// The control words of the ring, up to those of the first slots.
const CONTROL_BYTES: usize = offsets::SLOTS + 16 * offsets::SLOT_BYTES;

const PATTERNS: [&str; 3] = ["ffffffffffffffff", "0000000000000000", "b16b00b5deadbeef"];

pub(crate) fn prepare(around: &mut Surroundings) {
    // Ends workers that wait because of overwritten words.
    around.arg("--response-timeout", "3s");
}

/// Returns the offset of a word with a special meaning. A random offset hits one only once in
/// hundreds of tries: nearly all of the control block is queue entries.
fn a_word(order: &mut Order) -> usize {
    let queue = order.next(samovar_ring::LANES) * offsets::QUEUE_BYTES;
    let worker = offsets::WORKERS + order.next(8) * offsets::WORKER_BYTES;
    let words = [
        order.next(offsets::QUEUE_TAIL) / 8 * 8,
        offsets::QUEUE_TAIL + queue,
        offsets::QUEUE_HEAD + queue,
        offsets::QUEUE_ENTRIES + queue + 8 * order.next(64),
        worker + order.next(offsets::WORKER_BYTES) / 8 * 8,
        offsets::SLOTS + order.next(16 * offsets::SLOT_BYTES) / 8 * 8,
    ];
    words[order.next(words.len())]
}

pub(crate) fn scribble(stage: &Stage, order: &mut Order) {
    let (at, times) = match order.next(4) {
        0 => (order.next(CONTROL_BYTES) / 8 * 8, 1 + order.next(16)),
        _ => (a_word(order), 1),
    };
    let hex = PATTERNS[order.next(3)];
    stage.did(&format!("{times} × {hex} at {at} of the ring"));
    let target = format!("/garbage?at={at}&hex={hex}&times={times}");
    // The response passes through the overwritten memory, so it may be missing.
    let _ = stage.poke(&Request::form(&target, "a=b"));
    stage.wait_for("answers after garbage in the ring", || {
        stage.poke(&Request::get("/hello?nonce=g")).is_ok_and(|response| response.status == 200)
    });
    stage.progress(MEANWHILE, "after garbage in the ring");
}

/// The ring's memory file must keep its size. Access to a mapping beyond the end of the file kills
/// the process.
pub(crate) fn truncate(stage: &Stage, _order: &mut Order) {
    stage.did("a script cuts the ring's memory file");
    // The request may get no worker while other kinds limit processes.
    if stage.poke(&Request::get("/truncate")).is_ok_and(|response| response.text() == "cut") {
        stage.find("the ring's file could be cut".to_owned());
    }
    stage.progress(MEANWHILE, "after a script cut the ring's memory file");
}
