//! The successor's side: receives the listeners of the running server, and takes over on its
//! command. Until this one is ready, the running server continues to serve.

use super::claim::Claim;
use super::messages::{FollowingEnd, Reply, Word, shortened};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_channel::Heard;
use samovar_config::{DEFAULT_POOL, Listen, Listener};
use samovar_front::{Bound, listeners};
use samovar_insight::HandoverGate;
use samovar_supervisor::{Boot, Elsewhere, successor};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Timeout for the handed over descriptors; they were sent before this process started.
const ARRIVAL_LIMIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// Maximum number of messages with descriptors.
const HANDED_MAX: usize = 256;

/// The server that this one replaces, while it exists. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Predecessor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    channel: FollowingEnd,
    /// Process id; 0: it has ended.
    pid: AtomicI32,
    /// Whether its application booted successfully.
    boots: bool,
    handed: Mutex<Handed>,
    /// Turn that comes when the predecessor accepts no more connections.
    gone_quiet: HandoverGate,
    /// Turn that comes when the predecessor's process has ended.
    gone: HandoverGate,
}

/// Received descriptors that are not used yet.
#[derive(Debug, Default)]
struct Handed {
    listeners: Vec<(String, OwnedFd)>,
    admin: Vec<(String, OwnedFd)>,
    pinba: Vec<(String, OwnedFd)>,
    control: Option<(PathBuf, OwnedFd)>,
    /// `None`: its version has no claim.
    claim: Option<Claim>,
    /// Pools and the labels of their releases.
    releases: Vec<(String, String)>,
}

/// Reactions to the predecessor's messages.
pub(crate) trait Entry: Send {
    /// This server must serve now.
    fn go(&self);
    /// Console workers that still run in the predecessor.
    fn consoles(&self, elsewhere: Elsewhere);
    /// The predecessor has ended before the takeover, or continues to serve itself.
    fn abandoned(&self);
}

impl Predecessor {
    /// Returns the server that has started this process as its successor, if there is one. Must be
    /// called on the main thread, before any descriptor is opened.
    pub fn of_environment() -> io::Result<Option<Predecessor>> {
        let variable = std::env::var(successor::CHANNEL_VARIABLE).ok();
        let Some(channel) = successor::channel_of_predecessor(variable.as_deref())? else {
            return Ok(None);
        };
        let pid = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let channel = FollowingEnd::from(channel);
        let mut handed = Handed::default();
        let boots = handed.receive(&channel)?;
        channel.send(&Reply::Hello { version: env!("CARGO_PKG_VERSION").to_owned() })?;
        // From here on, the end of the channel reports the predecessor's end.
        successor::outlive_parent()?;
        let inner = Inner {
            channel,
            pid: AtomicI32::new(pid),
            boots,
            handed: Mutex::new(handed),
            gone_quiet: HandoverGate::later(),
            gone: HandoverGate::later(),
        };
        Ok(Some(Predecessor(Arc::new(inner))))
    }

    /// Returns its process id, while it exists.
    pub(crate) fn pid(&self) -> Option<i32> {
        Some(self.0.pid.load(Ordering::Acquire)).filter(|pid| *pid > 0)
    }

    /// Returns a turn that comes when its process has ended: then its files are free.
    pub(crate) fn gone(&self) -> HandoverGate {
        self.0.gone.clone()
    }

    /// Returns a turn that comes when it accepts no more input.
    pub(crate) fn gone_quiet(&self) -> HandoverGate {
        self.0.gone_quiet.clone()
    }

    /// Returns the socket of an entry of `listen`, if the predecessor had the same entry.
    pub(crate) fn listener(&self, listener: &Listener) -> Option<io::Result<Bound>> {
        let socket = take(&mut self.handed().listeners, &listeners::name_of(listener))?;
        Some(Bound::take(listener, socket))
    }

    /// Returns the sockets of a service manager.
    pub(crate) fn inherited(&self) -> io::Result<Option<Vec<Bound>>> {
        let mut handed = self.handed();
        let of_manager = handed.listeners.extract_if(.., |(name, _)| name.is_empty());
        let bound = of_manager.map(|(_, socket)| Bound::take_inherited(socket));
        let bound = bound.collect::<io::Result<Vec<_>>>()?;
        Ok(Some(bound).filter(|bound| !bound.is_empty()))
    }

    /// Returns the admin listener's socket for this entry.
    pub(crate) fn admin(&self, at: &Listen) -> Option<TcpListener> {
        take(&mut self.handed().admin, &at.to_string()).map(TcpListener::from)
    }

    /// Returns the socket for Pinba packets of other machines.
    pub(crate) fn pinba(&self, at: &Listen) -> Option<OwnedFd> {
        take(&mut self.handed().pinba, &at.to_string())
    }

    /// Returns the label of a pool's release; empty: it has none. The settings may have other pools
    /// now.
    pub(crate) fn release(&self, pool: &str) -> String {
        let handed = self.handed();
        let is_default = pool.is_empty() || pool == DEFAULT_POOL;
        let is_it = |(of, _): &&(String, String)| of == pool || (of.is_empty() && is_default);
        handed.releases.iter().find(is_it).map(|(_, label)| label.clone()).unwrap_or_default()
    }

    /// Returns the control socket, if its path is the wanted one or no path is given.
    pub(crate) fn control(&self, wanted: Option<&PathBuf>) -> Option<(PathBuf, UnixListener)> {
        let is_wanted = |handed: &mut (PathBuf, OwnedFd)| wanted.is_none_or(|at| *at == handed.0);
        let (path, socket) = self.handed().control.take_if(is_wanted)?;
        Some((path, UnixListener::from(socket)))
    }

    /// Handles the end of this server's first boot. Returns the reason if it was not good enough to
    /// take over.
    pub(crate) fn booted(&self, boot: Boot) -> Result<(), &'static str> {
        match boot {
            Boot::Failed if self.0.boots => {
                Err("the application's boot failed\nhint: see the server's log")
            }
            Boot::Late => Err(
                "the application did not boot within `timeouts.boot`\nhint: see the server's log, \
                 or raise `timeouts.boot`",
            ),
            Boot::Up | Boot::Failed => {
                self.say(&Reply::Ready);
                Ok(())
            }
        }
    }

    /// Reports that this server will not serve.
    pub fn failed(&self, why: &str) {
        self.say(&Reply::Failed { why: shortened(why) });
    }

    /// Starts a thread that receives the predecessor's messages.
    pub(crate) fn attend(&self, entry: impl Entry + 'static) -> io::Result<()> {
        let own = self.clone();
        let attend = move || own.hear(&entry);
        std::thread::Builder::new().name("predecessor".to_owned()).spawn(attend)?;
        Ok(())
    }

    fn hear(&self, entry: &impl Entry) {
        let mut has_begun = false;
        loop {
            match self.0.channel.hear() {
                Ok(Heard::Message(Word::Go, _)) if !has_begun => {
                    if !self.claims() {
                        break;
                    }
                    has_begun = true;
                    entry.go();
                    self.drop_rest();
                    self.say(&Reply::Took);
                    self.0.gone_quiet.come();
                }
                Ok(Heard::Message(Word::Consoles { left, named }, _)) => {
                    let is_complete = named.len() == left;
                    entry.consoles(if is_complete {
                        Elsewhere::These(named)
                    } else {
                        Elsewhere::All
                    });
                }
                Ok(Heard::Message(..) | Heard::Garbled(_)) => {}
                Ok(Heard::End) | Err(_) => break,
            }
        }
        self.0.pid.store(0, Ordering::Release);
        if has_begun {
            self.0.gone.come();
            entry.consoles(Elsewhere::These(Vec::new()));
        } else {
            entry.abandoned();
        }
    }

    /// Returns whether this server may serve; the predecessor may have waited too long and continue
    /// itself.
    fn claims(&self) -> bool {
        self.handed().claim.take().is_none_or(|claim| claim.take())
    }

    /// Closes descriptors that the settings do not need, and removes the files of such sockets.
    fn drop_rest(&self) {
        let Handed { listeners, control, .. } = std::mem::take(&mut *self.handed());
        let paths = listeners.iter().filter_map(|(name, _)| name.strip_prefix("unix:"));
        let paths = paths.map(PathBuf::from).chain(control.iter().map(|(path, _)| path.clone()));
        // A file may be missing already; the error is ignored.
        paths.for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// Sends a message. The predecessor may have ended; the error is ignored.
    fn say(&self, response: &Reply) {
        let _ = self.0.channel.send_now(response, None);
    }

    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.0.handed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(from: &mut Vec<(String, OwnedFd)>, name: &str) -> Option<OwnedFd> {
    let at = from.iter().position(|(its, _)| its == name && !name.is_empty())?;
    Some(from.remove(at).1)
}

impl Handed {
    /// Receives all descriptors. Returns whether the predecessor's application has booted.
    fn receive(&mut self, channel: &FollowingEnd) -> io::Result<bool> {
        for _ in 0..HANDED_MAX {
            if poll(&mut [PollFd::new(channel, PollFlags::IN)], Some(&ARRIVAL_LIMIT))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (word, fd) = match channel.hear()? {
                Heard::Message(word, fd) => (word, fd),
                // A message of a newer version.
                Heard::Garbled(_) => continue,
                Heard::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            };
            match (word, fd) {
                (Word::Complete { boots }, _) => return Ok(boots),
                (Word::Stderr, Some(fd)) => rustix::stdio::dup2_stderr(&fd)?,
                (Word::Listener { name }, Some(fd)) => self.listeners.push((name, fd)),
                (Word::Admin { name }, Some(fd)) => self.admin.push((name, fd)),
                (Word::Pinba { name }, Some(fd)) => self.pinba.push((name, fd)),
                (Word::Control { path }, Some(fd)) => self.control = Some((path, fd)),
                (Word::Release { pool, label }, _) => self.releases.push((pool, label)),
                (Word::Claim, Some(fd)) => self.claim = Some(fd.into()),
                _ => {}
            }
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the previous server sent more descriptors than allowed",
        ))
    }
}
