//! The server's end of the control socket: a request in, an answer out. Nothing here waits.

use super::report::{Booted, StatusSources, figures, status};
use super::waker::Waker;
use crate::handover::predecessor::Predecessor;
use crate::service::ServiceState;
use anyhow::Result;
use samovar_config::DEFAULT_POOL;
use samovar_profile::loads::Explained;
use samovar_supervisor::Command;
use samovar_supervisor::peer::Peer;
use samovar_wire::{
    Against, BootAnswer, CallsAnswer, CallsQuestion, Misunderstood, ProfileAnswer, ProfileQuestion,
    Refused, ReloadAnswer, ReloadOptions, Request, Stopping, UpgradeAnswer, UpgradeOptions,
    line as line_of,
};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::time::Duration;

/// Called once, on some thread, with what came of a reload; does not block.
pub(crate) type ReloadDone = Box<dyn FnOnce(ReloadAnswer) + Send>;

/// Has another server started, without waiting; what is called once with what came of it keeps the last end of a channel until
/// the client knows.
pub(crate) type BeginUpgrade = Box<dyn Fn(UpgradeOptions, UpgradeDone) + Send>;
pub(crate) type UpgradeDone = Box<dyn FnOnce(UpgradeAnswer, SyncSender<()>) + Send>;

/// A reload that a client wants, and whom to tell.
type WantedReload = (ReloadOptions, Sender<ReloadAnswer>);

/// What answers requests, for all clients.
pub(crate) struct Server {
    sources: StatusSources,
    state: ServiceState,
    /// To the thread for reloads.
    reloads: Sender<WantedReload>,
    begin_upgrade: BeginUpgrade,
    pub(super) waker: Waker,
    /// Whether PHP's processes may give orders.
    obeys_php: bool,
}

/// What a client is told.
pub(super) enum Reply {
    Now(String),
    /// What comes through here, when the reload has ended.
    WhenReloaded(Receiver<ReloadAnswer>),
    /// The line that comes through here.
    Later(Receiver<Line>),
}

/// An answer that has taken its time.
pub(super) struct Line {
    pub(super) text: String,
    /// Dropped when the client has it, or is gone.
    pub(super) until: Option<SyncSender<()>>,
}

fn not_understood(line: &str) -> String {
    let line = line.trim();
    format!("`{line}` is not understood\nhint: is `samovar` of another version than the server?")
}

/// Whether it changes something, or hands out what is secret.
fn is_order(request: &Request) -> bool {
    match request {
        Request::Stop | Request::Reload(_) | Request::Upgrade(_) => true,
        Request::Calls(question) => question.sign_s.is_some(),
        Request::Status | Request::Figures | Request::Profile(_) | Request::Boot { .. } => false,
    }
}

/// In the form that whoever asked for it reads.
fn refusal(request: &Result<Request, Misunderstood>) -> String {
    let why = "a process of this server may not do that\n\
         hint: use a shell, or set control_from_php = true if an application (of this server or of another) is to give the server orders"
        .to_owned();
    match request {
        Ok(Request::Reload(_)) => line_of(&ReloadAnswer::refused(why)),
        Ok(Request::Upgrade(_)) => line_of(&UpgradeAnswer::refused(why)),
        Ok(Request::Calls(_)) => {
            line_of(&CallsAnswer { error: Some(why), ..CallsAnswer::default() })
        }
        _ => line_of(&Refused { error: why }),
    }
}

impl Server {
    /// Starts the thread for reloads, which may wait: for the disk that holds the settings.
    pub(crate) fn new(
        sources: StatusSources,
        state: ServiceState,
        begin_reload: impl Fn(&ReloadOptions, ReloadDone) + Send + 'static,
        begin_upgrade: BeginUpgrade,
        obeys_php: bool,
    ) -> Result<Server> {
        let (reloads, wanted) = channel::<WantedReload>();
        let waker = Waker::new()?;
        let own = waker.clone();
        let reload = move || {
            for (options, tell) in wanted {
                let waker = own.clone();
                let done = move |answer| {
                    // A client that has left does not want it any more.
                    let _ = tell.send(answer);
                    waker.wake();
                };
                begin_reload(&options, Box::new(done));
            }
        };
        std::thread::Builder::new().name("reload".into()).spawn(reload)?;
        Ok(Server { sources, state, reloads, begin_upgrade, waker, obeys_php })
    }

    /// `peer`: who asks.
    pub(super) fn answer(&self, line: &str, peer: &Peer) -> Reply {
        let request = line.parse();
        if request.as_ref().is_ok_and(is_order) && self.is_own_process(peer) && !self.obeys_php {
            tracing::warn!(
                pid = peer.pid(),
                order = line.split_whitespace().next(),
                "a process of this server gives it orders (hint: control_from_php = true if that is meant)"
            );
            return Reply::Now(refusal(&request));
        }
        Reply::Now(match request {
            Ok(Request::Status) => line_of(&status(&self.sources)),
            Ok(Request::Figures) => line_of(&figures(&self.sources)),
            Ok(Request::Profile(question)) => return self.profile(*question),
            Ok(Request::Calls(question)) => line_of(&self.calls(&question)),
            Ok(Request::Boot { pool }) => return self.boot(pool.as_deref()),
            Ok(Request::Stop) => {
                self.state.stops();
                self.sources.supervisor.send(Command::Draining);
                self.sources.pools.tell(|| Command::Draining);
                self.sources.front.drain();
                line_of(&Stopping { stopping: true })
            }
            Ok(Request::Reload(options)) => {
                let (tell, told) = channel();
                // Its thread lives as long as this one; without it, the answer is that the server has ended.
                let _ = self.reloads.send((options, tell));
                return Reply::WhenReloaded(told);
            }
            Ok(Request::Upgrade(options))
                if options.binary.is_some() && self.is_own_process(peer) =>
            {
                tracing::warn!(pid = peer.pid(), "a process of this server wants it to be replaced by another binary");
                line_of(&UpgradeAnswer::refused(
                    "a process of this server may not choose another binary\n\
                     hint: `samovar upgrade --binary` is for a shell, not for a script that the server runs"
                        .to_owned(),
                ))
            }
            Ok(Request::Upgrade(options)) => {
                let (tell, told) = channel();
                let waker = self.waker.clone();
                let done = move |answer: UpgradeAnswer, until| {
                    // A client that has left does not want it any more.
                    let _ = tell.send(Line { text: line_of(&answer), until: Some(until) });
                    waker.wake();
                };
                (self.begin_upgrade)(options, Box::new(done));
                return Reply::Later(told);
            }
            Err(Misunderstood::Upgrade) => {
                line_of(&UpgradeAnswer::refused(not_understood(line)))
            }
            Err(Misunderstood::Profile) => line_of(&ProfileAnswer {
                error: Some(not_understood(line)),
                ..ProfileAnswer::default()
            }),
            Err(Misunderstood::Calls) => line_of(&CallsAnswer {
                error: Some(not_understood(line)),
                ..CallsAnswer::default()
            }),
            Err(Misunderstood::ReloadOptions) => {
                line_of(&ReloadAnswer::refused(not_understood(line)))
            }
            Err(Misunderstood::Command) => line_of(&Refused {
                error:
                    "unknown command; known are status, figures, profile, calls, boot, reload, upgrade and stop"
                        .to_owned(),
            }),
        })
    }

    /// Whether it is a worker, or was started by one, or left behind: the listeners are not the application's.
    fn is_own_process(&self, peer: &Peer) -> bool {
        let own = i32::try_from(std::process::id()).ok();
        let before = self.sources.predecessor.as_ref().and_then(Predecessor::pid);
        let servers: Vec<i32> = own.into_iter().chain(before).collect();
        peer.is_of_php(&servers)
    }

    /// The profiles' own thread answers: it may wait for a disk.
    fn profile(&self, mut question: ProfileQuestion) -> Reply {
        let Some(sampling) = &self.sources.sampling else {
            let error =
                "nobody looks at workers\nhint: set profile.hertz, and start the server anew";
            let error = Some(error.to_owned());
            return Reply::Now(line_of(&ProfileAnswer { error, ..ProfileAnswer::default() }));
        };
        let pools = &self.sources.pools;
        if let Err(why) = pools.supervisor(question.pool.as_deref(), &self.sources.supervisor) {
            let error = Some(why);
            return Reply::Now(line_of(&ProfileAnswer { error, ..ProfileAnswer::default() }));
        }
        // Generations are a pool's: the answer says whose these are.
        let of_one = question.generation.is_some() || question.against == Some(Against::Reload);
        if of_one && question.route.is_none() && question.pool.is_none() && !pools.is_empty() {
            question.pool = Some(DEFAULT_POOL.to_owned());
        }
        let (tell, told) = channel();
        let waker = self.waker.clone();
        sampling.profiles.ask(question, move |answer| {
            // A client that has left does not want it any more.
            let _ = tell.send(Line { text: line_of(&answer.to_wire()), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// What the boot went to; the profiles' own thread tells of its functions.
    fn boot(&self, pool: Option<&str>) -> Reply {
        let refused = |why: String| {
            Reply::Now(line_of(&BootAnswer { error: Some(why), ..BootAnswer::default() }))
        };
        let booted = match self.sources.boot(pool) {
            Ok(Some(booted)) => booted,
            Ok(None) => {
                return refused(
                    "no application has been booted ahead of its requests\nhint: that is done for one that calls \
                     Samovar\\checkpoint() or Samovar\\serve(); if it boots at the moment, ask again"
                        .to_owned(),
                );
            }
            Err(why) => return refused(why),
        };
        let Booted { pool, mut explained, image_ms, question } = booted;
        let of = move |explained: &Explained| {
            let explained = serde_json::to_value(explained).unwrap_or_default();
            line_of(&BootAnswer { error: None, pool: pool.clone(), explained, image_ms })
        };
        let Some(sampling) = &self.sources.sampling else {
            return Reply::Now(of(&explained));
        };
        let (tell, told) = channel();
        let waker = self.waker.clone();
        sampling.profiles.ask(question, move |answer| {
            explained.take_functions(&answer);
            // A client that has left does not want it any more.
            let _ = tell.send(Line { text: of(&explained), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// What requests have called, or a signature that has one traced.
    fn calls(&self, question: &CallsQuestion) -> CallsAnswer {
        let refused =
            |why: &str| CallsAnswer { error: Some(why.to_owned()), ..CallsAnswer::default() };
        let Some(graphs) = &self.sources.graphs else {
            return refused(
                "no request is traced\nhint: set profile.trace or profile.trace_key, and start the server anew",
            );
        };
        if let Some(span) = question.sign_s {
            return match graphs.sign(span) {
                Some(signature) => {
                    CallsAnswer { signature: Some(signature), ..CallsAnswer::default() }
                }
                None => refused(
                    "there is no key to sign with\nhint: set profile.trace_key, and start the server anew",
                ),
            };
        }
        match graphs.select(question.pool.as_deref(), question.day, question.route.as_deref()) {
            Err(why) => refused(&why),
            Ok(selected) => CallsAnswer {
                error: None,
                signature: None,
                pool: selected.pool,
                graph: serde_json::to_value(&selected.graph).unwrap_or_default(),
                before: serde_json::to_value(&selected.before).unwrap_or_default(),
                days: selected.days,
                day: selected.day,
                routes: selected.routes,
                route: selected.route,
            },
        }
    }

    /// Whether the front has taken over what the last reload brought.
    pub(super) fn has_switched(&self) -> bool {
        let pools = self.sources.pools.iter().map(|pool| &pool.front);
        let mut all = std::iter::once(&self.sources.front).chain(pools);
        all.all(|front| front.wait_for_switch(Duration::ZERO))
    }
}
