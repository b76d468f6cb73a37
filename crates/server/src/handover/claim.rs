//! Decides which of two servers serves after the handover: the one that reads the single token from
//! a pipe. Only one of them can get it, however late either is.

use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The pipe's reading end.
#[derive(Debug)]
pub(crate) struct Claim(OwnedFd);

impl Claim {
    /// Creates a claim with its token.
    pub(crate) fn new() -> io::Result<Claim> {
        // The second reader must not block.
        let (end, filler) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        rustix::io::write(&filler, b"!")?;
        Ok(Claim(end))
    }

    /// Takes the token. Returns false if the other server has taken it.
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
    fn claim_is_taken_only_once() {
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
