//! server → service manager: ready, reloading, stopping, alive (`sd_notify`). One datagram each, to the socket that
//! `$NOTIFY_SOCKET` names; without one nothing is told.

use samovar_supervisor::monotonic_us;
use samovar_supervisor::successor::CHANNEL_VARIABLE;
use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a service manager tells the process that it starts. No descendant is told: it would take it for its own.
pub(crate) const VARIABLES: [&str; 7] = [
    CHANNEL_VARIABLE,
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

/// How long a manager may take to have room for a message that must not be lost.
const INSIST_LIMIT: Duration = Duration::from_secs(1);
const INSIST_PAUSE: Duration = Duration::from_millis(5);

/// Signs of life per time in which the manager wants one.
const SIGNS_PER_WATCHDOG: u32 = 3;

/// Where the service manager listens. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Service(Option<Arc<UnixDatagram>>);

impl Service {
    /// As the environment says; what cannot be reached is logged, and nothing else.
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

    /// Tells that requests are answered.
    fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// A new generation boots; [`Self::ready`] follows, whatever comes of it.
    fn reloading(&self) {
        // What `Type=notify-reload` asks for.
        self.say(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=the application boots anew",
            monotonic_us()
        ));
    }

    /// Tells that the server drains.
    fn stopping(&self) {
        self.say("STOPPING=1\nSTATUS=requests in flight are finished");
    }

    /// As [`Self::say`], for what must not be lost: waits a moment for a manager that has much to read.
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
        // A manager that does not listen any more needs no news.
        let _ = self.0.as_ref().map(|socket| socket.send(text.as_bytes()));
    }
}

/// What the server is at, what was last told of it, and to whom: the sources of news are many. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ServiceState {
    service: Service,
    addresses: Arc<[String]>,
    now: Arc<Mutex<Now>>,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    phase: Phase,
    /// Reloads that were asked for and have not ended.
    reloads: usize,
    /// Another server is being started.
    upgrades: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has been started by a server that goes on until this one is told to: that one speaks.
    Following,
    Starting,
    Serving,
    /// Another server goes on, and speaks.
    Followed,
    Stopping,
}

impl ServiceState {
    /// `follows`: another server goes on until [`Self::begins`].
    pub(crate) fn new(service: Service, addresses: Vec<String>, follows: bool) -> ServiceState {
        let phase = if follows { Phase::Following } else { Phase::Starting };
        let now = Now { phase, reloads: 0, upgrades: false };
        ServiceState { service, addresses: addresses.into(), now: Arc::new(Mutex::new(now)) }
    }

    /// The first generation is up.
    pub(crate) fn serves(&self, generation: u64) {
        let mut now = self.now();
        if matches!(now.phase, Phase::Starting | Phase::Following) {
            now.phase = Phase::Serving;
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Called when a reload begins; why it must not. [`Self::has_reloaded`] follows.
    pub(crate) fn begins_reload(&self) -> Result<(), &'static str> {
        let mut now = self.now();
        if now.upgrades {
            return Err("another server is being started in the place of this one\n\
                 hint: it reads everything anew, too");
        }
        if now.phase == Phase::Followed {
            return Err("another server has taken over from this one");
        }
        now.reloads += 1;
        Ok(())
    }

    /// The application boots anew.
    pub(crate) fn reloads(&self) {
        if self.now().phase == Phase::Serving {
            self.service.reloading();
        }
    }

    /// A reload has ended, whatever came of it. `told`: this was said to boot.
    pub(crate) fn has_reloaded(&self, generation: u64, told: bool) {
        let mut now = self.now();
        now.reloads = now.reloads.saturating_sub(1);
        if told && now.phase == Phase::Serving {
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Called when another server is to be started; why it must not. [`Self::has_not_upgraded`] or [`Self::hands_over`] follows.
    pub(crate) fn begins_upgrade(&self) -> Result<(), &'static str> {
        let mut now = self.now();
        match now.phase {
            Phase::Following | Phase::Starting => {
                Err("the server has not booted yet\nhint: try again when it has")
            }
            Phase::Followed => Err("another server has taken over from this one"),
            Phase::Stopping => Err("the server is stopping"),
            Phase::Serving if now.upgrades => Err("another upgrade has not ended yet"),
            Phase::Serving if now.reloads > 0 => {
                Err("a reload has not ended yet\nhint: try again when it has")
            }
            Phase::Serving => {
                now.upgrades = true;
                Ok(())
            }
        }
    }

    /// This server goes on.
    pub(crate) fn has_not_upgraded(&self) {
        let mut now = self.now();
        now.upgrades = false;
        if now.phase == Phase::Followed {
            now.phase = Phase::Serving;
            let own = std::process::id();
            self.service.insist(&format!("MAINPID={own}\nREADY=1"));
        }
    }

    /// The process of that number is the server from now on; false: this one is to stop.
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

    /// Whether the service manager hears this server, and no other one.
    fn speaks(&self) -> bool {
        !matches!(self.now().phase, Phase::Following | Phase::Followed)
    }

    /// Called when the server drains, by each who has it drain.
    pub(crate) fn stops(&self) {
        let mut now = self.now();
        if matches!(now.phase, Phase::Starting | Phase::Serving) {
            now.phase = Phase::Stopping;
            self.service.stopping();
        }
    }

    /// Held while news is sent, so that none overtakes another.
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

/// Tells the service manager that the supervisor's thread lives.
#[derive(Debug)]
pub(crate) struct Watchdog {
    service: Service,
    every: Option<Duration>,
    last: Instant,
}

impl Watchdog {
    /// `$WATCHDOG_USEC`, if that is meant for this process.
    pub(crate) fn of_environment(service: Service) -> Watchdog {
        let variable = |name| std::env::var(name).ok();
        let pid = variable("WATCHDOG_PID");
        let every = watchdog_time(variable("WATCHDOG_USEC").as_deref(), pid.as_deref());
        Watchdog { service, every, last: Instant::now() }
    }

    /// Whether `$WATCHDOG_USEC`, if it is there, is meant for this process, and so for its successor.
    pub(crate) fn is_of_this_process() -> bool {
        let pid = std::env::var("WATCHDOG_PID").ok();
        pid.is_none_or(|pid| pid.parse() == Ok(std::process::id()))
    }

    /// Called at each turn of the supervisor; speaks when it is time.
    pub(crate) fn turn(&mut self, state: &ServiceState) {
        let Some(every) = self.every else { return };
        if self.last.elapsed() >= every && state.speaks() {
            self.last = Instant::now();
            self.service.say("WATCHDOG=1");
        }
    }
}

/// Between two signs of life.
fn watchdog_time(us: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    if pid.is_some_and(|pid| pid.parse() != Ok(std::process::id())) {
        return None;
    }
    let us: u64 = us?.parse().ok().filter(|us| *us > 0)?;
    Some(Duration::from_micros(us) / SIGNS_PER_WATCHDOG)
}

/// `STATUS=` of a server that serves.
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
    fn abstract_and_other_names_are_reached() {
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
    fn the_watchdog_is_told_in_time_and_only_by_whom_it_watches() {
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
