//! Writes new texts over the old ones, in this process.
//!
//! Memory is writable or executable, never both, and what is written are private copies of pages that hold the file's: no
//! other process sees it. Whether the kernel allows it at all is found out by a child (trial.rs), because a text that was
//! made writable and may not become executable again ends its process.

use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::mm::{MprotectFlags, mprotect};
use std::io;
use std::ops::Range;

const PAGE: usize = 4096;

/// A library's code, and what it is to be.
pub(crate) struct Change<'a> {
    pub(crate) range: Range<u64>,
    pub(crate) text: &'a [u8],
    pub(crate) calls: u64,
    pub(crate) loads: u64,
    pub(crate) left: u64,
}

/// Of this process.
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.flatten().count())
}

/// What failed, between the two states.
#[derive(Debug)]
pub(crate) struct Broken {
    range: Range<u64>,
    pub(crate) error: io::Error,
}

/// Nothing that has lost its code can go on.
pub(crate) fn give_up(broken: &Broken) -> ! {
    panic!("cannot make the code at {:#x} executable again: {}", broken.range.start, broken.error)
}

/// # Safety
///
/// No other thread runs, none of this code is on the stack, and each change belongs to an object that is loaded where it
/// says, with the text that it was made of.
pub(crate) unsafe fn write(changes: &[Change]) -> Result<(), Broken> {
    // A handler might be in there.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = changes.iter().try_for_each(|change| {
        // SAFETY: passed on.
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
    // SAFETY: the whole pages of a text that is not running now (the caller's promise).
    unsafe { mprotect(whole, len, MprotectFlags::READ | MprotectFlags::WRITE) }?;
    let mut done = 0;
    while done < text.len() {
        // Up to the end of a page, so that those without a change stay the file's.
        let n = (PAGE - (from + done) % PAGE).min(text.len() - done);
        let there = (from + done) as *mut u8;
        // SAFETY: within the text, which is as long as the plan's; nobody else has a reference to it.
        let old = unsafe { std::slice::from_raw_parts_mut(there, n) };
        let new = &text[done..done + n];
        if old != new {
            old.copy_from_slice(new);
        }
        done += n;
    }
    // SAFETY: as above; it is what it was before.
    unsafe { mprotect(whole, len, MprotectFlags::READ | MprotectFlags::EXEC) }?;
    Ok(())
}
