//! Queues in a Redis that several machines share. Redis selects the jobs, in the scripts of
//! `queues.lua`. The process knows only the batches that it runs.

mod commands;
mod options;
mod queues;
mod remote;

pub use options::SharedOptions;
pub(crate) use queues::SharedQueues;
