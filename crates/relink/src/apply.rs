//! Overwrites the old texts with the new ones, in this process.
//!
//! Memory is writable or executable, never both. The writes go to private copies of the file's
//! pages: no other process sees them. A child finds out whether the kernel allows them at all
//! (trial.rs). If a text became writable and could not become executable again, its process would
//! have to end.

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::mm::{MprotectFlags, mprotect};
use std::io;
use std::ops::Range;

const PAGE: usize = 4096;

/// A library's code and its new content.
pub(crate) struct Change<'a> {
    pub(crate) range: Range<u64>,
    pub(crate) text: &'a [u8],
    pub(crate) calls: u64,
    pub(crate) loads: u64,
    pub(crate) left: u64,
}

/// Number of threads of this process.
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.flatten().count())
}

/// A failure between the two states.
#[derive(Debug)]
pub(crate) struct Broken {
    range: Range<u64>,
    pub(crate) error: io::Error,
}

/// A process that has lost its code cannot continue.
pub(crate) fn give_up(broken: &Broken) -> ! {
    panic!("cannot make the code at {:#x} executable again: {}", broken.range.start, broken.error)
}

///
/// No other thread may run, none of this code may be on the stack, and each change must belong to
/// an object that is loaded at that address, with the text that it was made from.
pub(crate) unsafe fn write(changes: &[Change]) -> Result<(), Broken> {
    // A signal handler might be in this code.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = changes.iter().try_for_each(|change| {
        // SAFETY: passed on to the caller.
        unsafe { write_one(change) }.map_err(|error| Broken { range: change.range.clone(), error })
    });
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    result
}

/// # Safety
///
/// As [`write`], for one of them.
unsafe fn write_one(change: &Change) -> io::Result<()> {
    let text = change.text;
    let from = change.range.start as usize;
    let first = from / PAGE * PAGE;
    let len = (change.range.end as usize).next_multiple_of(PAGE) - first;
    let whole = first as *mut _;
    // SAFETY: the whole pages of a text that does not run now (the caller guarantees this).
    unsafe { mprotect(whole, len, MprotectFlags::READ | MprotectFlags::WRITE) }?;
    let mut done = 0;
    while done < text.len() {
        // Up to the end of a page, so that pages without a change remain the file's.
        let n = (PAGE - (from + done) % PAGE).min(text.len() - done);
        let there = (from + done) as *mut u8;
        // SAFETY: within the text, which is as long as the plan's; there is no other reference to
        // it.
        let old = unsafe { std::slice::from_raw_parts_mut(there, n) };
        let new = &text[done..done + n];
        if old != new {
            old.copy_from_slice(new);
        }
        done += n;
    }
    // SAFETY: as above; restores the protection that it had before.
    unsafe { mprotect(whole, len, MprotectFlags::READ | MprotectFlags::EXEC) }?;
    Ok(())
}
