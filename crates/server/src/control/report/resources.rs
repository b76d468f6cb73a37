//! Kernel resources of this process.
//!
//! The kind of a descriptor is found by `fstat`, not by the name of its link: for a server with
//! 10,000 connections this takes some milliseconds.

use rustix::fs::{FileType, PROC_SUPER_MAGIC, Stat, fstat, fstatfs};
use samovar_wire::{Descriptors, Resources};
use std::fs::DirEntry;
use std::os::fd::BorrowedFd;

/// Maximum number of descriptors that are inspected; further ones count as `others`.
const DESCRIPTORS_MAX: usize = 1 << 17;

pub(super) fn now() -> Resources {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads: Vec<DirEntry> = threads.collect();
    // Linux lists the children by the thread that forked them.
    let children = |thread: &DirEntry| {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        list.split_whitespace().count() as u64
    };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    Resources {
        descriptors: descriptors(),
        threads: threads.len() as u64,
        children: threads.iter().map(children).sum(),
        mappings: maps.lines().count() as u64,
    }
}

fn descriptors() -> Descriptors {
    let mut found = Descriptors::default();
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    for (place, entry) in entries.enumerate() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let kind = number.filter(|_| place < DESCRIPTORS_MAX).and_then(|number| {
            let link = || std::fs::read_link(entry.path()).unwrap_or_default();
            kind_of(number, || link().to_string_lossy().into_owned())
        });
        *match kind {
            // Closed since the folder was read. The descriptor for reading the folder itself is one
            // of these.
            Some(Kind::Closed) => continue,
            Some(Kind::Socket) => &mut found.sockets,
            Some(Kind::Pipe) => &mut found.pipes,
            Some(Kind::Event) => &mut found.events,
            Some(Kind::Memory) => &mut found.memory,
            Some(Kind::Process) => &mut found.processes,
            Some(Kind::File) => &mut found.files,
            None => &mut found.others,
        } += 1;
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Closed,
    Socket,
    Pipe,
    Event,
    Memory,
    Process,
    File,
}

/// Returns the kind of an open descriptor; `None`: another kind. `link` is called only for kinds
/// that `fstat` cannot distinguish.
#[allow(unsafe_code)]
fn kind_of(number: i32, link: impl Fn() -> String) -> Option<Kind> {
    // SAFETY: the borrowed descriptor is not closed here. If another thread has closed the number
    // meanwhile, both calls return an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let Ok(Stat { st_mode, .. }) = fstat(descriptor) else { return Some(Kind::Closed) };
    match FileType::from_raw_mode(st_mode) {
        FileType::Socket => Some(Kind::Socket),
        FileType::Fifo => Some(Kind::Pipe),
        FileType::RegularFile if link().starts_with("/memfd:") => Some(Kind::Memory),
        FileType::RegularFile | FileType::Directory => {
            let is_process = fstatfs(descriptor).is_ok_and(|of| of.f_type == PROC_SUPER_MAGIC);
            Some(if is_process { Kind::Process } else { Kind::File })
        }
        // Descriptors such as `anon_inode:[eventfd]` have no file type.
        _ => match link().as_str() {
            "anon_inode:[eventfd]" | "anon_inode:[eventpoll]" | "anon_inode:[timerfd]" => {
                Some(Kind::Event)
            }
            "anon_inode:[pidfd]" => Some(Kind::Process),
            name if name.starts_with("pidfd:") => Some(Kind::Process),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn kind(descriptor: &impl AsRawFd) -> Option<Kind> {
        let number = descriptor.as_raw_fd();
        kind_of(number, || {
            let link = std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap();
            link.to_string_lossy().into_owned()
        })
    }

    #[test]
    fn kind_of_each_descriptor_is_recognized() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert_eq!(kind(&reader), Some(Kind::Pipe));
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(kind(&one), Some(Kind::Socket));
        assert_eq!(kind(&std::fs::File::open("Cargo.toml").unwrap()), Some(Kind::File));
        assert_eq!(kind(&std::fs::File::open("/proc/self/stat").unwrap()), Some(Kind::Process));
        assert_eq!(kind(&std::fs::File::open("/dev/null").unwrap()), None);
        assert_eq!(kind_of(i32::MAX, String::new), Some(Kind::Closed));
    }

    #[test]
    fn resources_count_threads_and_mappings() {
        let now = now();
        assert!(now.threads > 0 && now.mappings > 10, "{now:?}");
    }
}
