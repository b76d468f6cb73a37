//! Lines of all kinds → standard error, standard output, a file, or the machine's own log, so that nobody waits for it.
//!
//! A [`Log`] takes lines into a bounded queue (`queue`) and writes them on a thread of its own (`writer`). What finds
//! the queue full, or cannot be written, is lost, counted, and told of afterwards. An [`Intake`] reads the pipes that
//! processes print into, always, so that none of them waits for the log's reader either (`intake`, `lines`).
//!
//! What a line of the server's own log looks like is said in one place (`line`), for all who write some; what a daemon
//! for logs is told of it, in another (`record`).
//!
//! Whoever may have the same to say again and again asks a [`Throttle`] first.
//!
//! The writing thread may wait for ever: for the reader of a pipe, for a disk. So nobody joins it: who wants the
//! lines written before the end says for how long it waits ([`Log::flush`]). Why not `O_NONBLOCK`: the file behind
//! standard error is shared with the shell and its other children.
#![allow(unsafe_code)] // Signal masks, the time of day; each block says why it is sound.

mod intake;
mod line;
mod lines;
pub mod pool;
mod queue;
mod record;
mod signals;
mod target;
mod throttle;
mod writer;

pub use intake::{Intake, Speaker, Voice};
pub use line::{Detail, Format, Line, Process};
pub use queue::Trouble;
pub use signals::survive_file_limits;
pub use target::{Daemon, Notation, Target};
pub use throttle::Throttle;
pub use writer::{Log, Notice};
