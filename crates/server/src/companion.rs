//! Companion server: started by another command for its own use. It answers requests, does nothing
//! else, and ends with that command.

use clap::{Arg, ArgAction, value_parser};
use samovar_config::{AccessLogFormat, LogFormat, LogTarget, Settings};
use samovar_supervisor::identity::effective_uid;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Flag of `serve`: process id of the command that uses the companion.
pub const FLAG: &str = "companion-of";

/// Flag of `serve`: the folder for the workers' heap walks.
pub const HEAP_WALK_FLAG: &str = "census-into";

/// Flag of `serve`: one out of this number of scripts reports the files that it includes.
pub const LOADS_EVERY_FLAG: &str = "loads-every";

/// Flag of `serve`: the companion writes a line of JSON for each request to standard output.
pub const REQUESTS_FLAG: &str = "requests-to-output";

/// In a server that is no companion, one out of this number of scripts reports its files. The
/// report of 300 files costs about 0.3 ms, so the mean is about a microsecond per request. A prime
/// number, so that visitors who repeat a sequence of requests are sampled evenly.
const LOADS_EVERY: u64 = 251;

/// Hidden flags of `serve` for the commands that start a companion.
pub fn arguments() -> [Arg; 4] {
    [
        Arg::new(LOADS_EVERY_FLAG)
            .long(LOADS_EVERY_FLAG)
            .value_parser(value_parser!(u64))
            .requires(FLAG)
            .hide(true),
        Arg::new(REQUESTS_FLAG)
            .long(REQUESTS_FLAG)
            .action(ArgAction::SetTrue)
            .requires(FLAG)
            .hide(true),
        Arg::new(FLAG).long(FLAG).value_parser(value_parser!(i32)).hide(true),
        Arg::new(HEAP_WALK_FLAG)
            .long(HEAP_WALK_FLAG)
            .value_parser(value_parser!(PathBuf))
            .requires(FLAG)
            .hide(true),
    ]
}

static IS_COMPANION: AtomicBool = AtomicBool::new(false);
static WRITES_REQUESTS: AtomicBool = AtomicBool::new(false);
static HEAP_WALK: OnceLock<PathBuf> = OnceLock::new();
static LOADS: AtomicU64 = AtomicU64::new(LOADS_EVERY);

/// Returns the folder for the workers' heap walks; only a companion has one.
pub fn heap_walk() -> Option<PathBuf> {
    HEAP_WALK.get().cloned()
}

/// Returns the number of scripts out of which one reports the files that it includes; 0: none.
pub fn loads_every() -> u64 {
    LOADS.load(Ordering::Relaxed)
}

/// Sets the number of scripts of a companion out of which one reports its files; `None`: none.
pub fn set_loads_every(every: Option<u64>) {
    LOADS.store(every.unwrap_or(0), Ordering::Relaxed);
}

/// Changes the settings to those of a companion: everything that a real server does besides
/// answering requests is off.
pub fn become_one(settings: &mut Settings, of: i32, heap_walk: Option<&PathBuf>) {
    isolate(settings);
    if let Some(folder) = heap_walk {
        let _only_once = HEAP_WALK.set(folder.clone());
    }
    IS_COMPANION.store(true, Ordering::Relaxed);
    end_with_parent();
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent != of {
        std::process::exit(1);
    }
}

/// Makes a companion write its requests, with the routes as the application names them.
pub fn write_requests(settings: &mut Settings) {
    (settings.access_log, settings.access_log_format) = (LogTarget::Stdout, AccessLogFormat::Json);
    settings.insight.enabled = true;
    WRITES_REQUESTS.store(true, Ordering::Relaxed);
}

/// Returns whether this companion writes its requests.
pub(crate) fn writes_requests() -> bool {
    WRITES_REQUESTS.load(Ordering::Relaxed)
}

/// Removes everything that a server with these settings shares with another server, or with other
/// systems: a companion usually runs next to the server whose file it reads. Its only address and
/// its control socket are flags of the command that starts it.
pub fn isolate(settings: &mut Settings) {
    for pool in &mut settings.pools {
        isolate(&mut pool.settings);
    }
    settings.consoles.clear();
    settings.schedules.clear();
    // Listeners, and the files and certificates that only they need.
    settings.admin.clear();
    settings.insight.pinba_listen = None;
    settings.acme.domains.clear();
    settings.tls.certificates.clear();
    settings.tls.keys.clear();
    settings.tls.client_ca = None;
    settings.tls.client_crls.clear();
    // Files that a server appends to. The command reads the log from standard error.
    (settings.log, settings.log_format) = (LogTarget::Stderr, LogFormat::Text);
    settings.access_log = LogTarget::Off;
    settings.insight.slow_log = LogTarget::Off;
    settings.insight.store = None;
    // Systems that would take its requests for those of visitors.
    settings.insight.otlp.endpoint = None;
    settings.insight.pinba = None;
    settings.profile.push.endpoint = None;
    // Samples of requests that run in another way than the rest.
    settings.insight.script_share_ppm = 0;
    settings.profile.trace_ppm = 0;
    settings.profile.trace_key = None;
    // Only root can switch to the user of the real server.
    if effective_uid() != 0 {
        (settings.user, settings.group) = (None, None);
    }
}

/// Returns whether this process is a companion.
pub fn is_one() -> bool {
    IS_COMPANION.load(Ordering::Relaxed)
}

/// Makes this process end with its parent. Must be called again after a change of user, which
/// clears the kernel's setting.
pub fn end_with_parent() {
    if is_one() {
        // If setting it fails, the parent still stops the server, unless the parent is killed.
        let signal = Some(rustix::process::Signal::TERM);
        let _ = rustix::process::set_parent_process_death_signal(signal);
    }
}
