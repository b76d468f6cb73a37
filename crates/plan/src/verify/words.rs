//! Goals, verdicts and reasons in words, with the action against each.

use super::judge::{ClientLimit, Goal, Miss, Verdict};
use super::search::End;

/// Action against a client that is the limit.
const CLIENT_HINT: &str = "run the command on another machine than the server, with idle cores";
/// Action against too few connections.
const CONNECTIONS_HINT: &str = "raise --connections: rate × response time of them are in use";

/// Action against heads that the client does not read.
const HEAD_HINT: &str = "leave out these requests: a head may have 128 fields and 64 KiB";

/// A time, such as `250 ms`.
pub(super) fn ms(seconds: f64) -> String {
    match 1e3 * seconds {
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

impl Goal {
    /// The percentile, such as `p99`.
    pub(super) fn percentile(&self) -> String {
        format!("p{}", (1e5 * self.quantile).round() / 1e3)
    }

    /// The goal, such as `p99 at most 250 ms, errors at most 0.1 %`.
    pub fn words(&self) -> String {
        format!(
            "{} at most {}, errors at most {} %",
            self.percentile(),
            ms(self.latency),
            (1e6 * self.errors).round() / 1e4
        )
    }
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed(Miss::Latency) => "missed: latency",
            Verdict::Missed(Miss::Errors) => "missed: errors",
            Verdict::Missed(Miss::Backlog) => "missed: waiting requests grow without end",
            Verdict::ClientLimited(limit) => limit.words(),
            Verdict::Dead => "the server accepts no connections",
            Verdict::Silent => "the server sends no response",
            Verdict::Interrupted => "interrupted",
        }
    }
}

impl ClientLimit {
    fn words(self) -> &'static str {
        match self {
            ClientLimit::Late => "void: this client sent requests too late",
            ClientLimit::Cpu => "void: this client had no CPU time left",
            ClientLimit::Connections => "void: all connections of this client were in use",
            ClientLimit::Head => "void: responses have heads above the limits of this client",
        }
    }
}

impl End {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            End::RateMax => "--max-rate is reached, and the goal is still met",
            End::RateMin => "the goal is missed even at 1 request/s",
            End::Client(limit) => limit.words().trim_start_matches("void: "),
            End::Dead => "the server accepts no connections",
            End::Silent => "the server sends no response",
            End::Interrupted => "Ctrl-C ended it",
            End::Time => "--time-limit is over",
            End::Steps => "the maximum number of steps is reached",
        }
    }

    /// An action, if there is one.
    pub fn hint(self) -> Option<&'static str> {
        match self {
            End::Client(ClientLimit::Connections) => Some(CONNECTIONS_HINT),
            End::Client(ClientLimit::Head) => Some(HEAD_HINT),
            End::Client(_) => Some(CLIENT_HINT),
            End::RateMin => Some("check the goal, and that the server responds to these requests"),
            End::Dead | End::Silent => Some("check that the server runs, and its log"),
            End::Time => Some("raise --time-limit, or begin at a higher rate with --start"),
            End::RateMax => Some("raise --max-rate to find the ceiling"),
            End::Interrupted | End::Steps => None,
        }
    }
}
