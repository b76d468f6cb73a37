//! Companion server: started by another command for its own use. It answers requests, does nothing
//! else, and ends with that command.

use clap::{Arg, value_parser};
use samovar_config::Settings;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flag of `serve`: process id of the command that uses the companion.
pub const FLAG: &str = "companion-of";

/// Flag of `serve`: the folder for the workers' heap walks.
pub const HEAP_WALK_FLAG: &str = "census-into";

/// Hidden flags of `serve` for the commands that start a companion.
pub fn arguments() -> [Arg; 2] {
    [
        Arg::new(FLAG).long(FLAG).value_parser(value_parser!(i32)).hide(true),
        Arg::new(HEAP_WALK_FLAG)
            .long(HEAP_WALK_FLAG)
            .value_parser(value_parser!(PathBuf))
            .requires(FLAG)
            .hide(true),
    ]
}

static IS_COMPANION: AtomicBool = AtomicBool::new(false);
static HEAP_WALK: OnceLock<PathBuf> = OnceLock::new();

/// Returns the folder for the workers' heap walks; only a companion has one.
pub fn heap_walk() -> Option<PathBuf> {
    HEAP_WALK.get().cloned()
}

/// Changes the settings to those of a companion: everything that a real server does besides
/// answering requests is off.
pub fn become_one(settings: &mut Settings, of: i32, heap_walk: Option<&PathBuf>) {
    settings.consoles.clear();
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
