//! server → service manager: ready, reloading, stopping, alive (`sd_notify`). One datagram each, to the socket that
//! `$NOTIFY_SOCKET` names; without one nothing is told.

use samovar_supervisor::monotonic_us;
use std::fmt::Write as _;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a service manager tells the process that it starts. No descendant is told: it would take it for its own.
pub(crate) const VARIABLES: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

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

    fn say(&self, text: &str) {
        // A manager that does not listen any more needs no news.
        let _ = self.0.as_ref().map(|socket| socket.send(text.as_bytes()));
    }
}

/// What was last told, and to whom: the sources of news are many. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ServiceState {
    service: Service,
    addresses: Arc<[String]>,
    phase: Arc<Mutex<Phase>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    Stopping,
}

impl ServiceState {
    pub(crate) fn new(service: Service, addresses: Vec<String>) -> ServiceState {
        let phase = Arc::new(Mutex::new(Phase::Starting));
        ServiceState { service, addresses: addresses.into(), phase }
    }

    /// The first generation is up.
    pub(crate) fn serves(&self, generation: u64) {
        let mut phase = self.phase();
        if *phase == Phase::Starting {
            *phase = Phase::Serving;
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Called when a reload begins.
    pub(crate) fn reloads(&self) {
        if *self.phase() == Phase::Serving {
            self.service.reloading();
        }
    }

    /// It has ended, whatever came of it.
    pub(crate) fn has_reloaded(&self, generation: u64) {
        if *self.phase() == Phase::Serving {
            self.service.ready(&serving(generation, &self.addresses));
        }
    }

    /// Called when the server drains, by each who has it drain.
    pub(crate) fn stops(&self) {
        let mut phase = self.phase();
        if *phase != Phase::Stopping {
            *phase = Phase::Stopping;
            self.service.stopping();
        }
    }

    /// Held while news is sent, so that none overtakes another.
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Called at each turn of the supervisor; speaks when it is time.
    pub(crate) fn turn(&mut self) {
        let Some(every) = self.every else { return };
        if self.last.elapsed() >= every {
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
