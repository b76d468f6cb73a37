//! New texts in a memory file, which a child passes to its parent.
//!
//! There is a record for each: its start and end, the numbers of direct calls and loads, and of
//! calls left, eight bytes each; then the text. A child that refuses writes its reason instead.

use crate::apply::Change;
use crate::object;
use crate::rule::Planned;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::ptr;

const WORDS: usize = 5;
const RECORD_BYTES: usize = WORDS * 8;
/// Maximum length of a reason that is read.
const REASON_BYTES_MAX: usize = 400;

/// An empty file, for the child.
pub(crate) fn file() -> io::Result<File> {
    Ok(File::from(memfd_create("samovar-relink", MemfdFlags::CLOEXEC)?))
}

pub(crate) fn put(mut file: &File, plans: &[Planned]) -> io::Result<()> {
    for Planned { range, plan } in plans {
        for word in [range.start, range.end, plan.calls, plan.loads, plan.left] {
            file.write_all(&word.to_le_bytes())?;
        }
        file.write_all(&plan.text)?;
    }
    Ok(())
}

/// The reason that a child has written.
pub(crate) fn reason(file: &File) -> String {
    let mut bytes = [0; REASON_BYTES_MAX];
    let n = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

/// The file in memory: mapped, so that none of it is on the heap.
pub(crate) struct Texts {
    at: *const u8,
    len: usize,
}

impl Texts {
    pub(crate) fn of(file: &File) -> io::Result<Texts> {
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a private mapping of a file that is no longer written: the child has ended.
        let at =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        Ok(Texts { at: at.cast(), len })
    }

    /// The changes. Each must be the text of a loaded object.
    pub(crate) fn changes(&self) -> Result<Vec<Change<'_>>, String> {
        // SAFETY: the mapping has this length and lives as long as `self`.
        let mut rest = unsafe { std::slice::from_raw_parts(self.at, self.len) };
        let objects = object::loaded();
        let mut changes = Vec::new();
        while !rest.is_empty() {
            let (record, after) = rest
                .split_at_checked(RECORD_BYTES)
                .ok_or("incomplete record in the memory file")?;
            let mut words = [0; WORDS];
            for (word, bytes) in words.iter_mut().zip(record.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().map_err(|_| "incomplete word")?);
            }
            let [start, end, calls, loads, left] = words;
            let range = start..end;
            if !objects.iter().any(|object| object.text().as_ref() == Some(&range)) {
                return Err(format!("there is no code at {range:#x?}"));
            }
            let text;
            (text, rest) = after
                .split_at_checked((end - start) as usize)
                .ok_or("incomplete code in the memory file")?;
            changes.push(Change { range, text, calls, loads, left });
        }
        Ok(changes)
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        // SAFETY: our own mapping, without borrowers. It could only fail for another range.
        let _ = unsafe { munmap(self.at.cast_mut().cast(), self.len) };
    }
}
