//! What a PHP process does, read from outside: no PHP is linked, and the process notices nothing.
//!
//! In the order in which a stack comes about:
//!
//! | file | |
//! |---|---|
//! | `error.rs` | why a process cannot be read, and what to do about it |
//! | `memory.rs` | its memory, copied by `process_vm_readv`; nothing else here asks the kernel for it |
//! | `layout.rs` | where PHP 8.1 to 8.5 keep what we read: numbers |
//! | `maps.rs`, `image.rs` | what it has mapped; what a file on the disk says of PHP, by its symbols |
//! | `threads.rs` | the globals of each thread, where PHP was built for threads |
//! | `engine.rs` | all of that put together: a process's PHP |
//! | `frames.rs` | a look at the calls, by addresses, and whether they held still |
//! | `stack.rs`, `names.rs` | what people read, and how addresses become that |
//! | `reader.rs` | looks until a stack held still: [`read_stack`], [`Reader`] |
//! | `calls.rs`, `sockets.rs`, `activity.rs` | the system call a thread is in; who is at the other end; both, for people |
//! | `account.rs` | the kernel's account of a thread that is looked at again and again |
//! | `processes.rs`, `watch.rs` | the PHP processes of the machine, and many looks at them |
//! | `profile.rs` | many stacks added up; `profile/` writes them as pictures and for other tools |
//!
//! The process that is read is untrusted: it may write whatever it likes where we look. So each length, list and loop
//! here has a limit, no size of its choosing is allocated, and a stack that contradicts itself is counted and not shown.

mod account;
mod activity;
mod callees;
mod calls;
mod engine;
mod error;
mod frames;
mod image;
mod layout;
mod maps;
mod memory;
mod names;
mod processes;
pub mod profile;
mod reader;
mod sockets;
mod stack;
#[cfg(test)]
mod tests;
mod threads;
mod watch;

pub use account::Account;
pub use activity::{Activity, activity, cpu_ns};
pub use calls::{Doing, Subject, doing};
pub use engine::{Engine, Files};
pub use error::Error;
pub use frames::FRAMES_MAX;
pub use layout::{LAYOUTS, Layout};
pub use names::Names;
pub use processes::{that_may_be_php, title};
pub use reader::{Reader, Reading, read_stack};
pub use stack::{Frame, Function, Stack};
pub use watch::{Counts, Sample, WATCHED_MAX, Watch};
