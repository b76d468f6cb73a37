//! A server that another command has started for itself: it answers, does nothing besides, and ends with that command.

use clap::{Arg, value_parser};
use samovar_config::Settings;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag of `serve`: the process that waits for the server.
pub(crate) const FLAG: &str = "companion-of";

/// Another flag of `serve`: the folder into which its workers write censuses.
pub(crate) const CENSUS_FLAG: &str = "census-into";

pub(crate) fn arguments() -> [Arg; 2] {
    [
        Arg::new(FLAG).long(FLAG).value_parser(value_parser!(i32)).hide(true),
        Arg::new(CENSUS_FLAG)
            .long(CENSUS_FLAG)
            .value_parser(value_parser!(PathBuf))
            .requires(FLAG)
            .hide(true),
    ]
}

static IS_COMPANION: AtomicBool = AtomicBool::new(false);
static CENSUS: OnceLock<PathBuf> = OnceLock::new();

/// The folder into which workers write censuses; no other server has one.
pub(crate) fn census() -> Option<PathBuf> {
    CENSUS.get().cloned()
}

/// In a server that was started by another command: without what the real one would do besides answering.
pub(crate) fn become_one(settings: &mut Settings, of: i32, census: Option<&PathBuf>) {
    settings.consoles.clear();
    if let Some(folder) = census {
        let _only_once = CENSUS.set(folder.clone());
    }
    IS_COMPANION.store(true, Ordering::Relaxed);
    end_with_parent();
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent != of {
        std::process::exit(1);
    }
}

/// Whether this is such a server.
pub(crate) fn is_one() -> bool {
    IS_COMPANION.load(Ordering::Relaxed)
}

/// To be said again after a change of user, which forgets it.
pub(crate) fn end_with_parent() {
    if is_one() {
        // Without it the server is stopped all the same, unless this command is killed.
        let signal = Some(rustix::process::Signal::TERM);
        let _ = rustix::process::set_parent_process_death_signal(signal);
    }
}
