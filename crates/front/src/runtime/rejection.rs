//! Reasons for which a valid request is rejected, with their texts for the client, the log and the
//! counters.

/// Reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// All places are taken.
    Full,
    /// Its turn would come too late.
    Late,
    /// Its client has used its share of the places.
    Share,
    /// It has waited for `timeouts.queue`.
    Waited,
    /// No worker has booted yet.
    Starting,
    /// No file descriptors are left.
    Descriptors,
    /// The file system that it needs does not respond.
    Files,
    /// Its client has left too many response bytes unread.
    Unread,
    /// There is no room for its body in temporary files.
    Spool,
    /// Too many requests of an intake wait for the store of jobs, or it has no room.
    Intake,
}

impl Rejection {
    /// All variants, in the order of their numbers.
    pub const ALL: [Rejection; 10] = [
        Rejection::Full,
        Rejection::Late,
        Rejection::Share,
        Rejection::Waited,
        Rejection::Starting,
        Rejection::Descriptors,
        Rejection::Files,
        Rejection::Unread,
        Rejection::Spool,
        Rejection::Intake,
    ];

    /// Name in lower case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            Rejection::Full => "full",
            Rejection::Late => "late",
            Rejection::Share => "share",
            Rejection::Waited => "waited",
            Rejection::Starting => "starting",
            Rejection::Descriptors => "descriptors",
            Rejection::Files => "files",
            Rejection::Unread => "unread",
            Rejection::Spool => "spool",
            Rejection::Intake => "intake",
        }
    }

    /// Description of the reason, and a hint.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        const BUSY: &str = "all workers are busy; add workers, or find the slow requests";
        match self {
            Rejection::Full => ("queue full", BUSY),
            Rejection::Late => ("expected wait longer than timeouts.queue", BUSY),
            Rejection::Share => (
                "client exceeds limits.client_share of the queue",
                "one client sends too many requests; if it is a proxy, add it to trusted_proxies",
            ),
            Rejection::Waited => ("no worker took the request within timeouts.queue", BUSY),
            Rejection::Starting => (
                "no worker has booted yet",
                "check the log: the application boots slowly or fails to boot",
            ),
            Rejection::Descriptors => (
                "no file descriptors left",
                "raise the limit of open files: `ulimit -Hn`, or LimitNOFILE= in the unit",
            ),
            Rejection::Files => (
                "file system does not respond",
                "check the network file server or FUSE process of this mount",
            ),
            Rejection::Unread => (
                "client leaves more response bytes unread than its share of \
                 limits.buffered_bytes_max",
                "one client requests pages and does not read them; if it is a proxy, add it to \
                 trusted_proxies",
            ),
            Rejection::Spool => (
                "temporary files exceed limits.spooled_bytes_max, or the client's share of it",
                "raise limits.spooled_bytes_max if temp_dir has room, or lower \
                 limits.body_bytes_max",
            ),
            Rejection::Intake => (
                "the store of jobs is full, fails, or is slower than the requests of an intake",
                "check the disk of jobs.store, raise jobs.bytes_max, or add workers to the queue",
            ),
        }
    }
}
