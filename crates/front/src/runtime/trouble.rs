//! Why the php-fpm of a location gave no answer, or no whole one: what the log, the counters and the client are told.

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// All connections to it are in use, or too many requests wait for one.
    Full,
    /// Its name stands for no address.
    Unresolved,
    /// There is nobody at its address, or nobody who may be asked.
    Unreachable,
    /// It took no connection in time.
    Unaccepted,
    /// It took the request, and then gave no byte in time.
    Quiet,
    /// It took too long for the whole.
    Long,
    /// It closed the connection before the answer's end.
    Closed,
    /// It said that it does not answer.
    Refused,
    /// What it sent is no answer by FastCGI.
    Garbage,
    /// The head of its answer is too long.
    Head,
}

impl Trouble {
    /// All there are, in the order of their numbers.
    pub const ALL: [Trouble; 10] = [
        Trouble::Full,
        Trouble::Unresolved,
        Trouble::Unreachable,
        Trouble::Unaccepted,
        Trouble::Quiet,
        Trouble::Long,
        Trouble::Closed,
        Trouble::Refused,
        Trouble::Garbage,
        Trouble::Head,
    ];

    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            Trouble::Full => "full",
            Trouble::Unresolved => "unresolved",
            Trouble::Unreachable => "unreachable",
            Trouble::Unaccepted => "unaccepted",
            Trouble::Quiet => "quiet",
            Trouble::Long => "long",
            Trouble::Closed => "closed",
            Trouble::Refused => "refused",
            Trouble::Garbage => "garbage",
            Trouble::Head => "head",
        }
    }

    /// What happened, and what to do about it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Trouble::Full => (
                "all of fastcgi.connections_max are in use, and no more may wait, or not for so long",
                "find its slow requests, allow more than it has processes for, or name several in fastcgi_pass",
            ),
            Trouble::Unresolved => (
                "its name stands for no address",
                "does `getent ahosts` find it on this machine? An address in fastcgi_pass needs nobody to ask",
            ),
            Trouble::Unreachable => (
                "it cannot be reached",
                "is it running, and may the server's user write to its socket (listen.owner, listen.group)?",
            ),
            Trouble::Unaccepted => (
                "it took no connection within fastcgi.connect_timeout",
                "its listen queue is full: find its slow requests, or raise pm.max_children",
            ),
            Trouble::Quiet => (
                "it gave no byte within timeouts.answer",
                "its slow log (request_slowlog_timeout) says where scripts hang; timeouts.path allows more",
            ),
            Trouble::Long => {
                ("its time was over", "timeouts.request and timeouts.path say how much it gets")
            }
            Trouble::Closed => (
                "it closed the connection before the end of its answer",
                "its log says whether a process has crashed, was killed or met request_terminate_timeout",
            ),
            Trouble::Refused => ("it said that it does not answer", "its log says why"),
            Trouble::Garbage => (
                "what it sent is no answer by FastCGI",
                "is this the address of php-fpm, and not of a web server?",
            ),
            Trouble::Head => (
                "the headers of its answer are larger than 64K",
                "which page sets so many headers or cookies?",
            ),
        }
    }
}
