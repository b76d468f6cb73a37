//! Server → service manager: ready, reloading, stopping, alive (`sd_notify`). Each message is one
//! datagram to the socket in `$NOTIFY_SOCKET`; without the variable nothing is sent.

use samovar_config::ROOT_ENV;
use samovar_supervisor::monotonic_us;
use samovar_supervisor::successor::CHANNEL_VARIABLE;
use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Environment variables from the service manager. They are removed for child processes, which
/// would take them for their own.
pub const VARIABLES: [&str; 8] = [
    CHANNEL_VARIABLE,
    ROOT_ENV,
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

/// Timeout for the service manager to accept a message that must not be lost.
const INSIST_LIMIT: Duration = Duration::from_secs(1);
const INSIST_PAUSE: Duration = Duration::from_millis(5);

/// Number of keep-alive messages per watchdog interval.
const SIGNS_PER_WATCHDOG: u32 = 3;

/// Socket of the service manager. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Service(Option<Arc<UnixDatagram>>);

impl Service {
    /// Connects to the socket from the environment. A failure is only logged.
    pub(crate) fn of_environment() -> Service {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Service::default();
        };
        match connect(&name) {
            Ok(socket) => Service(Some(Arc::new(socket))),
            Err(error) => {
                tracing::warn!(%error, socket = ?name, "cannot reach the service manager");
                Service::default()
            }
        }
    }

    /// Reports that the server serves.
    fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// Reports that a new generation boots. [`Self::ready`] must follow, regardless of the result.
    fn reloading(&self) {
        // Required by `Type=notify-reload`.
        self.say(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=booting the application again",
            monotonic_us()
        ));
    }

    /// Reports that the server drains.
    fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=finishing requests in flight");
    }

    /// Like [`Self::say`], for messages that must not be lost: waits for a moment if the manager's
    /// queue is full.
    fn insist(&self, text: &str) {
        let begun = Instant::now();
        let is_full = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        while let Some(Err(error)) = self.0.as_ref().map(|socket| socket.send(text.as_bytes()))
            && is_full(&error)
            && begun.elapsed() < INSIST_LIMIT
        {
            std::thread::sleep(INSIST_PAUSE);
        }
    }

    fn say(&self, text: &str) {
        // The manager may have stopped listening; the error is ignored.
        let _ = self.0.as_ref().map(|socket| socket.send(text.as_bytes()));
    }
}

/// State of the server for the service manager. It is shared because many components report
/// changes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ServiceState {
    service: Service,
    addresses: Arc<[String]>,
    now: Arc<Mutex<Now>>,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    phase: Phase,
    /// Number of reloads that have begun and not ended.
    reloads: usize,
    /// Whether another server is being started.
    upgrades: bool,
    /// Whether a canary boots or serves.
    has_canary: bool,
}

const BOOTS: &str = "the server has not booted yet\nhint: try again after its boot";
const RELOADS: &str = "a reload is in progress\nhint: try again after it";
const HAS_CANARY: &str = "a canary is running\nhint: run `samovar canary promote` or `samovar \
                          canary abort` first";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Started by a server that still serves; only that server sends messages.
    Following,
    Starting,
    Serving,
    /// Another server serves and sends messages.
    Followed,
    Stopping,
}

impl ServiceState {
    /// `follows`: another server serves until [`Self::serves`] is called.
    pub(crate) fn new(service: Service, addresses: Vec<String>, follows: bool) -> ServiceState {
        let phase = if follows { Phase::Following } else { Phase::Starting };
        let now = Now { phase, reloads: 0, upgrades: false, has_canary: false };
        ServiceState { service, addresses: addresses.into(), now: Arc::new(Mutex::new(now)) }
    }

    /// Reports that the first generation serves.
    pub(crate) fn serves(&self, generation: u64) {
        let mut now = self.now();
        if matches!(now.phase, Phase::Starting | Phase::Following) {
            now.phase = Phase::Serving;
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Begins a reload, or returns the reason why it must not begin. [`Self::has_reloaded`] must
    /// follow.
    pub(crate) fn begins_reload(&self) -> Result<(), &'static str> {
        let mut now = self.now();
        if now.upgrades {
            return Err(
                "an upgrade is in progress\nhint: it reads the settings and the application \
                 again, too",
            );
        }
        if now.phase == Phase::Followed {
            return Err("another server has taken over from this one");
        }
        if now.has_canary {
            return Err(HAS_CANARY);
        }
        now.reloads += 1;
        Ok(())
    }

    /// Begins a canary, or returns the reason why it must not begin. [`Self::ends_canary`] must
    /// follow.
    pub(crate) fn begins_canary(&self) -> Result<(), &'static str> {
        let mut now = self.now();
        match now.phase {
            Phase::Following | Phase::Starting => Err(BOOTS),
            Phase::Followed => Err("another server has taken over from this one"),
            Phase::Stopping => Err("the server is stopping"),
            Phase::Serving if now.upgrades => {
                Err("an upgrade is in progress\nhint: try again after it")
            }
            Phase::Serving if now.reloads > 0 => Err(RELOADS),
            Phase::Serving if now.has_canary => Err(HAS_CANARY),
            Phase::Serving => {
                now.has_canary = true;
                Ok(())
            }
        }
    }

    /// Ends a canary. `generation`: it has taken over.
    pub(crate) fn ends_canary(&self, generation: Option<u64>) {
        let mut now = self.now();
        now.has_canary = false;
        if let Some(generation) = generation.filter(|_| now.phase == Phase::Serving) {
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Reports that the application boots again.
    pub(crate) fn reloads(&self) {
        if self.now().phase == Phase::Serving {
            self.service.reloading();
        }
    }

    /// Ends a reload, regardless of its result. `told`: whether [`Self::reloads`] was called for
    /// it.
    pub(crate) fn has_reloaded(&self, generation: u64, told: bool) {
        let mut now = self.now();
        now.reloads = now.reloads.saturating_sub(1);
        if told && now.phase == Phase::Serving {
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Begins an upgrade, or returns the reason why it must not begin. [`Self::has_not_upgraded`]
    /// or [`Self::hands_over`] must follow.
    pub(crate) fn begins_upgrade(&self) -> Result<(), &'static str> {
        let mut now = self.now();
        match now.phase {
            Phase::Following | Phase::Starting => Err(BOOTS),
            Phase::Followed => Err("another server has taken over from this one"),
            Phase::Stopping => Err("the server is stopping"),
            Phase::Serving if now.upgrades => Err("another upgrade is in progress"),
            Phase::Serving if now.reloads > 0 => Err(RELOADS),
            Phase::Serving if now.has_canary => Err(HAS_CANARY),
            Phase::Serving => {
                now.upgrades = true;
                Ok(())
            }
        }
    }

    /// The upgrade has failed and this server continues.
    pub(crate) fn has_not_upgraded(&self) {
        let mut now = self.now();
        now.upgrades = false;
        if now.phase == Phase::Followed {
            now.phase = Phase::Serving;
            let own = std::process::id();
            self.service.insist(&format!("MAINPID={own}\nREADY=1"));
        }
    }

    /// The process with this id is the server from now on. Returns false if this server is stopping
    /// instead.
    pub(crate) fn hands_over(&self, pid: i32) -> bool {
        let mut now = self.now();
        if now.phase != Phase::Serving {
            return false;
        }
        now.phase = Phase::Followed;
        self.service
            .insist(&format!("MAINPID={pid}\nREADY=1\nSTATUS=another server has taken over"));
        true
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.now().phase == Phase::Stopping
    }

    /// Returns whether this server, and no other one, sends messages to the service manager.
    fn speaks(&self) -> bool {
        !matches!(self.now().phase, Phase::Following | Phase::Followed)
    }

    /// Reports that the server drains. Several components may call it.
    pub(crate) fn stops(&self) {
        let mut now = self.now();
        if matches!(now.phase, Phase::Starting | Phase::Serving) {
            now.phase = Phase::Stopping;
            self.service.stopping();
        }
    }

    /// The lock is held while a message is sent, so that messages keep their order.
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(name: &std::ffi::OsStr) -> std::io::Result<UnixDatagram> {
    use std::os::unix::ffi::OsStrExt;
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Reports to the service manager that the supervisor's thread is alive.
#[derive(Debug)]
pub(crate) struct Watchdog {
    service: Service,
    every: Option<Duration>,
    last: Instant,
}

impl Watchdog {
    /// Creates a watchdog from `$WATCHDOG_USEC`, if that is meant for this process.
    pub(crate) fn of_environment(service: Service) -> Watchdog {
        let variable = |name| std::env::var(name).ok();
        let pid = variable("WATCHDOG_PID");
        let every = watchdog_time(variable("WATCHDOG_USEC").as_deref(), pid.as_deref());
        Watchdog { service, every, last: Instant::now() }
    }

    /// Returns whether `$WATCHDOG_USEC`, if set, is meant for this process, and therefore for its
    /// successor.
    pub(crate) fn is_of_this_process() -> bool {
        let pid = std::env::var("WATCHDOG_PID").ok();
        pid.is_none_or(|pid| pid.parse() == Ok(std::process::id()))
    }

    /// Called at each turn of the supervisor; sends a message if it is due.
    pub(crate) fn turn(&mut self, state: &ServiceState) {
        let Some(every) = self.every else { return };
        if self.last.elapsed() >= every && state.speaks() {
            self.last = Instant::now();
            self.service.say("WATCHDOG=1");
        }
    }
}

/// Returns the interval between two keep-alive messages.
fn watchdog_time(us: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    if pid.is_some_and(|pid| pid.parse() != Ok(std::process::id())) {
        return None;
    }
    let us: u64 = us?.parse().ok().filter(|us| *us > 0)?;
    Some(Duration::from_micros(us) / SIGNS_PER_WATCHDOG)
}

/// Returns `STATUS=` for a server that serves.
fn serving(generation: u64, addresses: &[String]) -> String {
    let mut text = format!("generation {generation} serves");
    for address in addresses {
        // Writing to a string cannot fail.
        let _ = write!(text, " {address}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abstract_and_path_sockets_receive_messages() {
        let folder = std::env::temp_dir().join(format!("samovar-notify-{}", std::process::id()));
        let at_path = UnixDatagram::bind(&folder).expect("a socket");
        let name = format!("samovar-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let abstracted = UnixDatagram::bind_addr(&address).expect("a socket");
        for (socket, name) in
            [(&at_path, folder.display().to_string()), (&abstracted, format!("@{name}"))]
        {
            let service = Service(Some(Arc::new(connect(name.as_ref()).expect("it listens"))));
            service.ready("well");
            let mut buffer = [0; 100];
            let len = socket.recv(&mut buffer).expect("a message");
            assert_eq!(&buffer[..len], b"READY=1\nSTATUS=well");
        }
        std::fs::remove_file(&folder).expect("our own file");
        assert!(connect("/no/such/socket".as_ref()).is_err());
    }

    #[test]
    fn watchdog_interval_is_a_third_and_only_for_own_pid() {
        let own = std::process::id().to_string();
        let ms = |us, pid| watchdog_time(us, pid).map(|every| every.as_millis());
        assert_eq!(ms(Some("3000000"), None), Some(1000));
        assert_eq!(ms(Some("3000000"), Some(&own)), Some(1000));
        assert_eq!(ms(Some("3000000"), Some("1")), None);
        for us in [None, Some("0"), Some("-1"), Some("soon")] {
            assert_eq!(ms(us, None), None);
        }
    }
}
