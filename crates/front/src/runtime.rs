//! Services that all stages use: clock, threads for files, counters, link to the supervisor,
//! handling of panics.
//!
//! Does not know HTTP, routes or requests. Imports no other folder of this crate.

pub(crate) mod clock;
pub(crate) mod compression_threads;
pub(crate) mod counters;
pub(crate) mod development;
pub(crate) mod disk;
pub(crate) mod disk_jobs;
pub(crate) mod hostile;
pub(crate) mod job_intake;
pub(crate) mod link;
pub(crate) mod memory;
mod mounts;
pub(crate) mod panic_guard;
pub(crate) mod peaks;
pub(crate) mod presence;
pub(crate) mod random_sampling;
pub(crate) mod recordings;
pub(crate) mod rejection;
pub(crate) mod scheduling;
pub(crate) mod threads;
pub(crate) mod tokens;
pub(crate) mod upstream_failure;
pub(crate) mod waker;
pub(crate) mod wakeup_fd;
