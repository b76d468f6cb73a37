//! Why a request is refused although nothing is wrong with it: what the client, the log and the counters say of it.

/// Why a request is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shed {
    /// All places are taken.
    Full,
    /// Its turn would come too late.
    Late,
    /// Its client has its share of the places.
    Share,
    /// It has waited for `timeouts.queue`.
    Waited,
    /// No worker has booted yet.
    Starting,
    /// There are no descriptors left.
    Descriptors,
    /// The file system that it needs does not answer.
    Files,
}

impl Shed {
    /// All there are, in the order of their numbers.
    pub const ALL: [Shed; 7] = [
        Shed::Full,
        Shed::Late,
        Shed::Share,
        Shed::Waited,
        Shed::Starting,
        Shed::Descriptors,
        Shed::Files,
    ];

    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            Shed::Full => "full",
            Shed::Late => "late",
            Shed::Share => "share",
            Shed::Waited => "waited",
            Shed::Starting => "starting",
            Shed::Descriptors => "descriptors",
            Shed::Files => "files",
        }
    }

    /// What happened, and what to do about it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        const BUSY: &str = "all workers are busy; add workers, or find the slow requests";
        match self {
            Shed::Full => ("the queue is full", BUSY),
            Shed::Late => ("its turn would come after timeouts.queue", BUSY),
            Shed::Share => (
                "its client has limits.client_share of the queue",
                "one client floods the server; behind a proxy, is it in trusted_proxies?",
            ),
            Shed::Waited => ("no worker took the request within timeouts.queue", BUSY),
            Shed::Starting => (
                "no worker has booted yet",
                "the application boots slowly, or fails to: the log says why",
            ),
            Shed::Descriptors => (
                "there are no descriptors left",
                "raise the limit of open files: `ulimit -Hn`, or LimitNOFILE= in the unit",
            ),
            Shed::Files => (
                "the file system that it needs does not answer",
                "is the server of its network, or the process behind it, still there?",
            ),
        }
    }
}
