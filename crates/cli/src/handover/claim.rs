//! Which of two servers goes on once the word was given: whoever takes the one token that lies in a pipe. However late either is, only one
//! of them can have it.

use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The end where it is taken.
#[derive(Debug)]
pub(crate) struct Claim(OwnedFd);

impl Claim {
    /// One that nobody has taken.
    pub(crate) fn new() -> io::Result<Claim> {
        // Whoever comes second is not to wait.
        let (end, filler) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::write(&filler, b"!")?;
        Ok(Claim(end))
    }

    /// Whether this process has it now; false: somebody else does.
    pub(crate) fn take(&self) -> bool {
        rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut [0; 1])) == Ok(1)
    }
}

impl From<OwnedFd> for Claim {
    fn from(end: OwnedFd) -> Claim {
        Claim(end)
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_whoever_comes_first() {
        for _ in 0..200 {
            let ours = Claim::new().expect("a pipe");
            let theirs = Claim::from(ours.as_fd().try_clone_to_owned().expect("a copy"));
            let them = std::thread::spawn(move || (theirs.take(), theirs.take()));
            let us = (ours.take(), ours.take());
            let them = them.join().expect("no panic");
            let taken = [us.0, us.1, them.0, them.1].into_iter().filter(|taken| *taken);
            assert_eq!(taken.count(), 1, "{us:?} {them:?}");
        }
    }
}
