//! What a worker says of its requests, as the admin listener has it: in each execution model, against what the request
//! itself has measured.

#[path = "ledger/behind.rs"]
mod behind;
#[path = "ledger/bench.rs"]
mod bench;
#[path = "ledger/endings.rs"]
mod endings;
#[path = "ledger/instrumented.rs"]
mod instrumented;
#[path = "ledger/sampled.rs"]
mod sampled;
#[path = "ledger/truth.rs"]
mod truth;
#[path = "ledger/waits.rs"]
mod waits;
#[path = "ledger/ways.rs"]
mod ways;
