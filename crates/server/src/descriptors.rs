//! File descriptors: the limit, and the number of connections that it allows.
//!
//! The soft limit is raised to the number that the settings need, at most to the hard limit. PHP
//! gets the original limit: programs that it starts may close descriptors one by one up to the
//! limit, and `select()` supports only 1,024.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use samovar_config::Settings;
use samovar_supervisor::sampled_descriptors;
use std::os::fd::{AsFd, OwnedFd};

/// Descriptors for listeners, ring, template channels, logs, pipes that programs keep open, the
/// control socket and its clients.
const OWN: u64 = 64;
/// Connections of the admin listener, if there is one.
const ADMIN: u64 = samovar_admin::CONNECTIONS_MAX as u64;
/// Same for each further pool.
/// Files of the schedules, and the outputs of those that run.
const OF_SCHEDULES: u64 = 40;
const OWN_OF_POOL: u64 = 24;
/// Descriptors for each further thread of the front: its epoll, and those that wake it.
const OWN_OF_THREAD: u64 = 4;
/// Additional descriptors per thread and pool: the notifier and the runtime's duplicate.
const BELLS: u64 = 2;
/// Number of connections per descriptor that is reserved for files: static files, and bodies and
/// responses that are spilled to disk.
const CONNECTIONS_PER_FILE: u64 = 8;
/// Minimum number of descriptors reserved for files.
const FILES_MIN: u64 = 16;
/// Lowest number for descriptors that PHP's processes do not inherit, if the limit allows it. An
/// image can restore 512 descriptors, and 32 pools have about nine each that templates do inherit.
const HIGH: i32 = 1_024;
/// Minimum number of connections to serve.
const CONNECTIONS_MIN: u64 = 16;

/// Returns a duplicate with a high number, so that low numbers are free for descriptors that
/// templates inherit.
pub(crate) fn put_high<T: AsFd + From<OwnedFd>>(low: T) -> T {
    match rustix::io::fcntl_dupfd_cloexec(low.as_fd(), HIGH) {
        Ok(high) => T::from(high),
        // The limit does not allow such numbers. Then there are few connections, too.
        Err(_) => low,
    }
}

/// Raises the soft limit as far as it is needed; returns the original limit.
pub(crate) fn raise(settings: &Settings) -> Result<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let soft = before.current.unwrap_or(u64::MAX);
    let wanted = needed(settings).min(before.maximum.unwrap_or(u64::MAX));
    if wanted > soft {
        let raised = Rlimit { current: Some(wanted), maximum: before.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, wanted, "cannot raise the limit of open files");
        }
    }
    let limit = limit();
    if allowed(settings, limit) < CONNECTIONS_MIN {
        bail!(
            "{limit} descriptors are too few to serve\nhint: raise the hard limit of open files \
             (`ulimit -Hn`, LimitNOFILE= in the unit)"
        );
    }
    Ok(before)
}

/// Returns `limits.connections_max`, or less if there are not enough descriptors; then logs a
/// warning.
pub(crate) fn connections_max(settings: &Settings) -> usize {
    let wanted = settings.limits.connections_max;
    let limit = limit();
    let allowed = usize::try_from(allowed(settings, limit)).unwrap_or(usize::MAX);
    if allowed < wanted {
        tracing::warn!(
            connections_max = wanted,
            open_files_max = limit,
            "the limit of open files allows only {allowed} connections; further ones wait (hint: \
             raise the hard limit of open files, `ulimit -Hn` or LimitNOFILE= in the unit, to {})",
            needed(settings)
        );
    }
    wanted.min(allowed)
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns whether there are spare descriptors, for optional uses that only improve speed.
pub(crate) fn abound(settings: &Settings) -> bool {
    limit() >= needed(settings)
}

/// Returns the number of descriptors for all connections that the settings allow, and for the
/// workers' files that the sampler keeps open.
fn needed(settings: &Settings) -> u64 {
    let connections = settings.limits.connections_max as u64;
    let pools = settings.pools.iter().map(|pool| pool.settings.workers.max);
    let workers = settings.workers.max + pools.sum::<usize>();
    let sampled = sampled_descriptors(2 * workers) as u64;
    others(settings) + sampled + connections + connections.div_ceil(CONNECTIONS_PER_FILE)
}

/// Returns the number of connections that this limit allows.
fn allowed(settings: &Settings, limit: u64) -> u64 {
    let left = limit.saturating_sub(others(settings));
    left / (CONNECTIONS_PER_FILE + 1) * CONNECTIONS_PER_FILE
}

/// Returns the number of descriptors for other purposes than connections. Each worker's output is a
/// pipe; during a reload there are two generations of workers.
fn others(settings: &Settings) -> u64 {
    let consoles: u64 = settings.consoles.iter().map(|console| console.count as u64).sum();
    let pool = |pool: &samovar_config::Pool| OWN_OF_POOL + 2 * pool.settings.workers.max as u64;
    let pools: u64 = settings.pools.iter().map(pool).sum();
    let more_threads = settings.front_threads.saturating_sub(1) as u64;
    let threads = more_threads * (OWN_OF_THREAD + BELLS * (1 + settings.pools.len() as u64));
    let admin = if settings.admin.is_empty() { 0 } else { ADMIN };
    let schedules = if settings.schedules.is_empty() { 0 } else { OF_SCHEDULES };
    OWN + admin
        + FILES_MIN
        + pools
        + threads
        + schedules
        + 2 * (consoles + settings.workers.max as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Sources;

    #[test]
    fn needed_descriptors_allow_all_connections() {
        let mut settings = Sources::new(env!("CARGO_MANIFEST_DIR")).resolve().expect("defaults");
        for connections in [1, 16, 4096, 100_000] {
            settings.limits.connections_max = connections;
            let allowed = allowed(&settings, needed(&settings));
            assert!(
                allowed + CONNECTIONS_PER_FILE >= connections as u64,
                "{connections}: {allowed}"
            );
        }
        assert_eq!(allowed(&settings, 10), 0);
        settings.workers.max = 4;
        assert_eq!(allowed(&settings, 256), 144);
    }
}
