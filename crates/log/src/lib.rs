//! Lines of all kinds → standard error, standard output, a file, or the machine's own log. Callers
//! never wait for the reader or the disk.
//!
//! A [`Log`] takes lines into a bounded queue (`queue`) and writes them on its own thread
//! (`writer`). Lines that find the queue full, or that cannot be written, are lost. They are
//! counted, and the loss is reported later. An [`Intake`] continuously reads the pipes that
//! processes print into, so that these processes do not wait for the log's reader either (`intake`,
//! `lines`).
//!
//! One module defines the format of the server's own log lines for all components (`line`). Another
//! one defines the records that a log daemon receives (`record`).
//!
//! Names of files are classified before they leave a process (`file_class`), paths lose their
//! numbers (`path_folding`), and statements of SQL their literals (`sql`). Texts of clients and of
//! PHP are made safe for terminals and pages (`unprintable`).
//!
//! Components that may log the same message repeatedly check a [`Throttle`] first.
//!
//! The writing thread may wait for ever: for the reader of a pipe, for a disk. Therefore no thread
//! joins it. A caller that wants all lines written before the end passes a time limit to
//! [`Log::flush`]. `O_NONBLOCK` is not an option: the file description of standard error is shared
//! with the shell and its other children.
#![allow(unsafe_code)] // Signal masks, the time of day; each block states why it is sound.

mod file_class;
mod intake;
mod line;
mod lines;
mod path_folding;
pub mod pool;
mod queue;
mod record;
mod signals;
mod sql;
mod target;
mod throttle;
mod unprintable;
mod writer;

pub use file_class::{CLASS_BYTES_MAX, FileClass};
pub use intake::{Intake, Speaker, Tap, Voice};
pub use line::{Detail, Format, Line, Process};
pub use path_folding::fold;
pub use queue::LogProblem;
pub use signals::survive_file_limits;
pub use sql::{Dialect, STATEMENT_BYTES_MAX, normalise_sql};
pub use target::{Daemon, Notation, Target};
pub use throttle::Throttle;
pub use unprintable::{is_unprintable, printable, printable_json, printable_lines};
pub use writer::{Log, Notice};
