//! What the sampler sees of a running server: known shares, waits, reloads, workers that die under its eyes.

mod kills;
mod push;
mod shares;
mod slow;
mod stage;
