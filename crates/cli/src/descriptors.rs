//! How many descriptors the server may have, and how many connections that allows.
//!
//! The soft limit is raised to what the settings need, as far as the hard one goes. PHP gets the old one back: programs
//! that it starts may close descriptors one by one up to the limit, and `select()` knows 1,024 of them.

use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use samovar_config::Settings;
use samovar_supervisor::sampled_descriptors;
use std::os::fd::{AsFd, OwnedFd};

/// Listeners, ring, channels of templates, logs, pipes that programs hold open, control socket and its clients.
const OWN: u64 = 64;
/// The same of each further pool.
const OWN_OF_POOL: u64 = 24;
/// Of each further thread of the front: its epoll, and what wakes it.
const OWN_OF_THREAD: u64 = 4;
/// And, in each pool, its bell and the runtime's copy.
const BELLS: u64 = 2;
/// One descriptor per this many connections is kept for a file: static ones, bodies and answers that wait on the disk.
const CONNECTIONS_PER_FILE: u64 = 8;
/// Kept for files in any case.
const FILES_MIN: u64 = 16;
/// Where descriptors begin that no process of PHP inherits, if there may be so many: an image can put back 512 of them, and 32 pools have
/// some nine each that templates do inherit.
const HIGH: i32 = 1_024;
/// With fewer there is no serving.
const CONNECTIONS_MIN: u64 = 16;

/// The same with a high number, so that low ones are left for what templates inherit.
pub(crate) fn put_high<T: AsFd + From<OwnedFd>>(low: T) -> T {
    match rustix::io::fcntl_dupfd_cloexec(low.as_fd(), HIGH) {
        Ok(high) => T::from(high),
        // So many are not allowed: then there are not so many connections either.
        Err(_) => low,
    }
}

/// Raises the soft limit as far as it is of use; returns what it was.
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
            "cannot serve with {limit} descriptors\n\
             hint: raise the hard limit of open files (`ulimit -Hn`, LimitNOFILE= in the unit)"
        );
    }
    Ok(before)
}

/// `limits.connections_max`, or fewer, if there are not descriptors enough; says so then.
pub(crate) fn connections_max(settings: &Settings) -> usize {
    let wanted = settings.limits.connections_max;
    let limit = limit();
    let allowed = usize::try_from(allowed(settings, limit)).unwrap_or(usize::MAX);
    if allowed < wanted {
        tracing::warn!(
            connections_max = wanted,
            open_files_max = limit,
            "there are descriptors for {allowed} connections only; more wait (hint: raise the hard \
             limit of open files, `ulimit -Hn` or LimitNOFILE= in the unit, to {})",
            needed(settings)
        );
    }
    wanted.min(allowed)
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether there are some to spare for what is only quicker with them.
pub(crate) fn abound(settings: &Settings) -> bool {
    limit() >= needed(settings)
}

/// For all connections that the settings allow, and for files of workers that the sampler keeps open.
fn needed(settings: &Settings) -> u64 {
    let connections = settings.limits.connections_max as u64;
    let pools = settings.pools.iter().map(|pool| pool.settings.workers.max);
    let workers = settings.workers.max + pools.sum::<usize>();
    let sampled = sampled_descriptors(2 * workers) as u64;
    others(settings) + sampled + connections + connections.div_ceil(CONNECTIONS_PER_FILE)
}

/// How many connections so many descriptors allow.
fn allowed(settings: &Settings, limit: u64) -> u64 {
    let left = limit.saturating_sub(others(settings));
    left / (CONNECTIONS_PER_FILE + 1) * CONNECTIONS_PER_FILE
}

/// What is not a connection's. Each worker prints into a pipe, during a reload those of two generations.
fn others(settings: &Settings) -> u64 {
    let consoles: u64 = settings.consoles.iter().map(|console| console.count as u64).sum();
    let pool = |pool: &samovar_config::Pool| OWN_OF_POOL + 2 * pool.settings.workers.max as u64;
    let pools: u64 = settings.pools.iter().map(pool).sum();
    let more_threads = settings.front_threads.saturating_sub(1) as u64;
    let threads = more_threads * (OWN_OF_THREAD + BELLS * (1 + settings.pools.len() as u64));
    OWN + FILES_MIN + pools + threads + 2 * (consoles + settings.workers.max as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Sources;

    #[test]
    fn what_is_needed_is_what_is_allowed() {
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
