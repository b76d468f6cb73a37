//! The system call that a thread is in: its name, and the subject of the wait according to its
//! arguments.
//!
//! Read from `/proc/PID/task/TID/syscall`. The data behind the numbers are read from the process,
//! which may have changed them.

use crate::memory::{Memory, Piece, Process, half_at, word_at};

/// Maximum number of descriptors read of one `poll` or `select`.
const DESCRIPTORS_MAX: usize = 1024;

/// Maximum bytes read of a path.
const PATH_BYTES_MAX: usize = 256;

/// A thread's activity, as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs, or is ready to run and waits for a processor.
    Running,
    /// It waits outside a system call, for example for a page of its memory.
    Elsewhere,
    /// It is in a system call.
    Call {
        /// The kernel's number.
        number: i64,
        /// Its name, such as `poll`; `None` for a call that PHP does not make.
        name: Option<&'static str>,
        /// Subject of the wait.
        subject: Subject,
    },
}

/// Subject of a system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing that can be shown.
    Nothing,
    /// A child process; a negative number means any child.
    Process(i32),
    /// A path, as far as it could be read.
    Path(String),
    /// These descriptors.
    Descriptors(Vec<i32>),
}

/// Activity of a thread; `None` if the kernel does not report it.
pub fn doing(pid: u32, thread: u32) -> Option<Doing> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).ok()?;
    doing_of(pid, &line)
}

/// Activity of a thread of process `pid` according to that line.
pub(crate) fn doing_of(pid: u32, line: &str) -> Option<Doing> {
    Some(match parse(line)? {
        Line::Running => Doing::Running,
        Line::Elsewhere => Doing::Elsewhere,
        Line::Call(number, arguments) => {
            let (name, kind) = name(number);
            let name = Some(name).filter(|name| !name.is_empty());
            Doing::Call { number, name, subject: subject(pid, kind, &arguments) }
        }
    })
}

/// Content of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Running,
    Elsewhere,
    Call(i64, [u64; 6]),
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Line::Running);
    }
    let number: i64 = first.parse().ok()?;
    if number < 0 {
        return Some(Line::Elsewhere);
    }
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        let word = words.next()?;
        *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    }
    Some(Line::Call(number, arguments))
}

/// Types of a system call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first is a descriptor.
    Descriptor,
    /// An array of `pollfd`, and its length.
    Poll,
    /// A number of descriptors, and bit sets.
    Select,
    /// The second is a path.
    Path,
    /// The first is a process id.
    Process,
    /// Nothing that can be shown.
    Plain,
}

fn subject(pid: u32, kind: Kind, arguments: &[u64; 6]) -> Subject {
    let first = (arguments[0] as u32).cast_signed();
    match kind {
        Kind::Plain => return Subject::Nothing,
        Kind::Process => return Subject::Process(first),
        Kind::Descriptor => return Subject::Descriptors(vec![first]),
        Kind::Poll | Kind::Select | Kind::Path => {}
    }
    let Ok(memory) = Process::new(pid) else { return Subject::Nothing };
    match kind {
        Kind::Path => Subject::Path(path(&memory, arguments[1])),
        Kind::Select => Subject::Descriptors(selected(&memory, arguments)),
        _ => Subject::Descriptors(polled(&memory, arguments[0], arguments[1])),
    }
}

/// The descriptors of an array of `struct pollfd { int fd; short events, revents; }`.
fn polled(memory: &impl Memory, address: u64, count: u64) -> Vec<i32> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(DESCRIPTORS_MAX);
    let mut bytes = vec![0; count * 8];
    let came = memory.copy(&[Piece { address, bytes: count * 8 }], &mut bytes).unwrap_or(0);
    let all = bytes[..came].chunks_exact(8).map(|one| half_at(one, 0).cast_signed());
    all.filter(|fd| *fd >= 0).collect()
}

/// The descriptors whose bits are set in one of the three sets.
fn selected(memory: &impl Memory, arguments: &[u64; 6]) -> Vec<i32> {
    let count = usize::try_from(arguments[0]).unwrap_or(usize::MAX).min(DESCRIPTORS_MAX);
    let words = count.div_ceil(64);
    let mut found = std::collections::BTreeSet::new();
    for set in arguments[1..4].iter().filter(|set| **set != 0) {
        let mut bytes = vec![0; words * 8];
        if !memory.fill(*set, &mut bytes).unwrap_or(false) {
            continue;
        }
        let is_set = |fd: &usize| word_at(&bytes, fd / 64 * 8) >> (fd % 64) & 1 == 1;
        found.extend((0..count).filter(is_set).filter_map(|fd| i32::try_from(fd).ok()));
    }
    found.into_iter().collect()
}

fn path(memory: &impl Memory, address: u64) -> String {
    let mut bytes = [0; PATH_BYTES_MAX];
    let first = (4096 - address % 4096).min(PATH_BYTES_MAX as u64) as usize;
    let pieces = [
        Piece { address, bytes: first },
        Piece { address: address.wrapping_add(first as u64), bytes: PATH_BYTES_MAX - first },
    ];
    let came = memory.copy(&pieces, &mut bytes).unwrap_or(0);
    let text = bytes[..came].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

macro_rules! calls {
    ($($(#[$when:meta])* $number:ident $name:literal $kind:ident,)*) => {
        /// The name of a system call, and the types of its arguments.
        fn name(number: i64) -> (&'static str, Kind) {
            match number {
                $($(#[$when])* libc::$number => ($name, Kind::$kind),)*
                _ => ("", Kind::Plain),
            }
        }
    };
}

calls! {
    SYS_read "read" Descriptor,
    SYS_write "write" Descriptor,
    SYS_pread64 "pread" Descriptor,
    SYS_pwrite64 "pwrite" Descriptor,
    SYS_readv "readv" Descriptor,
    SYS_writev "writev" Descriptor,
    SYS_recvfrom "recv" Descriptor,
    SYS_recvmsg "recvmsg" Descriptor,
    SYS_sendto "send" Descriptor,
    SYS_sendmsg "sendmsg" Descriptor,
    SYS_sendfile "sendfile" Descriptor,
    SYS_connect "connect" Descriptor,
    SYS_accept "accept" Descriptor,
    SYS_accept4 "accept" Descriptor,
    SYS_flock "flock" Descriptor,
    SYS_fcntl "fcntl lock" Descriptor,
    SYS_fallocate "fallocate" Descriptor,
    SYS_fsync "fsync" Descriptor,
    SYS_fdatasync "fdatasync" Descriptor,
    SYS_ftruncate "ftruncate" Descriptor,
    SYS_ioctl "ioctl" Descriptor,
    SYS_getdents64 "getdents" Descriptor,
    SYS_epoll_pwait "epoll_wait" Descriptor,
    #[cfg(target_arch = "x86_64")] SYS_epoll_wait "epoll_wait" Descriptor,
    #[cfg(target_arch = "x86_64")] SYS_poll "poll" Poll,
    SYS_ppoll "poll" Poll,
    #[cfg(target_arch = "x86_64")] SYS_select "select" Select,
    SYS_pselect6 "select" Select,
    SYS_openat "open" Path,
    SYS_newfstatat "stat" Path,
    SYS_statx "stat" Path,
    SYS_futex "futex" Plain,
    SYS_nanosleep "sleep" Plain,
    SYS_clock_nanosleep "sleep" Plain,
    SYS_wait4 "wait for a child" Process,
    SYS_waitid "wait for a child" Plain,
    #[cfg(target_arch = "x86_64")] SYS_pause "pause" Plain,
    SYS_rt_sigtimedwait "wait for a signal" Plain,
    SYS_rt_sigsuspend "wait for a signal" Plain,
    SYS_semop "semop" Plain,
    SYS_semtimedop "semop" Plain,
    SYS_msgrcv "msgrcv" Plain,
    SYS_msync "msync" Plain,
    SYS_sched_yield "sched_yield" Plain,
    SYS_munmap "munmap" Plain,
    SYS_mmap "mmap" Plain,
    SYS_brk "brk" Plain,
    SYS_exit_group "exit" Plain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syscall_lines_are_parsed() {
        for (line, expected) in [
            ("running\n", Some(Line::Running)),
            ("-1 0x7ffc 0x7f00\n", Some(Line::Elsewhere)),
            (
                "7 0x7f10 0x2 0xffffffff 0x0 0x0 0x0 0x7ffe 0x7fb1\n",
                Some(Line::Call(7, [0x7f10, 2, 0xffff_ffff, 0, 0, 0])),
            ),
            ("7 0x7f10\n", None),
            ("", None),
            ("garbage\n", None),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }

    #[test]
    fn system_calls_have_names() {
        assert_eq!(name(libc::SYS_flock), ("flock", Kind::Descriptor));
        assert_eq!(name(-5), ("", Kind::Plain));
    }
}
