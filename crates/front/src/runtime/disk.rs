//! File access that does not wait for the disk: bytes in the page cache are read immediately, the
//! rest by separate threads.
//!
//! A file system may hang: a network file system whose server is gone, or FUSE. Each pool has its
//! own threads, so a hanging file system delays only the requests of its pool. `hands` records the
//! work of the threads.

use crate::runtime::disk_jobs::{DiskJobs, JobTarget};
use crate::runtime::mounts::Mounts;
use crate::runtime::threads::{Job, Threads};
use bytes::Bytes;
use rustix::fs::statfs;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use samovar_log::Throttle;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Timeout, timeout};

/// Number of reads and writes of a pool that can wait for a disk at the same time.
const THREADS: usize = 4;
/// Time for a lookup or an open, after which a file system counts as hanging.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for reading one piece of a file. The waiting client has already received the start of
/// a response, or sends a body.
const READING: Duration = Duration::from_mins(1);
/// Local file systems, by the kernel's numbers (`linux/magic.h`, and those of XFS, ZFS, F2FS, JFS,
/// bcachefs, ISO 9660). A lookup there does not depend on another machine or process. All others
/// may hang.
const NEAR: [u64; 15] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0x2FC1_2FC1, // ZFS
    0xF2F5_2010, // F2FS
    0x7371_7368, // squashfs
    0xE0F5_E1E2, // EROFS
    0x3153_464A, // JFS
    0xCA45_1A4E, // bcachefs
    0x5265_4973, // reiserfs
    0x9660,      // ISO 9660
    0x4D44,      // FAT
];

/// Work of a thread with a file.
pub(crate) type DiskJob<T> = Job<T>;

/// The disk threads of a pool. Each exchange, upload or file has at most one job among them. So the
/// limit of connections also limits the queue here.
#[derive(Debug)]
pub(crate) struct DiskThreads {
    threads: Threads,
    hands: Arc<DiskJobs>,
    patience: Duration,
    warnings: Throttle,
    mounts: Mounts,
}

impl DiskThreads {
    /// Starts the threads. Succeeds if at least one starts.
    pub(crate) fn start() -> io::Result<DiskThreads> {
        let threads = Threads::start("disk", THREADS)?;
        let (hands, warnings) = <_>::default();
        Ok(DiskThreads { threads, hands, patience: PATIENCE, warnings, mounts: Mounts::new() })
    }

    /// Returns a handle to the same threads for another thread of the front.
    pub(crate) fn beside(&self) -> DiskThreads {
        let (threads, hands) = (self.threads.clone(), Arc::clone(&self.hands));
        let (patience, warnings, mounts) = (self.patience, Throttle::default(), Mounts::new());
        DiskThreads { threads, hands, patience, warnings, mounts }
    }

    /// Whether files may be looked up without these threads, because no mounted file system may
    /// hang.
    pub(crate) fn are_spared(&self) -> bool {
        !self.mounts.may_hang()
    }

    /// Time for a lookup, after which a file system counts as hanging.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Runs `work`, which uses the file at `place`, on one of the threads. Refuses it if all
    /// threads hang. Dropping the result does not stop the work.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        place: JobTarget,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> DiskJob<T> {
        if self.hands.are_stuck(self.threads.count(), self.patience) {
            self.report_hanging();
            return DiskJob::refused(io::ErrorKind::TimedOut.into());
        }
        let hands = Arc::clone(&self.hands);
        self.threads.run(move || {
            let _held = hands.take(place);
            work()
        })
    }

    /// Runs a query about `path` on one of the threads. Returns an error of the kind `TimedOut` if
    /// the file system does not respond in time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        path: PathBuf,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let said = timeout(self.patience, self.run(JobTarget::Path(path), work)).await;
        said.unwrap_or_else(|_| {
            self.report_hanging();
            Err(io::ErrorKind::TimedOut.into())
        })
    }

    /// Logs that a request has waited for a file system without a result.
    pub(crate) fn report_hanging(&self) {
        if let Some(suppressed) = self.warnings.pass() {
            let (place, since) = self.hands.oldest().unzip();
            let place = place.as_deref().map_or("", |place| place.trim_end());
            tracing::warn!(
                place,
                for_s = since.map_or(0, |since| since.as_secs()),
                suppressed,
                "file system does not respond; requests that need it get status 503\n\
                 hint: check the network file server or FUSE process of this mount; `findmnt -T` \
                 shows the mount of a path"
            );
        }
    }

    /// Closes a file on a thread, because closing may wait for the file system.
    fn close(&self, file: Arc<File>) {
        let hands = Arc::clone(&self.hands);
        drop(self.threads.run(move || {
            let _held = hands.take(JobTarget::File(Arc::clone(&file)));
            drop(file);
            Ok(())
        }));
    }

    /// Reads up to `len` bytes of `file`, starting at `at`; at least one.
    pub(crate) fn read(&self, file: &Arc<File>, at: u64, len: usize) -> Reading {
        match read_cached(file, at, len) {
            Ok(Some(bytes)) => Reading::Done(Ok(bytes)),
            Err(error) => Reading::Done(Err(error)),
            Ok(None) => {
                let (place, file) = (JobTarget::File(Arc::clone(file)), Arc::clone(file));
                let job = self.run(place, move || read_some(&file, at, len));
                Reading::Running(Box::pin(timeout(READING, job)))
            }
        }
    }

    /// Logs that `content` cannot be written to, or read back from, the folder for temporary files.
    pub(crate) fn report(&self, content: &str, temp_dir: &Path, error: &io::Error) {
        if let Some(suppressed) = self.warnings.pass() {
            tracing::warn!(
                %error,
                temp_dir = %temp_dir.display(),
                suppressed,
                "cannot store {content} in a temporary file (hint: free disk space, or set \
                 another `temp_dir`)"
            );
        }
    }
}

/// Bytes of a file, available or pending.
#[derive(Debug)]
pub(crate) enum Reading {
    Done(io::Result<Bytes>),
    Running(Pin<Box<Timeout<DiskJob<Bytes>>>>),
}

impl Future for Reading {
    type Output = io::Result<Bytes>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        match self.get_mut() {
            Reading::Done(result) => {
                Poll::Ready(std::mem::replace(result, Err(io::ErrorKind::Other.into())))
            }
            Reading::Running(job) => {
                let read = ready!(job.as_mut().poll(cx));
                Poll::Ready(read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
            }
        }
    }
}

/// An open file. On a file system that may hang, it is also closed by a thread.
#[derive(Debug)]
pub(crate) struct Held {
    file: Option<Arc<File>>,
    far: Option<Rc<DiskThreads>>,
}

impl Held {
    /// `far` are the threads that close the file, if its file system may hang.
    pub(crate) fn new(file: File, far: Option<&Rc<DiskThreads>>) -> Held {
        Held { file: Some(Arc::new(file)), far: far.map(Rc::clone) }
    }
}

impl Deref for Held {
    type Target = Arc<File>;

    fn deref(&self) -> &Arc<File> {
        self.file.as_ref().expect("present until dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(disk), Some(file)) = (&self.far, self.file.take()) {
            disk.close(file);
        }
    }
}

/// Whether a lookup of `path` may wait for another machine or process. This call may wait itself.
pub(crate) fn may_hang(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| !NEAR.contains(&(found.f_type.cast_unsigned() & 0xFFFF_FFFF)))
}

/// Whether the process or the machine has no file descriptors left. This may be different a moment
/// later.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Reads bytes from the page cache. `None` if a disk access is necessary, or if the file system
/// does not support this query.
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
impl DiskThreads {
    /// Threads with a short timeout, which all work on `/gone` until the result is dropped.
    pub(crate) fn hanging() -> (DiskThreads, impl Drop) {
        struct Held(Vec<std::sync::mpsc::Sender<()>>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.clear();
            }
        }
        let disk = DiskThreads {
            patience: Duration::from_millis(20),
            mounts: Mounts::unknown(),
            ..DiskThreads::start().expect("threads")
        };
        let held = (0..disk.threads.count()).map(|_| {
            let (release, held) = std::sync::mpsc::channel();
            drop(disk.run(JobTarget::Path("/gone".into()), move || Ok(held.recv().is_ok())));
            release
        });
        let held = Held(held.collect());
        (disk, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tokio::runtime::Builder;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
    }

    #[test]
    fn read_returns_bytes_or_unexpected_eof() {
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
