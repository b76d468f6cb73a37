//! The compared figures, and the differences that are tolerated.

/// Generation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The serving generation.
    Old = 0,
    /// The canary.
    New = 1,
}

/// A compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Share of requests that PHP ended with a fatal error, or whose worker died.
    Fatal,
    /// Share of requests with a status of 500 or more, or without a complete response.
    Failure,
    /// Share of responses with a status from 400 to 498.
    Rejection,
    /// CPU time per request, ns.
    Cpu,
    /// Time of the request in its worker, ns.
    Latency,
    /// Peak of PHP's memory, bytes.
    Memory,
    /// Memory that a request leaves in its worker, bytes.
    Growth,
}

impl Metric {
    /// All metrics, in the order of their numbers.
    pub const ALL: [Metric; 7] = [
        Metric::Fatal,
        Metric::Failure,
        Metric::Rejection,
        Metric::Cpu,
        Metric::Latency,
        Metric::Memory,
        Metric::Growth,
    ];
    /// Metrics that are rates of events.
    pub(crate) const RATES: [Metric; 3] = [Metric::Fatal, Metric::Failure, Metric::Rejection];
    /// Metrics that are values of each request.
    pub(crate) const VALUES: [Metric; 4] =
        [Metric::Cpu, Metric::Latency, Metric::Memory, Metric::Growth];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Fatal => "fatal errors",
            Metric::Failure => "server errors",
            Metric::Rejection => "client errors",
            Metric::Cpu => "CPU time",
            Metric::Latency => "latency",
            Metric::Memory => "memory",
            Metric::Growth => "memory growth",
        }
    }

    /// Name in labels.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Metric::Fatal => "fatal",
            Metric::Failure => "failure",
            Metric::Rejection => "rejection",
            Metric::Cpu => "cpu",
            Metric::Latency => "latency",
            Metric::Memory => "memory",
            Metric::Growth => "growth",
        }
    }

    /// Whether the figure is a share of requests.
    #[must_use]
    pub fn is_rate(self) -> bool {
        Metric::RATES.contains(&self)
    }

    /// Tolerated difference: a factor, and an amount on top. A canary gets fewer requests, so its
    /// workers' caches are colder. On a saturated machine they are cold after each wait for a CPU.
    pub(crate) fn tolerance(self, is_saturated: bool) -> (f64, f64) {
        match self {
            Metric::Cpu if is_saturated => (1.05, 250_000.0),
            Metric::Latency if is_saturated => (1.20, 5_000_000.0),
            Metric::Cpu => (1.05, 50_000.0),
            Metric::Latency => (1.20, 1_000_000.0),
            Metric::Memory => (1.10, 262_144.0),
            Metric::Growth => (1.0, 1_024.0),
            Metric::Fatal | Metric::Failure | Metric::Rejection => (1.0, 0.0),
        }
    }
}

/// Cost of one request in its worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Time from take to finish, ns.
    pub run_ns: u64,
    /// Peak of PHP's memory, bytes.
    pub peak_bytes: u64,
    /// Memory left in the worker, bytes.
    pub grown_bytes: i64,
}

impl Costs {
    /// Values in the order of [`Metric::VALUES`].
    pub(crate) fn values(self) -> [f64; 4] {
        let of = |value: u64| value as f64;
        [of(self.cpu_ns), of(self.run_ns), of(self.peak_bytes), self.grown_bytes as f64]
    }
}

/// One finished request.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Its generation.
    pub arm: Arm,
    /// Its route.
    pub route: &'a str,
    /// HTTP status.
    pub status: u16,
    /// Whether PHP ended with a fatal error, or the worker died.
    pub is_fatal: bool,
    /// Whether the response was not complete, for a reason other than the client.
    pub is_failed: bool,
    /// Process id of the worker; 0 without one.
    pub worker: u32,
    /// Costs, if a worker finished the request.
    pub costs: Option<Costs>,
}

impl Observation<'_> {
    /// Whether the events occurred, in the order of [`Metric::RATES`].
    pub(crate) fn events(&self) -> [bool; 3] {
        let is_failure = self.is_failed || self.is_fatal || self.status >= 500;
        [self.is_fatal, is_failure, (400..499).contains(&self.status)]
    }
}
