//! Faults: workers that die, hang or write garbage, clients that stall or leave, full queues, and
//! the stop. The server keeps running, and every wait is bounded.

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
