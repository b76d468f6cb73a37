//! What the sampler sees of a running server: known shares, waits, reloads, workers that die under its eyes.

#[path = "profile/kills.rs"]
mod kills;
#[path = "profile/push.rs"]
mod push;
#[path = "profile/shares.rs"]
mod shares;
#[path = "profile/slow.rs"]
mod slow;
#[path = "profile/stage.rs"]
mod stage;
