//! Files without waiting for the disk: what the kernel has in memory is read at once, the rest by threads of our own.

use crate::runtime::threads::{Job, Threads};
use crate::runtime::throttle::Throttle;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// How many reads and writes can wait for a disk at a time.
const THREADS: usize = 4;

/// What a thread does with a file.
pub(crate) type DiskJob<T> = Job<T>;

/// The threads. Who has an exchange, an upload or a file in hand has at most one job among them, so the connections'
/// limit bounds what waits here.
#[derive(Debug)]
pub(crate) struct DiskThreads {
    threads: Threads,
    warnings: Throttle,
}

impl DiskThreads {
    /// Starts the threads; one is enough to go on with.
    pub(crate) fn start() -> io::Result<DiskThreads> {
        let threads = Threads::start("disk", THREADS)?;
        Ok(DiskThreads { threads, warnings: Throttle::default() })
    }

    /// The same threads, for another one of the front's.
    pub(crate) fn beside(&self) -> DiskThreads {
        DiskThreads { threads: self.threads.clone(), warnings: Throttle::default() }
    }

    /// Has `work` done by one of the threads. Dropping the result does not stop it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> DiskJob<T> {
        self.threads.run(work)
    }

    /// Up to `len` bytes of `file` from `at` on, at least one.
    pub(crate) fn read(&self, file: &Arc<File>, at: u64, len: usize) -> Reading {
        match read_cached(file, at, len) {
            Ok(Some(bytes)) => Reading::Done(Ok(bytes)),
            Err(error) => Reading::Done(Err(error)),
            Ok(None) => {
                let file = Arc::clone(file);
                Reading::Running(self.run(move || read_some(&file, at, len)))
            }
        }
    }

    /// `what` cannot be kept in, or had back from, the folder for temporary files.
    pub(crate) fn report(&self, what: &str, temp_dir: &Path, error: &io::Error) {
        if let Some(suppressed) = self.warnings.pass() {
            tracing::warn!(
                %error,
                temp_dir = %temp_dir.display(),
                suppressed,
                "cannot keep {what} (hint: free space there, or set another `temp_dir`)"
            );
        }
    }
}

/// Bytes of a file, now or soon.
#[derive(Debug)]
pub(crate) enum Reading {
    Done(io::Result<Bytes>),
    Running(DiskJob<Bytes>),
}

impl Future for Reading {
    type Output = io::Result<Bytes>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        match self.get_mut() {
            Reading::Done(result) => {
                Poll::Ready(std::mem::replace(result, Err(io::ErrorKind::Other.into())))
            }
            Reading::Running(job) => Pin::new(job).poll(cx),
        }
    }
}

/// The process, or the machine, has no descriptors left: a moment later it may have.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// What is in the page cache; `None`: a disk has to be asked, or this file system cannot tell.
fn read_cached(file: &File, at: u64, len: usize) -> io::Result<Option<Bytes>> {
    let mut bytes = vec![0; len];
    match preadv2(file, &mut [IoSliceMut::new(&mut bytes)], at, ReadWriteFlags::NOWAIT) {
        Ok(0) if len > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => {
            bytes.truncate(read);
            Ok(Some(bytes.into()))
        }
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn read_some(file: &File, at: u64, len: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; len];
    loop {
        match file.read_at(&mut bytes, at) {
            Ok(0) if len > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                bytes.truncate(read);
                return Ok(bytes.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tokio::runtime::Builder;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn bytes_come_from_memory_or_from_the_disk() {
        let disk = DiskThreads::start().expect("threads");
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"0123456789").expect("room");
        let file = Arc::new(file);
        assert_eq!(block_on(disk.read(&file, 2, 3)).expect("bytes"), &b"234"[..]);
        assert_eq!(block_on(disk.read(&file, 8, 30)).expect("bytes"), &b"89"[..]);
        let beyond = block_on(disk.read(&file, 10, 1)).expect_err("nothing is there");
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read_some(&file, 8, 30).expect("bytes"), &b"89"[..]);
        assert!(read_some(&file, 10, 1).is_err());
    }
}
