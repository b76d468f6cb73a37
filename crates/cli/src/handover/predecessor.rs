//! The successor's side: it has the listeners of a server that goes on until this one is ready, and takes over when it is told to.

use super::claim::Claim;
use super::words::{Answer, FollowingEnd, Word, shortened};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_channel::Heard;
use samovar_config::{Listen, Listener};
use samovar_front::{Bound, listeners};
use samovar_insight::Turn;
use samovar_supervisor::{Boot, Elsewhere, successor};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long what is handed over may take: it was sent before this process began.
const ARRIVAL_LIMIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };
/// Listeners of all kinds that are taken over at most.
const HANDED_MAX: usize = 256;

/// The server that this one follows, while that is there. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Predecessor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    channel: FollowingEnd,
    /// 0: it has gone.
    pid: AtomicI32,
    /// Its application has booted as it should.
    boots: bool,
    handed: Mutex<Handed>,
    /// Comes when it accepts no more.
    gone_quiet: Turn,
    /// Comes when its process has ended.
    gone: Turn,
}

/// What it has handed over and nobody has taken yet.
#[derive(Debug, Default)]
struct Handed {
    listeners: Vec<(String, OwnedFd)>,
    admin: Vec<(String, OwnedFd)>,
    pinba: Vec<(String, OwnedFd)>,
    control: Option<(PathBuf, OwnedFd)>,
    /// None: of a version that knows none.
    claim: Option<Claim>,
}

/// What happens when the word comes, and after it.
pub(crate) trait Entry: Send {
    /// It is this server's turn.
    fn go(&self);
    /// Which console workers the other one still has.
    fn consoles(&self, elsewhere: Elsewhere);
    /// The other one has ended before it was this server's turn, or goes on itself.
    fn abandoned(&self);
}

impl Predecessor {
    /// The server that has started this process to be its successor, if one has. On the main thread, before anything is
    /// opened.
    pub(crate) fn of_environment() -> io::Result<Option<Predecessor>> {
        let variable = std::env::var(successor::CHANNEL_VARIABLE).ok();
        let Some(channel) = successor::channel_of_predecessor(variable.as_deref())? else {
            return Ok(None);
        };
        let pid = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let channel = FollowingEnd::from(channel);
        let mut handed = Handed::default();
        let boots = handed.receive(&channel)?;
        channel.send(&Answer::Hello { version: env!("CARGO_PKG_VERSION").to_owned() })?;
        // From here on the channel's end says it.
        successor::outlive_parent()?;
        let inner = Inner {
            channel,
            pid: AtomicI32::new(pid),
            boots,
            handed: Mutex::new(handed),
            gone_quiet: Turn::later(),
            gone: Turn::later(),
        };
        Ok(Some(Predecessor(Arc::new(inner))))
    }

    /// Its process, while that is there.
    pub(crate) fn pid(&self) -> Option<i32> {
        Some(self.0.pid.load(Ordering::Acquire)).filter(|pid| *pid > 0)
    }

    /// Comes when its process has ended: what it writes to is free.
    pub(crate) fn gone(&self) -> Turn {
        self.0.gone.clone()
    }

    /// Comes when it takes nothing in any more.
    pub(crate) fn gone_quiet(&self) -> Turn {
        self.0.gone_quiet.clone()
    }

    /// The socket of an entry of `listen`, if it had the same.
    pub(crate) fn listener(&self, listener: &Listener) -> Option<io::Result<Bound>> {
        let socket = take(&mut self.handed().listeners, &listeners::name_of(listener))?;
        Some(Bound::take(listener, socket))
    }

    /// Those of a service manager.
    pub(crate) fn inherited(&self) -> io::Result<Option<Vec<Bound>>> {
        let mut handed = self.handed();
        let of_manager = handed.listeners.extract_if(.., |(name, _)| name.is_empty());
        let bound = of_manager.map(|(_, socket)| Bound::take_inherited(socket));
        let bound = bound.collect::<io::Result<Vec<_>>>()?;
        Ok(Some(bound).filter(|bound| !bound.is_empty()))
    }

    /// The admin listener's socket of that entry.
    pub(crate) fn admin(&self, at: &Listen) -> Option<TcpListener> {
        take(&mut self.handed().admin, &at.to_string()).map(TcpListener::from)
    }

    /// The socket of other machines' packets.
    pub(crate) fn pinba(&self, at: &Listen) -> Option<OwnedFd> {
        take(&mut self.handed().pinba, &at.to_string())
    }

    /// The control socket, if it is the one that is wanted, or any would do.
    pub(crate) fn control(&self, wanted: Option<&PathBuf>) -> Option<(PathBuf, UnixListener)> {
        let is_wanted = |handed: &mut (PathBuf, OwnedFd)| wanted.is_none_or(|at| *at == handed.0);
        let (path, socket) = self.handed().control.take_if(is_wanted)?;
        Some((path, UnixListener::from(socket)))
    }

    /// This server's first boot has ended. Why it was not good enough, if it was not.
    pub(crate) fn booted(&self, boot: Boot) -> Result<(), &'static str> {
        match boot {
            Boot::Failed if self.0.boots => {
                Err("the application's boot failed\nhint: its messages are in the server's log")
            }
            Boot::Late => Err("the application has not booted within `timeouts.boot`\n\
                 hint: the server's log may say why; a longer time may help"),
            Boot::Up | Boot::Failed => {
                self.say(&Answer::Ready);
                Ok(())
            }
        }
    }

    /// It will not serve.
    pub(crate) fn failed(&self, why: &str) {
        self.say(&Answer::Failed { why: shortened(why) });
    }

    /// Listens to it from now on, on a thread of its own.
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
                    self.say(&Answer::Took);
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

    /// Whether it is this server that goes on: the other one may have waited for too long.
    fn claims(&self) -> bool {
        self.handed().claim.take().is_none_or(|claim| claim.take())
    }

    /// The settings want them no more. The files of sockets go with them.
    fn drop_rest(&self) {
        let Handed { listeners, control, .. } = std::mem::take(&mut *self.handed());
        let paths = listeners.iter().filter_map(|(name, _)| name.strip_prefix("unix:"));
        let paths = paths.map(PathBuf::from).chain(control.iter().map(|(path, _)| path.clone()));
        // Gone already is as good.
        paths.for_each(|path| drop(std::fs::remove_file(path)));
    }

    /// Whoever has gone need not be told.
    fn say(&self, answer: &Answer) {
        let _ = self.0.channel.send_now(answer, None);
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
    /// Takes in all there is; whether the other server's application boots.
    fn receive(&mut self, channel: &FollowingEnd) -> io::Result<bool> {
        for _ in 0..HANDED_MAX {
            if poll(&mut [PollFd::new(channel, PollFlags::IN)], Some(&ARRIVAL_LIMIT))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (word, fd) = match channel.hear()? {
                Heard::Message(word, fd) => (word, fd),
                // Of a version that knows more.
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
                (Word::Claim, Some(fd)) => self.claim = Some(fd.into()),
                _ => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "more is handed over than can be"))
    }
}
