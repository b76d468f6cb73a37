//! Workers follow the waiting: more are forked while requests wait for workers that wait, and they go; and however many
//! there are, as many run as there are cores.

mod growth;
mod limits;
mod stage;
mod storms;
mod turns;
