//! Workers that die, hang or lie, clients that stall or leave, queues that are full, and the end:
//! the server goes on, and nobody waits for ever.

mod boots;
mod clients;
mod daemons;
mod deadlines;
mod deaths;
mod descriptors;
mod desertions;
mod drains;
mod garbage;
mod logs;
mod memory;
mod queues;
mod quiet;
mod recycling;
mod stage;
mod stains;
mod stopped;
mod unreadable;
