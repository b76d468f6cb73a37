//! Reads the state of a PHP process from outside. Does not link PHP, and the process does not
//! notice it.
//!
//! In the order in which a stack is read:
//!
//! | file | purpose |
//! |---|---|
//! | `error.rs` | reasons why a process cannot be read, with advice |
//! | `memory.rs` | its memory, copied by `process_vm_readv`; the only file that does so |
//! | `layout.rs` | struct offsets of PHP 8.1 to 8.5 |
//! | `maps.rs`, `image.rs` | its mappings; facts about PHP in a file on disk, by its symbols |
//! | `threads.rs` | the globals of each thread, if PHP was built for threads |
//! | `engine.rs` | all of that together: a process's PHP |
//! | `frames.rs` | one attempt to read the calls, as addresses, and whether they held still |
//! | `stack.rs`, `names.rs` | stacks for people, and their names from addresses |
//! | `heap.rs` | the size of PHP's heap |
//! | `values.rs`, `tables.rs`, `peek.rs` | values of variables by their names |
//! | `reader.rs` | attempts until a stack held still: [`read_stack`], [`Reader`] |
//! | `calls.rs`, `sockets.rs` | the system call of a thread; the other end of a descriptor |
//! | `activity.rs` | both, for people |
//! | `account.rs` | the kernel's account of a thread that is queried repeatedly |
//! | `pattern.rs` | a pattern for names of functions |
//! | `processes.rs`, `watch.rs` | the PHP processes of the machine, read repeatedly |
//! | `profile.rs` | sums of many stacks; `profile/` writes them as pictures and for other tools |
//!
//! The process is untrusted: it may write any bytes where its memory is read. So each length, list
//! and loop here has a limit, no allocation has a size that the process determines, and a stack
//! that contradicts itself is counted and not shown.

mod account;
mod activity;
mod callees;
mod calls;
mod engine;
mod error;
mod frames;
mod heap;
mod image;
mod layout;
mod maps;
mod memory;
mod names;
mod pattern;
mod peek;
mod processes;
pub mod profile;
mod reader;
mod sockets;
mod stack;
mod tables;
#[cfg(test)]
mod tests;
mod threads;
mod values;
mod watch;

pub use account::Account;
pub use activity::{Activity, activity, cpu_ns};
pub use calls::{Doing, Subject, doing};
pub use engine::{Engine, Files};
pub use error::Error;
pub use frames::FRAMES_MAX;
pub use heap::HeapUse;
pub use layout::{LAYOUTS, Layout};
pub use names::Names;
pub use pattern::Pattern;
pub use peek::{PEEKS_MAX, Peek};
pub use processes::{resident_bytes, that_may_be_php, title};
pub use reader::{Reader, Reading, read_stack};
pub use stack::{Frame, Function, Stack};
pub use values::VALUE_BYTES_MAX;
pub use watch::{Counts, Sample, WATCHED_MAX, Watch};
