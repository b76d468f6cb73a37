//! A prepared supervisor: its signals are blocked and its pools exist, but nothing runs yet.

use crate::consoles::Elsewhere;
use crate::handle::{Command, Handle};
use crate::os::{self, Signals};
use crate::overrun_diagnosis::OverrunDiagnosis;
use samovar_log::Intake;
use samovar_published::Publishing;
use samovar_ring::Ring;
use samovar_shared::Shared;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A supervisor that has blocked its signals, and has started nothing yet.
pub struct Running {
    pub(super) signals: Signals,
    /// The pools, the default pool first.
    pub(super) posts: Vec<Post>,
}

/// The parts of a pool that exist before it runs.
pub(super) struct Post {
    /// Name of the pool; empty if it is the only one.
    pub(super) name: String,
    pub(super) ring: Ring,
    pub(super) shared: Shared,
    pub(super) published: Publishing,
    pub(super) intake: Intake,
    pub(super) handle: Handle,
    pub(super) commands: Receiver<Command>,
    pub(super) diagnosis: Arc<OverrunDiagnosis>,
    /// Console workers of the previous server.
    pub(super) before: Elsewhere,
}

impl Post {
    pub(super) fn new(
        name: &str,
        ring: Ring,
        (shared, published): (Shared, Publishing),
        intake: Intake,
        diagnosis: Arc<OverrunDiagnosis>,
    ) -> io::Result<Post> {
        let (handle, commands) = Handle::new(&ring)?;
        let (name, before) = (name.to_owned(), Elsewhere::These(Vec::new()));
        Ok(Post { name, ring, shared, published, intake, handle, commands, diagnosis, before })
    }
}

impl Running {
    /// Prepares the supervisor. Must be called on the main thread before any other thread starts:
    /// threads inherit the signal mask. The template is bound to the life of the thread that starts
    /// it.
    ///
    /// - `memory`: shared memory of the workers, except that for requests, and the published
    ///   values, which workers only read
    /// - `intake`: receives the output of all processes
    pub fn prepare(
        ring: Ring,
        memory: (Shared, Publishing),
        intake: Intake,
    ) -> io::Result<Running> {
        let signals = os::block_signals()?;
        os::adopt_orphans();
        let diagnosis = Arc::new(OverrunDiagnosis::start()?);
        let posts = vec![Post::new("", ring, memory, intake, diagnosis)?];
        Ok(Running { signals, posts })
    }

    /// Delays the console workers of all pools added so far, until [`Command::Consoles`] informs
    /// each pool of those that another server still runs.
    pub fn hold_consoles(&mut self) {
        self.posts.iter_mut().for_each(|post| post.before = Elsewhere::All);
    }

    /// Returns the default pool's handle.
    pub fn handle(&self) -> Handle {
        self.posts[0].handle.clone()
    }
}
