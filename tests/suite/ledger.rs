//! What a worker says of its requests, as the admin listener has it: in each execution model, against what the request
//! itself has measured.

mod behind;
mod bench;
mod endings;
mod instrumented;
mod sampled;
mod truth;
mod waits;
mod ways;
