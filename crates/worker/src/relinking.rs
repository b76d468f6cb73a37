//! Makes PHP's calls between its libraries direct, after PHP's start and before the first fork
//! (crates/relink).

use crate::boundary;
use samovar_channel::{Linking, LinkingState};
use samovar_relink::{Refusal, Relinked};

/// Changes libphp and the loaded extensions, if `is_wanted`. If any obstacle is found, they stay as
/// they are.
pub(crate) fn relink(is_wanted: bool) -> Linking {
    if !is_wanted {
        return Linking::default();
    }
    // SAFETY: the template has one thread (relink counts them) and has returned from PHP. It
    // unloads extensions only in PHP's own shutdown, when no library calls another any more.
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

/// Uses PHP, in the child that tries the changes first.
fn use_php() {
    let _ = boundary::php_version();
    let _ = boundary::has_directive(c"memory_limit");
}
