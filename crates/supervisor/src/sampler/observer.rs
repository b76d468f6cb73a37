//! Settings of the sampler, its samples, and the interface that receives them.

use samovar_ring::{Model, RequestLine, Run};
use samovar_spy::{Activity, Stack};
use std::time::Duration;

/// Settings of the sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// Samples of each busy worker per second; 0: none.
    pub hertz: u32,
    /// Time after which a request counts as slow, measured from its queueing; `None`: slow requests
    /// are not reported.
    pub slow: Option<Duration>,
    /// Whether files of workers may stay open between samples: enough descriptors are available.
    pub keeps_files: bool,
}

/// Activity of a busy worker in a sample.
#[derive(Clone, Copy, Debug)]
pub enum Scene<'a> {
    /// PHP code is active; the second value shows whether the worker runs or waits.
    Php(&'a Stack, &'a Activity),
    /// The worker has a request, but no PHP code is active.
    NoCode,
    /// The worker returns to its image.
    Rollback,
    /// The worker cleans up after a request.
    Reset,
}

/// One sample of a busy worker.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Index of its pool, among those that the sampler was started with.
    pub pool: usize,
    /// Generation that forked it.
    pub generation: u64,
    /// Model that its application chose.
    pub model: Model,
    /// The worker is booting the application.
    pub is_boot: bool,
    /// Request that it runs.
    pub request: Option<(Run, &'a RequestLine)>,
    /// Its activity.
    pub scene: Scene<'a>,
    /// Wall-clock time that the sample represents.
    pub wall_ns: u64,
    /// CPU time used since the worker was last seen running.
    pub cpu_ns: u64,
}

/// State of a request that has become slow and is still running.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowScene {
    /// Text such as `in flock of descriptor 7: /srv/lock`.
    pub blocked: String,
    /// PHP's calls, the innermost first; or one line with the reason why they are unknown.
    pub calls: Vec<String>,
}

/// Receives the samples. Called on the sampler's thread; must not wait for a disk.
pub trait Observer: Send {
    /// The worker of that pool with this incarnation belongs to that generation.
    fn knows(&mut self, pool: usize, life: u32, generation: u64);
    /// A busy worker was sampled.
    fn saw(&mut self, look: &Look<'_>);
    /// A request of that pool has become slow.
    fn is_slow(&mut self, pool: usize, request: &RequestLine, scene: SlowScene);
    /// All workers were sampled once.
    fn turned(&mut self);
}
