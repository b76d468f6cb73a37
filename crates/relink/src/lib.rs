//! Relinking: what a library calls through its table of addresses, it calls directly afterwards.
//!
//! A shared library calls even its own functions by way of a stub that jumps to where a table (GOT) says, because
//! another object might define the same name. When the dynamic linker has bound all names, the table never changes
//! again. So the calls can be written anew in the memory of the process, before it forks: its forks share the result.
//!
//! | file | |
//! |---|---|
//! | `object.rs` | what is loaded, and what its own tables say: read from memory, never from a file that may be another by now |
//! | `functions.rs` | where functions begin and end, by the unwinder's table |
//! | `plan.rs` | text and tables in, a new text out, or why there is none: a pure function |
//! | `rule.rs` | which calls stay as they are |
//! | `apply.rs` | writes it |
//! | `trial.rs`, `texts.rs` | a child does all that first; its texts come back in a memory file |
//!
//! Whatever is not as expected ends it before a byte is written. What is left as it was is as right as before. The child
//! needs some 20 MB for a moment, which a process that others are forked from had better not have had.

#![allow(unsafe_code)] // It changes the code of the process that it runs in; each block says why that is sound.

use thiserror::Error;

#[cfg(target_arch = "x86_64")]
mod apply;
#[cfg(target_arch = "x86_64")]
mod functions;
#[cfg(target_arch = "x86_64")]
mod object;
#[cfg(target_arch = "x86_64")]
mod plan;
#[cfg(target_arch = "x86_64")]
mod rule;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod texts;
#[cfg(target_arch = "x86_64")]
mod trial;

/// What has become direct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relinked {
    /// Libraries that were written to.
    pub objects: u64,
    /// Calls and jumps.
    pub calls: u64,
    /// Loads of an address from the table.
    pub loads: u64,
    /// Calls that still go by way of the table.
    pub left: u64,
}

/// Why nothing was changed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Its instructions are not known here.
    #[error("only x86-64 is known")]
    Processor,
    /// Another thread may be in the middle of what is to be changed.
    #[error("the process has {0} threads")]
    Threads(usize),
    /// There is no such code, its tables are not as they should be, or what was made of it does not work.
    #[error("{0}")]
    Doubt(String),
}

/// Makes direct what the library that `code` is in calls of itself, and what other libraries that are linked against it
/// call of it. A child works it out and tries it first: `probe` is run there after the change, and should use the
/// library.
///
/// # Safety
///
/// No other thread of the process may be running, no code of these libraries may be on the stack, and none of them may be
/// unloaded before the others.
///
/// # Errors
///
/// What is unexpected, before anything was changed.
#[cfg(target_arch = "x86_64")]
pub unsafe fn relink(code: usize, probe: fn()) -> Result<Relinked, Refusal> {
    let threads = apply::threads();
    if threads != 1 {
        return Err(Refusal::Threads(threads));
    }
    // SAFETY: promised by the caller, and just counted.
    let texts = unsafe { trial::try_in_child(code as u64, probe) }.map_err(Refusal::Doubt)?;
    let changes = texts.changes().map_err(Refusal::Doubt)?;
    // SAFETY: as before; a child has come through it, and `changes` has looked that each is a loaded object's text.
    unsafe { apply::write(&changes) }.unwrap_or_else(|broken| apply::give_up(&broken));
    Ok(changes.iter().fold(Relinked::default(), |all, change| Relinked {
        objects: all.objects + 1,
        calls: all.calls + change.calls,
        loads: all.loads + change.loads,
        left: all.left + change.left,
    }))
}

/// Where instructions are not known, nothing is changed.
///
/// # Safety
///
/// Nothing is asked for.
///
/// # Errors
///
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn relink(_: usize, _: fn()) -> Result<Relinked, Refusal> {
    Err(Refusal::Processor)
}
