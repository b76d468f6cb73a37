//! Finds the globals of each thread, in a PHP that was built for threads.
//!
//! Such a PHP (TSRM/TSRM.c) has a table of its threads, `tsrm_tls_table`: an array of lists of
//! `{void **storage; int count; pthread_t thread_id; next}`. A thread's `executor_globals` are
//! `executor_globals_offset` bytes after the start of its entry.
//!
//! The table's symbol is rarely present. So the table is searched among the variables of the file,
//! by its entries: their `thread_id` leads to a thread's control block, which points to itself and
//! holds a thread's number.

use crate::error::Error;
use crate::maps::Mapping;
use crate::memory::{Memory, Piece, word_at};
use std::collections::BTreeSet;

/// Maximum number of threads that are examined.
const THREADS_MAX: usize = 4096;

/// Maximum number of slots of the table: the number of threads that the server announced.
const SLOTS_MAX: usize = 4096;

/// Maximum bytes of the file's variables that are searched.
const VARIABLES_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a thread's control block that are searched for its number: glibc has it at 720, musl at
/// about 48.
const CONTROL_BLOCK_BYTES: usize = 1024;

/// A thread that runs PHP, or may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    /// Thread id; the process id if PHP has no threads.
    pub(crate) thread: u32,
    /// `executor_globals`.
    pub(crate) executor: u64,
    /// `sapi_globals`.
    pub(crate) sapi: Option<u64>,
}

/// Addresses in the process's memory.
pub(crate) struct PhpAddresses {
    /// The variable `executor_globals_offset`.
    pub(crate) executor_offset: u64,
    /// The variable `sapi_globals_offset`.
    pub(crate) sapi_offset: Option<u64>,
    /// The variable `tsrm_tls_table`, if there is a symbol.
    pub(crate) table: Option<u64>,
}

/// An entry of the table, as `tsrm_tls_entry` has it.
struct Entry {
    count: i32,
    control_block: u64,
    next: u64,
}

/// Finds the threads' globals.
pub(crate) fn find(
    pid: u32,
    memory: &impl Memory,
    maps: &[Mapping],
    file: &Mapping,
    place: &PhpAddresses,
) -> Result<Vec<Context>, Error> {
    let offset = memory.word(place.executor_offset)?.filter(|offset| *offset != 0);
    let sapi = place.sapi_offset.map(|address| memory.word(address)).transpose()?.flatten();
    let numbers = numbers(pid)?;
    let look = Look { memory, numbers: &numbers };
    let table = match place.table {
        Some(variable) => memory.word(variable)?,
        None => look.search(maps, file)?,
    };
    let (Some(offset), Some(table)) = (offset, table) else {
        return Err(Error::Unknown {
            pid,
            what: "it is a thread-safe build, and none of its PHP threads has started".to_owned(),
            hint: "try again when it serves requests".to_owned(),
        });
    };
    let entries = look.entries(table)?;
    let context = |(entry, thread): (u64, u32)| Context {
        thread,
        executor: entry.wrapping_add(offset),
        sapi: sapi.map(|sapi| entry.wrapping_add(sapi)),
    };
    Ok(entries.into_iter().map(context).collect())
}

/// Numbers of a process's threads, as the process counts them and as this process does: those in a
/// container differ.
fn numbers(pid: u32) -> Result<Vec<(u32, u32)>, Error> {
    let folder = format!("/proc/{pid}/task");
    let tasks = std::fs::read_dir(&folder).map_err(|e| Error::of_file(pid, &folder, e))?;
    let all = tasks.flatten().take(THREADS_MAX).filter_map(|task| {
        let ours: u32 = task.file_name().to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let theirs = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let theirs = theirs.and_then(|all| all.split_whitespace().last()?.parse().ok());
        Some((theirs.unwrap_or(ours), ours))
    });
    Ok(all.collect())
}

struct Look<'a, M> {
    memory: &'a M,
    numbers: &'a [(u32, u32)],
}

impl<M: Memory> Look<'_, M> {
    /// Finds the table among the variables of the file, by the entries that it leads to.
    fn search(&self, maps: &[Mapping], file: &Mapping) -> Result<Option<u64>, Error> {
        for range in variables(maps, file) {
            let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or(0)];
            let piece = Piece { address: range.start, bytes: bytes.len() };
            let came = self.memory.copy(&[piece], &mut bytes)?;
            for word in bytes[..came].chunks_exact(8) {
                let table = word_at(word, 0);
                if is_of_heap(table, maps) && !self.entries_checked(table, maps)?.is_empty() {
                    return Ok(Some(table));
                }
            }
        }
        Ok(None)
    }

    /// Entries of the first slots of a supposed table. Most words lead nowhere, which costs one
    /// read.
    fn entries_checked(&self, table: u64, maps: &[Mapping]) -> Result<Vec<(u64, u32)>, Error> {
        let mut bytes = [0; 64 * 8];
        let came = self.memory.copy(&[Piece { address: table, bytes: bytes.len() }], &mut bytes)?;
        let slots: BTreeSet<u64> = bytes[..came].chunks_exact(8).map(|w| word_at(w, 0)).collect();
        let is_led = slots.iter().any(|slot| *slot != 0 && is_of_heap(*slot, maps));
        if is_led {
            self.entries_of(slots.into_iter().filter(|s| is_of_heap(*s, maps)))
        } else {
            Ok(vec![])
        }
    }

    fn entries(&self, table: u64) -> Result<Vec<(u64, u32)>, Error> {
        let mut bytes = vec![0; SLOTS_MAX * 8];
        // In pieces: the length of the table is unknown, and the memory may end after it.
        let pieces: Vec<_> = (0..SLOTS_MAX as u64)
            .step_by(64)
            .map(|slot| Piece { address: table.wrapping_add(slot * 8), bytes: 512 })
            .collect();
        let came = self.memory.copy(&pieces, &mut bytes)?;
        // Words after the table's end lead to no thread.
        self.entries_of(bytes[..came].chunks_exact(8).map(|word| word_at(word, 0)))
    }

    /// Entries with a live thread, each once.
    fn entries_of(&self, slots: impl Iterator<Item = u64>) -> Result<Vec<(u64, u32)>, Error> {
        let mut found: Vec<(u64, u32)> = Vec::new();
        for slot in slots.filter(|slot| *slot != 0) {
            let mut at = slot;
            for _ in 0..THREADS_MAX {
                let Some(entry) = self.entry(at)? else { break };
                let Some(thread) = self.thread(entry.control_block)? else { break };
                if found.iter().any(|(_, known)| *known == thread) {
                    break;
                }
                found.push((at, thread));
                at = entry.next;
            }
        }
        Ok(found)
    }

    fn entry(&self, address: u64) -> Result<Option<Entry>, Error> {
        let mut bytes = [0; 32];
        if !address.is_multiple_of(8) || !self.memory.fill(address, &mut bytes)? {
            return Ok(None);
        }
        let entry = Entry {
            count: word_at(&bytes, 8) as i32,
            control_block: word_at(&bytes, 16),
            next: word_at(&bytes, 24),
        };
        let is_one = (1..10_000).contains(&entry.count) && word_at(&bytes, 0) != 0;
        Ok(is_one.then_some(entry))
    }

    /// The thread with this control block, which points to itself and holds the thread's number.
    fn thread(&self, block: u64) -> Result<Option<u32>, Error> {
        let mut bytes = [0; CONTROL_BLOCK_BYTES];
        if block == 0 || !block.is_multiple_of(8) || !self.memory.fill(block, &mut bytes)? {
            return Ok(None);
        }
        // On aarch64, pthread_t points to the block without the word that points to itself.
        if cfg!(target_arch = "x86_64")
            && word_at(&bytes, 0) != block
            && word_at(&bytes, 16) != block
        {
            return Ok(None);
        }
        let halves = bytes.chunks_exact(4).skip(8).map(|half| crate::memory::half_at(half, 0));
        let number = halves.filter(|half| *half != 0).find_map(|half| {
            self.numbers.iter().find(|(theirs, _)| *theirs == half).map(|(_, ours)| *ours)
        });
        Ok(number)
    }
}

/// The variables of a file: its writable mappings, and the memory without a file directly after
/// them.
fn variables(maps: &[Mapping], file: &Mapping) -> Vec<std::ops::Range<u64>> {
    let is_same = |m: &Mapping| (m.inode, &m.device) == (file.inode, &file.device);
    let mut end = None;
    let mut found = Vec::new();
    for mapping in maps {
        let is_behind = mapping.inode == 0 && end == Some(mapping.range.start);
        if is_same(mapping) || is_behind {
            let size = mapping.range.end - mapping.range.start;
            if mapping.is_written() && size <= VARIABLES_BYTES_MAX {
                found.push(mapping.range.clone());
            }
            end = Some(mapping.range.end);
        }
    }
    found
}

/// Whether there is writable, private memory at an address, as `calloc` returns.
fn is_of_heap(address: u64, maps: &[Mapping]) -> bool {
    let at = maps.partition_point(|m| m.range.end <= address);
    address.is_multiple_of(8)
        && maps
            .get(at)
            .is_some_and(|m| m.range.contains(&address) && m.is_written() && m.inode == 0)
}
