//! PHP's own calls are made direct, after PHP's start and before anything is forked (crates/relink).

use crate::boundary;
use samovar_channel::{Linking, LinkingState};
use samovar_relink::{Refusal, Relinked};

/// Changes libphp and the extensions that are loaded, if `is_wanted`. Whatever stands against it leaves them as they are.
pub(crate) fn relink(is_wanted: bool) -> Linking {
    if !is_wanted {
        return Linking::default();
    }
    // SAFETY: the template has one thread (relink counts), has come back from PHP, and unloads extensions only in PHP's
    // own shutdown, by when no library calls another.
    match unsafe { samovar_relink::relink(boundary::php_code(), use_php) } {
        Ok(Relinked { objects, calls, loads, left }) => Linking {
            state: LinkingState::Direct,
            why: String::new(),
            libraries: objects,
            calls,
            loads,
            left,
        },
        Err(refusal) => Linking {
            state: match refusal {
                Refusal::Processor => LinkingState::Off,
                _ => LinkingState::Refused,
            },
            why: refusal.to_string(),
            ..Linking::default()
        },
    }
}

/// In the child that tries it first.
fn use_php() {
    let _ = boundary::php_version();
    let _ = boundary::has_directive(c"memory_limit");
}
