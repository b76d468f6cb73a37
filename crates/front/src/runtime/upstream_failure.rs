//! Reasons why the php-fpm of a location sent no response, or an incomplete one, with their texts
//! for the log, the counters and the client.

/// Kind of a php-fpm failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFailure {
    /// All connections to it are in use, or too many requests wait for one.
    Full,
    /// Its name has no address.
    Unresolved,
    /// No server listens at its address, or the connection is not permitted.
    Unreachable,
    /// It accepted no connection in time.
    Unaccepted,
    /// It accepted the request, but sent no byte in time.
    Quiet,
    /// It exceeded the time limit of the whole request.
    Long,
    /// It closed the connection before the end of the response.
    Closed,
    /// It refused the request.
    Refused,
    /// Its response is not valid FastCGI.
    Garbage,
    /// The head of its response is too long.
    Head,
}

impl UpstreamFailure {
    /// All variants, in the order of their numbers.
    pub const ALL: [UpstreamFailure; 10] = [
        UpstreamFailure::Full,
        UpstreamFailure::Unresolved,
        UpstreamFailure::Unreachable,
        UpstreamFailure::Unaccepted,
        UpstreamFailure::Quiet,
        UpstreamFailure::Long,
        UpstreamFailure::Closed,
        UpstreamFailure::Refused,
        UpstreamFailure::Garbage,
        UpstreamFailure::Head,
    ];

    /// Name in lower case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            UpstreamFailure::Full => "full",
            UpstreamFailure::Unresolved => "unresolved",
            UpstreamFailure::Unreachable => "unreachable",
            UpstreamFailure::Unaccepted => "unaccepted",
            UpstreamFailure::Quiet => "quiet",
            UpstreamFailure::Long => "long",
            UpstreamFailure::Closed => "closed",
            UpstreamFailure::Refused => "refused",
            UpstreamFailure::Garbage => "garbage",
            UpstreamFailure::Head => "head",
        }
    }

    /// Description of the failure, and a hint.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            UpstreamFailure::Full => (
                "all fastcgi.connections_max connections in use, and fastcgi.queue_max or \
                 fastcgi.connect_timeout reached",
                "find the slow requests, raise fastcgi.connections_max above pm.max_children, or \
                 name several servers in fastcgi_pass",
            ),
            UpstreamFailure::Unresolved => (
                "host name has no address",
                "check with `getent ahosts` on this machine, or use an IP address in fastcgi_pass",
            ),
            UpstreamFailure::Unreachable => (
                "connection failed",
                "check that php-fpm runs, and that the server's user may write to its socket \
                 (listen.owner, listen.group)",
            ),
            UpstreamFailure::Unaccepted => (
                "no connection accepted within fastcgi.connect_timeout",
                "the listen queue of php-fpm is full: find its slow requests, or raise \
                 pm.max_children",
            ),
            UpstreamFailure::Quiet => (
                "no byte received within timeouts.response",
                "see the slow log of php-fpm (request_slowlog_timeout), or raise the timeout with \
                 timeouts.path",
            ),
            UpstreamFailure::Long => {
                ("time limit of the request exceeded", "raise timeouts.request or timeouts.path")
            }
            UpstreamFailure::Closed => (
                "connection closed before the end of the response",
                "see the log of php-fpm for crashes, kills and request_terminate_timeout",
            ),
            UpstreamFailure::Refused => ("request refused", "see the log of php-fpm"),
            UpstreamFailure::Garbage => (
                "response is not valid FastCGI",
                "check that the address belongs to php-fpm, not to a web server",
            ),
            UpstreamFailure::Head => (
                "response headers larger than 64K",
                "find the page that sets too many headers or cookies",
            ),
        }
    }
}
