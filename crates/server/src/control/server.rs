//! The server's end of the control socket: answers a request. Never blocks.

use super::facts::facts;
use super::replay;
use super::report::{Booted, StatusSources, figures, status};
use super::waker::Waker;
use crate::handover::predecessor::Predecessor;
use crate::jobs;
use crate::service::ServiceState;
use anyhow::Result;
use samovar_config::DEFAULT_POOL;
use samovar_profile::loads::Explained;
use samovar_supervisor::peer::Peer;
use samovar_supervisor::{Command, Published};
use samovar_wire::{
    Against, BootResponse, CallsQuestion, CallsResponse, CanaryAction, CanaryQuestion,
    CanaryResponse, IncludesQuestion, IncludesResponse, Misunderstood, ProfileQuestion,
    ProfileResponse, QueueQuestion, QueueResponse, RecordResponse, Refused, ReloadOptions,
    ReloadResponse, ReplayQuestion, ReplayResponse, Request, ScheduleQuestion, ScheduleResponse,
    Stopping, UpgradeOptions, UpgradeResponse, line as line_of,
};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::time::Duration;

/// Called once, on any thread, with the result of a reload; must not block.
pub(crate) type ReloadDone = Box<dyn FnOnce(ReloadResponse) + Send>;

/// Starts an upgrade without blocking. The callback gets the result, and a channel end that is kept
/// until the client has received the response.
pub(crate) type BeginUpgrade = Box<dyn Fn(UpgradeOptions, UpgradeDone) + Send>;
pub(crate) type UpgradeDone = Box<dyn FnOnce(UpgradeResponse, SyncSender<()>) + Send>;

/// Boots a canary. It may block on the disk that holds the settings.
pub(crate) type BeginCanary = Arc<dyn Fn(&CanaryQuestion, CanaryDone) + Send + Sync>;

/// Called once, on any thread, when the canary serves or could not start; must not block.
pub(crate) type CanaryDone = Box<dyn FnOnce(CanaryResponse) + Send>;

/// A requested reload, and the channel for its result.
type WantedReload = (ReloadOptions, Sender<ReloadResponse>);

/// Answers the requests of all clients.
pub(crate) struct Server {
    sources: StatusSources,
    state: ServiceState,
    /// Channel to the thread for reloads.
    reloads: Sender<WantedReload>,
    begin_upgrade: BeginUpgrade,
    begin_canary: BeginCanary,
    pub(super) waker: Waker,
    /// Whether PHP's processes may send commands that change the server.
    obeys_php: bool,
}

/// Response to a client.
pub(super) enum Reply {
    Now(String),
    /// The status, after all senders of this channel are dropped: the supervisors have published
    /// their states.
    WhenPublished(Receiver<()>),
    /// Receives the result when the reload has ended.
    WhenReloaded(Receiver<ReloadResponse>),
    /// Receives the response line.
    Later(Receiver<Line>),
    /// The same. The work ends when the guard is dropped, because the client has left.
    WhileAttended(Receiver<Line>, Arc<()>),
}

/// A response that another thread produced.
pub(super) struct Line {
    pub(super) text: String,
    /// Dropped when the client has received the response or has disconnected.
    pub(super) until: Option<SyncSender<()>>,
}

fn not_understood(line: &str) -> String {
    let line = line.trim();
    format!(
        "cannot parse the request `{line}`\nhint: check that `samovar` and the server have the \
         same version"
    )
}

/// Returns whether a request changes the server's state, or returns a secret.
fn is_order(request: &Request) -> bool {
    match request {
        Request::Stop
        | Request::Reload(_)
        | Request::Upgrade(_)
        | Request::Record(_)
        | Request::Replay(_) => true,
        Request::Calls(question) => question.sign_s.is_some(),
        Request::Canary(question) => question.action != CanaryAction::Status,
        Request::Queue(question) => question.action.is_order(),
        Request::Schedule(question) => question.action.is_order(),
        Request::Status
        | Request::Figures
        | Request::Facts
        | Request::Profile(_)
        | Request::Includes(_)
        | Request::Boot { .. } => false,
    }
}

/// Returns a rejection in the response format of the request.
fn refusal(request: &Result<Request, Misunderstood>) -> String {
    let why = "a process of this server may not send this command\nhint: use a shell, or set \
               control_from_php = true if an application (of this server or of another) may \
               control the server"
        .to_owned();
    match request {
        Ok(Request::Reload(_)) => line_of(&ReloadResponse::refused(why)),
        Ok(Request::Upgrade(_)) => line_of(&UpgradeResponse::refused(why)),
        Ok(Request::Canary(_)) => line_of(&CanaryResponse::refused(why)),
        Ok(Request::Queue(_)) => line_of(&QueueResponse::refused(why)),
        Ok(Request::Schedule(_)) => line_of(&ScheduleResponse::refused(why)),
        Ok(Request::Record(_)) => line_of(&RecordResponse::refused(why)),
        Ok(Request::Replay(_)) => line_of(&ReplayResponse::refused(why)),
        Ok(Request::Calls(_)) => {
            line_of(&CallsResponse { error: Some(why), ..CallsResponse::default() })
        }
        _ => line_of(&Refused { error: why }),
    }
}

impl Server {
    /// Starts the thread for reloads. It may block on the disk that holds the settings.
    pub(crate) fn new(
        sources: StatusSources,
        state: ServiceState,
        begin_reload: impl Fn(&ReloadOptions, ReloadDone) + Send + 'static,
        (begin_upgrade, begin_canary): (BeginUpgrade, BeginCanary),
        obeys_php: bool,
    ) -> Result<Server> {
        let (reloads, wanted) = channel::<WantedReload>();
        let waker = Waker::new()?;
        let own = waker.clone();
        let reload = move || {
            for (options, tell) in wanted {
                let waker = own.clone();
                let done = move |response| {
                    // The client may have disconnected; the error is ignored.
                    let _ = tell.send(response);
                    waker.wake();
                };
                begin_reload(&options, Box::new(done));
            }
        };
        std::thread::Builder::new().name("reload".into()).spawn(reload)?;
        Ok(Server { sources, state, reloads, begin_upgrade, begin_canary, waker, obeys_php })
    }

    /// Answers a request. `peer` is the client's process.
    pub(super) fn respond(&self, line: &str, peer: &Peer) -> Reply {
        let request = line.parse();
        if request.as_ref().is_ok_and(is_order) && self.is_own_process(peer) && !self.obeys_php {
            tracing::warn!(
                pid = peer.pid(),
                order = line.split_whitespace().next(),
                "a process of this server sent a command (hint: set control_from_php = true if \
                 that is intended)"
            );
            return Reply::Now(refusal(&request));
        }
        Reply::Now(match request {
            Ok(Request::Status) => return Reply::WhenPublished(self.request_publication()),
            Ok(Request::Figures) => line_of(&figures(&self.sources)),
            Ok(Request::Facts) => line_of(&facts(&self.sources)),
            Ok(Request::Profile(question)) => return self.profile(*question),
            Ok(Request::Calls(question)) => line_of(&self.calls(&question)),
            Ok(Request::Queue(question)) => return self.queue(*question),
            Ok(Request::Schedule(question)) => return self.schedule(*question),
            Ok(Request::Record(question)) => line_of(&replay::record(&self.sources, &question)),
            Ok(Request::Replay(question)) => return self.replay(*question),
            Ok(Request::Canary(question)) if question.action == CanaryAction::Start => {
                return self.start_canary(*question);
            }
            Ok(Request::Canary(question)) => {
                let error = self.sources.canaries.command(&question).err();
                let canary = self.sources.canaries.status();
                line_of(&CanaryResponse { error, canary, milliseconds: 0 })
            }
            Ok(Request::Includes(question)) => line_of(&self.includes(&question)),
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
                // The thread lives as long as this one. Without it, the response is that the server
                // has ended.
                let _ = self.reloads.send((options, tell));
                return Reply::WhenReloaded(told);
            }
            Ok(Request::Upgrade(options))
                if options.binary.is_some() && self.is_own_process(peer) =>
            {
                tracing::warn!(
                    pid = peer.pid(),
                    "a process of this server requested an upgrade \
                                                  to another binary"
                );
                line_of(&UpgradeResponse::refused(
                    "a process of this server may not select another binary\nhint: run `samovar \
                     upgrade --binary` in a shell"
                        .to_owned(),
                ))
            }
            Ok(Request::Upgrade(options)) => {
                let (tell, told) = channel();
                let waker = self.waker.clone();
                let done = move |response: UpgradeResponse, until| {
                    // The client may have disconnected; the error is ignored.
                    let _ = tell.send(Line { text: line_of(&response), until: Some(until) });
                    waker.wake();
                };
                (self.begin_upgrade)(options, Box::new(done));
                return Reply::Later(told);
            }
            Err(Misunderstood::Canary) => line_of(&CanaryResponse::refused(not_understood(line))),
            Err(Misunderstood::Upgrade) => line_of(&UpgradeResponse::refused(not_understood(line))),
            Err(Misunderstood::Profile) => line_of(&ProfileResponse {
                error: Some(not_understood(line)),
                ..ProfileResponse::default()
            }),
            Err(Misunderstood::Calls) => line_of(&CallsResponse {
                error: Some(not_understood(line)),
                ..CallsResponse::default()
            }),
            Err(Misunderstood::Includes) => line_of(&IncludesResponse {
                error: Some(not_understood(line)),
                ..IncludesResponse::default()
            }),
            Err(Misunderstood::Queue) => line_of(&QueueResponse::refused(not_understood(line))),
            Err(Misunderstood::Schedule) => {
                line_of(&ScheduleResponse::refused(not_understood(line)))
            }
            Err(Misunderstood::Record) => line_of(&RecordResponse::refused(not_understood(line))),
            Err(Misunderstood::Replay) => line_of(&ReplayResponse::refused(not_understood(line))),
            Err(Misunderstood::ReloadOptions) => {
                line_of(&ReloadResponse::refused(not_understood(line)))
            }
            Err(Misunderstood::Command) => line_of(&Refused {
                error: "unknown command; the commands are status, figures, facts, profile, calls, \
                     boot, includes, queue, schedule, record, replay, reload, canary, upgrade \
                     and stop"
                    .to_owned(),
            }),
        })
    }

    /// Makes all supervisors publish their states. Without it, a status could be older than an
    /// event that its reader has seen: a response, a line of the log, the end of a worker.
    fn request_publication(&self) -> Receiver<()> {
        let (publishing, published) = channel::<()>();
        let publish = || {
            let (publishing, waker) = (publishing.clone(), self.waker.clone());
            Command::Publish(Published::new(move || {
                drop(publishing);
                waker.wake();
            }))
        };
        self.sources.supervisor.send(publish());
        self.sources.pools.tell(publish);
        published
    }

    /// Returns the status as a line.
    pub(super) fn status(&self) -> String {
        line_of(&status(&self.sources))
    }

    /// Returns whether the client is a worker, a process started by one, or an orphan of one. The
    /// application must not control the server.
    fn is_own_process(&self, peer: &Peer) -> bool {
        let own = i32::try_from(std::process::id()).ok();
        let before = self.sources.predecessor.as_ref().and_then(Predecessor::pid);
        let servers: Vec<i32> = own.into_iter().chain(before).collect();
        peer.is_of_php(&servers)
    }

    /// Answers on the profiles' thread, which may block on the disk.
    fn profile(&self, mut question: ProfileQuestion) -> Reply {
        let Some(sampling) = &self.sources.sampling else {
            let error = "the profiler is off\nhint: set profile.hertz, and restart the server";
            let error = Some(error.to_owned());
            return Reply::Now(line_of(&ProfileResponse { error, ..ProfileResponse::default() }));
        };
        let pools = &self.sources.pools;
        if let Err(why) = pools.supervisor(question.pool.as_deref(), &self.sources.supervisor) {
            let error = Some(why);
            return Reply::Now(line_of(&ProfileResponse { error, ..ProfileResponse::default() }));
        }
        // Each pool counts its own generations, so the response contains the pool.
        let of_one = question.generation.is_some()
            || question.against.is_some_and(Against::is_of_generations);
        if of_one && question.route.is_none() && question.pool.is_none() && !pools.is_empty() {
            question.pool = Some(DEFAULT_POOL.to_owned());
        }
        let (tell, told) = channel();
        let waker = self.waker.clone();
        sampling.profiles.ask(question, move |response| {
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: line_of(&response.to_wire()), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// Returns the files that requests include.
    fn includes(&self, question: &IncludesQuestion) -> IncludesResponse {
        let refused = |why| IncludesResponse { error: Some(why), ..IncludesResponse::default() };
        match self.sources.includes(question) {
            Ok((pool, Some(includes))) => {
                let includes = serde_json::to_value(includes).unwrap_or_default();
                IncludesResponse { error: None, pool, includes }
            }
            Ok((_, None)) => refused(
                "no request was recorded yet\nhint: each worker records its first requests and \
                 then one out of 251; send some requests, and try again"
                    .to_owned(),
            ),
            Err(why) => refused(why),
        }
    }

    /// Returns the cost of the boot; the profiles' thread adds its functions.
    fn boot(&self, pool: Option<&str>) -> Reply {
        let refused = |why: String| {
            Reply::Now(line_of(&BootResponse { error: Some(why), ..BootResponse::default() }))
        };
        let booted = match self.sources.boot(pool) {
            Ok(Some(booted)) => booted,
            Ok(None) => {
                return refused(
                    "no application has been booted before its requests\nhint: call \
                     Samovar\\checkpoint() or Samovar\\serve() in the application; if it is \
                     booting now, try again"
                        .to_owned(),
                );
            }
            Err(why) => return refused(why),
        };
        let Booted { pool, mut explained, image_ms, findings, question } = booted;
        let known = BootResponse { pool, image_ms, findings, ..BootResponse::default() };
        let of = move |explained: &Explained| {
            let explained = serde_json::to_value(explained).unwrap_or_default();
            line_of(&BootResponse { explained, ..known.clone() })
        };
        let Some(sampling) = &self.sources.sampling else {
            return Reply::Now(of(&explained));
        };
        let (tell, told) = channel();
        let waker = self.waker.clone();
        sampling.profiles.ask(question, move |response| {
            explained.take_functions(&response);
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: of(&explained), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// Answers on the thread of the queues, which may block on the disk.
    fn queue(&self, question: QueueQuestion) -> Reply {
        let Some(jobs) = &self.sources.jobs else {
            let why = "this server has no queue\nhint: add a table [[queue]] to the settings";
            return Reply::Now(line_of(&QueueResponse::refused(why.to_owned())));
        };
        let (tell, told) = channel();
        let waker = self.waker.clone();
        jobs.command(jobs::command(question), move |result| {
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: line_of(&jobs::response(result)), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// Boots a canary, on a thread of its own: it may block on the disk.
    fn start_canary(&self, question: CanaryQuestion) -> Reply {
        let (tell, told) = channel();
        let (waker, begin) = (self.waker.clone(), Arc::clone(&self.begin_canary));
        let done = move |response: CanaryResponse| {
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: line_of(&response), until: None });
            waker.wake();
        };
        let begin = move || begin(&question, Box::new(done));
        match std::thread::Builder::new().name("canary".into()).spawn(begin) {
            Ok(_) => Reply::Later(told),
            Err(error) => {
                Reply::Now(line_of(&CanaryResponse::refused(format!("cannot start: {error}"))))
            }
        }
    }

    /// Replays a request, on a thread of its own that waits for the worker.
    fn replay(&self, question: ReplayQuestion) -> Reply {
        let (tell, told) = channel();
        let (waker, sources) = (self.waker.clone(), self.sources.clone());
        let attended = Arc::new(());
        let client = Arc::downgrade(&attended);
        let run = move || {
            let response = replay::replay(&sources, &question, &client);
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: line_of(&response), until: None });
            waker.wake();
        };
        match std::thread::Builder::new().name("replay".into()).spawn(run) {
            Ok(_) => Reply::WhileAttended(told, attended),
            Err(error) => {
                Reply::Now(line_of(&ReplayResponse::refused(format!("cannot start: {error}"))))
            }
        }
    }

    /// Answers on the thread of the schedules.
    fn schedule(&self, question: ScheduleQuestion) -> Reply {
        let (tell, told) = channel();
        let waker = self.waker.clone();
        self.sources.schedules.command(question, move |response| {
            // The client may have disconnected; the error is ignored.
            let _ = tell.send(Line { text: line_of(&response), until: None });
            waker.wake();
        });
        Reply::Later(told)
    }

    /// Returns call graphs, or a signature for a traced request.
    fn calls(&self, question: &CallsQuestion) -> CallsResponse {
        let refused =
            |why: &str| CallsResponse { error: Some(why.to_owned()), ..CallsResponse::default() };
        let Some(graphs) = &self.sources.graphs else {
            return refused(
                "no request is traced\nhint: set profile.trace or profile.trace_key, and restart \
                 the server",
            );
        };
        if let Some(span) = question.sign_s {
            return match graphs.sign(span) {
                Some(signature) => {
                    CallsResponse { signature: Some(signature), ..CallsResponse::default() }
                }
                None => refused(
                    "there is no key for signatures\nhint: set profile.trace_key, and restart the \
                     server",
                ),
            };
        }
        match graphs.select(question.pool.as_deref(), question.day, question.route.as_deref()) {
            Err(why) => refused(&why),
            Ok(selected) => CallsResponse {
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

    /// Returns whether the front has taken over the settings of the last reload.
    pub(super) fn has_switched(&self) -> bool {
        let pools = self.sources.pools.iter().map(|pool| &pool.front);
        let mut all = std::iter::once(&self.sources.front).chain(pools);
        all.all(|front| front.wait_for_switch(Duration::ZERO))
    }
}
