//! Relinking: turns a library's calls through its table of addresses into direct calls.
//!
//! A shared library calls even its own functions through a stub, which jumps to an address in a
//! table (GOT), because another object might define the same name. When the dynamic linker has
//! bound all names, the table never changes again. So the calls can be rewritten in the memory of
//! the process before it forks; its children share the result.
//!
//! | file | purpose |
//! |---|---|
//! | `object.rs` | loaded objects and their tables, read from memory: the file may be another |
//! | `functions.rs` | start and end of functions, from the unwinder's table |
//! | `plan.rs` | text and tables in, a new text or an error out: a pure function |
//! | `rule.rs` | the calls that stay as they are |
//! | `apply.rs` | writes the new text |
//! | `trial.rs`, `texts.rs` | a child does all this first and returns its texts in a memory file |
//!
//! Anything unexpected stops the procedure before a byte is written. An unchanged call is as
//! correct as before. The child needs about 20 MB for a moment. Memory that the process itself had
//! used would burden the processes forked from it.

#![allow(unsafe_code)] // Changes the code of its own process; see each block.

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

/// Numbers of direct calls and loads after relinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relinked {
    /// Libraries that were changed.
    pub objects: u64,
    /// Calls and jumps.
    pub calls: u64,
    /// Loads of an address from the table.
    pub loads: u64,
    /// Calls that still go through the table.
    pub left: u64,
}

/// Why nothing was changed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The instructions of this processor are not supported.
    #[error("only x86-64 is supported")]
    Processor,
    /// Another thread may be running the code that is to be changed.
    #[error("the process has {0} threads")]
    Threads(usize),
    /// There is no such code, its tables are not as expected, or the new text does not work.
    #[error("{0}")]
    Doubt(String),
}

/// Makes calls direct: those of the library that contains `code` to itself, and those of libraries
/// linked against it. A child computes the changes and tries them first. After the change, the
/// child runs `probe`, which should use the library.
///
/// # Safety
///
/// No other thread of the process may be running, no code of these libraries may be on the stack,
/// and none of them may be unloaded before the others.
///
/// # Errors
///
/// Anything unexpected, before anything was changed.
#[cfg(target_arch = "x86_64")]
pub unsafe fn relink(code: usize, probe: fn()) -> Result<Relinked, Refusal> {
    let threads = apply::threads();
    if threads != 1 {
        return Err(Refusal::Threads(threads));
    }
    // SAFETY: the caller guarantees it, and the threads were just counted.
    let texts = unsafe { trial::try_in_child(code as u64, probe) }.map_err(Refusal::Doubt)?;
    let changes = texts.changes().map_err(Refusal::Doubt)?;
    // SAFETY: as before; a child has completed the same, and `changes` has checked that each is a
    // loaded object's text.
    unsafe { apply::write(&changes) }.unwrap_or_else(|broken| apply::give_up(&broken));
    Ok(changes.iter().fold(Relinked::default(), |all, change| Relinked {
        objects: all.objects + 1,
        calls: all.calls + change.calls,
        loads: all.loads + change.loads,
        left: all.left + change.left,
    }))
}

/// Changes nothing, because the instructions of this processor are not supported.
///
/// # Safety
///
/// No requirements.
///
/// # Errors
///
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn relink(_: usize, _: fn()) -> Result<Relinked, Refusal> {
    Err(Refusal::Processor)
}
