//! Samples of a running server by the profiler: known shares, waits, reloads, and workers that die
//! while they are sampled.

mod kills;
mod push;
mod shares;
mod slow;
mod stage;
