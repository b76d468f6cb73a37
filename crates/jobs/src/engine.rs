//! All queues of one machine: in memory, and in the store.

mod commands;
mod queues;

pub(crate) use queues::Engine;
