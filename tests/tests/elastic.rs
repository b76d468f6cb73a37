//! Workers follow the waiting: more are forked while requests wait for workers that wait, and they go; and however many
//! there are, as many run as there are cores.

#[path = "elastic/growth.rs"]
mod growth;
#[path = "elastic/limits.rs"]
mod limits;
#[path = "elastic/stage.rs"]
mod stage;
#[path = "elastic/storms.rs"]
mod storms;
#[path = "elastic/turns.rs"]
mod turns;
