//! Workers that die, hang or lie, clients that stall or leave, queues that are full, and the end:
//! the server goes on, and nobody waits for ever.

#[path = "faults/boots.rs"]
mod boots;
#[path = "faults/clients.rs"]
mod clients;
#[path = "faults/daemons.rs"]
mod daemons;
#[path = "faults/deadlines.rs"]
mod deadlines;
#[path = "faults/deaths.rs"]
mod deaths;
#[path = "faults/descriptors.rs"]
mod descriptors;
#[path = "faults/desertions.rs"]
mod desertions;
#[path = "faults/drains.rs"]
mod drains;
#[path = "faults/garbage.rs"]
mod garbage;
#[path = "faults/logs.rs"]
mod logs;
#[path = "faults/memory.rs"]
mod memory;
#[path = "faults/queues.rs"]
mod queues;
#[path = "faults/quiet.rs"]
mod quiet;
#[path = "faults/recycling.rs"]
mod recycling;
#[path = "faults/stage.rs"]
mod stage;
#[path = "faults/stains.rs"]
mod stains;
#[path = "faults/stopped.rs"]
mod stopped;
#[path = "faults/unreadable.rs"]
mod unreadable;
