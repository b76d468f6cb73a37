//! Workers that die, hang or lie, clients that stall or leave, queues that are full, and the end:
//! the server goes on, and nobody waits for ever.

#[path = "faults/boots.rs"]
mod boots;
#[path = "faults/clients.rs"]
mod clients;
#[path = "faults/deaths.rs"]
mod deaths;
#[path = "faults/drains.rs"]
mod drains;
#[path = "faults/garbage.rs"]
mod garbage;
#[path = "faults/memory.rs"]
mod memory;
#[path = "faults/queues.rs"]
mod queues;
#[path = "faults/stage.rs"]
mod stage;
