//! Succession of servers: actions when this server takes over, and when another one takes over from
//! it.

use crate::admin_token::AdminAccess;
use crate::control::clients::{self, Door};
use crate::control::report::StatusSources;
use crate::control::server::{Server, UpgradeDone};
use crate::control::socket::Socket;
use crate::handover::messages;
use crate::handover::predecessor::{Entry, Predecessor};
use crate::logging::Logs;
use crate::pools::Pools;
use crate::reload::Reloader;
use crate::service::{ServiceState, Watchdog};
use crate::upgrade::{Endings, Inventory, Parts, Serving, Upgrader, Wanted};
use anyhow::{Context, Result};
use rustix::process::Rlimit;
use samovar_acme::Keeper;
use samovar_admin::Admin;
use samovar_config::{Listen, ROOT_ENV, Settings, Sources, TOKEN_ENV};
use samovar_front::FrontHandle;
use samovar_front::listeners::Handed;
use samovar_insight::store::EventKind;
use samovar_insight::{Insight, Release, Releases};
use samovar_supervisor::{Command, Elsewhere, Handle};
use samovar_wire::UpgradeResponse;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Maximum time to wait for the listeners to close: their threads first finish their current work.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// All entrances of the server.
#[derive(Clone)]
pub(super) struct Entrances {
    pub(super) front: FrontHandle,
    pub(super) admin: Option<Arc<Admin>>,
    pub(super) control: Arc<Socket>,
    pub(super) door: Door,
    pub(super) supervisor: Handle,
    pub(super) pools: Pools,
    pub(super) insight: Option<Arc<Insight>>,
    /// Obtains certificates. Runs only while connections are accepted, because authorities connect
    /// to the server.
    pub(super) keeper: Option<Keeper>,
}

impl Entrances {
    /// Opens the entrances for commands and operators. The front's listeners open on their own,
    /// unless the front is held.
    pub(super) fn open(&self) {
        self.control.own(true);
        self.door.open(true);
        if let Some(keeper) = &self.keeper {
            keeper.begin();
        }
        if let Some(admin) = &self.admin {
            admin.begin();
        }
    }
}

impl Entrances {
    /// Closes the entrances, for the server's end.
    pub(super) fn close(&self) {
        self.control.remove();
        if let Some(keeper) = &self.keeper {
            keeper.leave();
        }
        if let Some(admin) = &self.admin {
            admin.end();
        }
    }
}

/// Messages and actions when this server begins to serve.
#[derive(Clone)]
pub(super) struct Beginning {
    addresses: Vec<String>,
    control: PathBuf,
    logs: Logs,
    state: ServiceState,
    insight: Option<Arc<Insight>>,
    releases: Releases,
    /// Releases of the pools.
    own: Vec<Release>,
}

impl Beginning {
    pub(super) fn new(
        addresses: Vec<String>,
        control: PathBuf,
        logs: Logs,
        state: ServiceState,
        insight: Option<Arc<Insight>>,
        (releases, own): (Releases, Vec<Release>),
    ) -> Beginning {
        Beginning { addresses, control, logs, state, insight, releases, own }
    }

    pub(super) fn say(&self) {
        // People, scripts and tests wait for this line. It is not a log event, so no log level
        // hides it.
        let control = self.control.display();
        self.logs.say(&format!("listening on {} (control {control})", self.addresses.join(" ")));
        self.state.serves(1);
        match &self.insight {
            Some(insight) => {
                insight.release(EventKind::Start, self.addresses.join(" "), self.own.clone());
            }
            None => self.own.iter().for_each(|release| self.releases.begin(release.clone())),
        }
    }
}

/// Actions when this server takes over.
pub(super) struct TakingOver {
    pub(super) entrances: Entrances,
    pub(super) beginning: Beginning,
}

impl Entry for TakingOver {
    fn go(&self) {
        self.entrances.front.begin();
        self.entrances.open();
        self.beginning.say();
    }

    fn consoles(&self, elsewhere: Elsewhere) {
        for (pool, supervisor) in self.entrances.pools.with_default(&self.entrances.supervisor) {
            let own = messages::consoles_of(&pool, &elsewhere);
            supervisor.send(Command::Consoles(own));
        }
    }

    fn abandoned(&self) {
        self.beginning.logs.say("the previous server continues without this one, or has exited");
        self.entrances.front.drain();
        // This server has not served any request.
        self.entrances.supervisor.send(Command::StopNow);
        self.entrances.pools.tell(|| Command::StopNow);
    }
}

/// Actions when another server takes over.
pub(super) struct Leaving {
    pub(super) entrances: Entrances,
    pub(super) reloader: Reloader,
    pub(super) releases: Releases,
}

impl Serving for Leaving {
    fn releases(&self) -> Vec<(String, String)> {
        let all = self.releases.all_serving().into_iter().filter(|one| !one.label.is_empty());
        all.map(|one| (one.pool, one.label.to_string())).collect()
    }

    fn listeners(&self) -> std::io::Result<Vec<Handed>> {
        self.entrances.front.listeners()
    }

    fn boots(&self) -> bool {
        let pools = self.entrances.pools.iter().map(|pool| &pool.supervisor);
        let mut all = std::iter::once(&self.entrances.supervisor).chain(pools);
        all.all(|supervisor| !supervisor.report().boot_failed)
    }

    fn boot_limit(&self) -> Duration {
        self.reloader.boot_limit()
    }

    fn leave(&self) {
        self.entrances.control.own(false);
        self.entrances.door.open(false);
        if let Some(keeper) = &self.entrances.keeper {
            keeper.leave();
        }
        if let Some(admin) = &self.entrances.admin {
            admin.leave();
        }
        self.entrances.supervisor.send(Command::Draining);
        self.entrances.pools.tell(|| Command::Draining);
        self.entrances.front.hand_over();
        let since = Instant::now();
        let rest = || CLOSE_LIMIT.saturating_sub(since.elapsed());
        let is_closed = self.entrances.front.wait_until_closed(rest())
            && self.entrances.admin.as_ref().is_none_or(|admin| admin.wait_until_closed(rest()));
        if !is_closed {
            tracing::warn!(
                seconds = CLOSE_LIMIT.as_secs(),
                "another server has taken over, but the listeners of this one are not closed yet"
            );
        }
        if let Some(insight) = &self.entrances.insight {
            insight.event(EventKind::Stop, "another server has taken over".to_owned());
            insight.stop_listening();
        }
    }

    fn nudge(&self) {
        self.entrances.supervisor.nudge();
    }

    fn consoles(&self) -> Option<Vec<(String, usize)>> {
        let pools = self.entrances.pools.with_default(&self.entrances.supervisor);
        let of = |(pool, supervisor): &(String, Handle)| {
            let report = supervisor.report();
            report.is_ending.then(|| messages::named_consoles(pool, report.living_consoles))
        };
        let all: Option<Vec<_>> = pools.iter().map(of).collect();
        all.map(|all| all.concat())
    }
}

/// Input for [`set`]: components for commands and for the succession.
pub(super) struct Stage {
    pub(super) status: StatusSources,
    pub(super) reloader: Reloader,
    pub(super) control: Socket,
    pub(super) admin: Option<Admin>,
    pub(super) inventory: Inventory,
    /// Environment variables that differ for a successor.
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) open_files: Rlimit,
    pub(super) beginning: Beginning,
    /// Server that continues until this one takes over.
    pub(super) predecessor: Option<Predecessor>,
}

/// Result of [`set`].
pub(super) struct Succession {
    pub(super) entrances: Entrances,
    pub(super) upgrader: Upgrader,
    pub(super) endings: Endings,
}

/// Starts serving commands. If there is a predecessor, it still serves them, and this server waits
/// for its messages.
pub(super) fn set(scene: Stage) -> Result<Succession> {
    let Stage { status, reloader, control, admin, inventory, environment, open_files, .. } = scene;
    let Stage { beginning, predecessor, .. } = scene;
    let (state, front) = (beginning.state.clone(), status.front.clone());
    let (supervisor, pools) = (status.supervisor.clone(), status.pools.clone());
    let (keeper, releases) = (status.keeper.clone(), status.releases.clone());
    let obeys_php = reloader.obeys_php();
    let of_clients = reloader.clone();
    let begin_reload = move |options: &_, done| of_clients.begin(options, done);
    let of_clients = reloader.clone();
    let begin_canary = move |question: &_, done| of_clients.begin_canary(question, done);
    // The upgrader is set later; commands are served only when all components exist.
    let later = Arc::new(OnceLock::<Upgrader>::new());
    let wanted = Arc::clone(&later);
    let begin_upgrade = move |options, done: UpgradeDone| {
        if let Some(upgrader) = wanted.get() {
            return upgrader.begin(options, done);
        }
        let why = "the server has not started yet".to_owned();
        done(UpgradeResponse::refused(why), sync_channel(0).0);
    };
    let server = Server::new(
        status,
        state.clone(),
        begin_reload,
        (Box::new(begin_upgrade), Arc::new(begin_canary)),
        obeys_php,
    )?;
    let entrances = Entrances {
        front,
        admin: admin.map(Arc::new),
        door: clients::start(&control, server)?,
        control: Arc::new(control),
        supervisor,
        pools,
        insight: beginning.insight.clone(),
        keeper,
    };
    let endings = Endings::default();
    let upgrader = Upgrader::start(Parts {
        state,
        serving: Box::new(Leaving { entrances: entrances.clone(), reloader, releases }),
        inventory,
        environment,
        open_files,
        endings: endings.clone(),
        predecessor: predecessor.clone(),
        wanted: Wanted::default(),
        is_busy: AtomicBool::default(),
        ends: AtomicBool::default(),
    })
    .context("cannot start the upgrade thread")?;
    let _only_once = later.set(upgrader.clone());
    if let Some(predecessor) = &predecessor {
        predecessor.attend(TakingOver { entrances: entrances.clone(), beginning })?;
    } else {
        entrances.open();
        tracing::info!(
            listen = beginning.addresses.join(" "),
            "accepting connections; requests wait until the application has booted, for at most \
             `timeouts.queue`"
        );
    }
    Ok(Succession { entrances, upgrader, endings })
}

/// Returns environment variables that differ for a successor: it must not inherit the service
/// manager's variables that are meant for this process.
pub(super) fn environment(
    of_php: &[(String, Option<String>)],
    token: &AdminAccess,
    sources: &Sources,
) -> Vec<(String, Option<String>)> {
    let goes_on = |name: &str| matches!(name, "NOTIFY_SOCKET" | "WATCHDOG_USEC");
    let is_watched = Watchdog::is_of_this_process();
    let kept = |(name, _): &&(String, Option<String>)| {
        !(goes_on(name) && (name != "WATCHDOG_USEC" || is_watched))
    };
    // The successor may not be allowed to read the file of the token.
    let token = token.handed().map(|token| (TOKEN_ENV.to_owned(), Some(token)));
    let root = sources.is_roots().then(|| (ROOT_ENV.to_owned(), Some("1".to_owned())));
    of_php.iter().filter(kept).cloned().chain(token).chain(root).collect()
}

/// Returns duplicates of the sockets that a successor gets in addition to the front's listeners.
pub(super) fn inventory(
    settings: &Settings,
    admin: &[TcpListener],
    pinba: Option<OwnedFd>,
    control: &Socket,
) -> Result<Inventory> {
    let copy = |(at, socket): (&Listen, &TcpListener)| {
        Ok::<_, std::io::Error>((at.to_string(), socket.try_clone()?.into()))
    };
    let copies = settings.admin.iter().zip(admin).map(copy).collect::<std::io::Result<_>>();
    let pinba_name = settings.insight.pinba_listen.as_ref().map(ToString::to_string);
    let control = control.copy().map(|copy| (control.path.clone(), copy));
    let what = "cannot copy a listener";
    Ok(Inventory {
        admin: copies.context(what)?,
        pinba: pinba_name.zip(pinba).into_iter().collect(),
        control: Some(control.context(what)?),
    })
}
