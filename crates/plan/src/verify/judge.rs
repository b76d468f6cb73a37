//! A measured step → its verdict: the goal is met, missed, or the client could not measure.

use super::failures::{FailureKind, Responses};
use serde::Serialize;

/// Share of the goal that the lateness of the client may reach; more and the latency is its own.
const LAG_SHARE_MAX: f64 = 0.2;
/// CPU time per second of the client's only thread, from which it is saturated.
const CLIENT_CPU_MAX: f64 = 0.9;
/// Share of the connections that a rate may need before they can be the limit.
const CONNECTIONS_SHARE: f64 = 0.5;
/// Responses without which a percentile of 99 says little.
const RESPONSES_MIN: u64 = 100;

/// Latency and errors that a rate must meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// Share of the requests, such as 0.99.
    pub quantile: f64,
    /// Latency that this share does not exceed, s.
    pub latency: f64,
    /// Highest share of failed requests.
    pub errors: f64,
}

/// Reason why a step ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyEnd {
    /// Too many requests waited.
    Backlog,
    /// More than half of the requests failed.
    Failures,
    /// The server accepts no connections.
    Dead,
    /// Ctrl-C.
    Interrupted,
}

/// Figures of the client itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Client {
    /// Lateness of the client at the goal's share of its requests, s.
    pub lag: f64,
    /// CPU time per second of its thread.
    pub cpu: f64,
    /// Highest number of requests in flight.
    pub in_flight: usize,
    /// Maximum number of requests in flight.
    pub connections: usize,
}

/// A measured step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Requests per second that were due.
    pub rate: f64,
    /// Number of complete responses, timeouts not included.
    pub responses: u64,
    /// Latency of half of the requests, from the moment at which they were due, s.
    pub p50: Option<f64>,
    /// Latency at the goal's share of the requests, s.
    pub latency: Option<f64>,
    /// The same without the time in which a request waited for a connection of the client, s.
    pub on_connection: Option<f64>,
    /// Share of failed requests.
    pub errors: f64,
    /// Share of responses with another status than the recorded one.
    pub other_status: f64,
    /// Responses by status, and failures by kind.
    #[serde(flatten)]
    pub kinds: Responses,
    /// Cores that the server used; `None`: unknown.
    pub server_cores: Option<f64>,
    /// The client.
    pub client: Client,
    /// Reason for an early end.
    pub ended: Option<EarlyEnd>,
}

/// Reason why a step missed the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// Latency.
    Latency,
    /// Errors.
    Errors,
    /// The requests that wait grew without end.
    Backlog,
}

/// Limit of the client that makes a step useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientLimit {
    /// It sent requests too late.
    Late,
    /// It had no CPU time left.
    Cpu,
    /// It had no free connection.
    Connections,
    /// It did not read the heads of the responses.
    Head,
}

/// Verdict about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// The server meets the goal.
    Met,
    /// The server misses it.
    Missed(Miss),
    /// The client was the limit: the step says nothing about the server.
    ClientLimited(ClientLimit),
    /// The server accepts no connections.
    Dead,
    /// The server sends no response.
    Silent,
    /// Ctrl-C.
    Interrupted,
}

/// Judges a step. `light` is the usual response time at a light load, s; `None`: unknown.
pub fn judge(step: &Measured, goal: &Goal, light: Option<f64>) -> Verdict {
    match step.ended {
        Some(EarlyEnd::Interrupted) => return Verdict::Interrupted,
        Some(EarlyEnd::Dead) => return Verdict::Dead,
        _ => {}
    }
    // A saturated client also makes its requests late, so its own limits come first.
    let client = &step.client;
    if client.cpu > CLIENT_CPU_MAX {
        return Verdict::ClientLimited(ClientLimit::Cpu);
    }
    if client.lag > LAG_SHARE_MAX * goal.latency {
        return Verdict::ClientLimited(ClientLimit::Late);
    }
    if step.kinds.is_silent() {
        return Verdict::Silent;
    }
    if step.ended == Some(EarlyEnd::Failures) || step.errors > goal.errors {
        if step.kinds.most_frequent() == Some(FailureKind::HeadLimit) {
            return Verdict::ClientLimited(ClientLimit::Head);
        }
        return Verdict::Missed(Miss::Errors);
    }
    let is_late = step.latency.is_none_or(|latency| latency > goal.latency);
    if !is_late && step.ended.is_none() {
        return Verdict::Met;
    }
    // With all connections busy, requests wait in the client. If the responses themselves come in
    // time, more connections would have been served.
    // A fast server that is saturated also fills all connections in time; then these are more than
    // it needs at this rate (Little's law).
    let needed = light.map_or(f64::INFINITY, |time| step.rate * time);
    let is_full = client.in_flight >= client.connections
        && needed > CONNECTIONS_SHARE * client.connections as f64;
    if is_full && step.on_connection.is_some_and(|latency| latency <= goal.latency) {
        return Verdict::ClientLimited(ClientLimit::Connections);
    }
    if step.ended == Some(EarlyEnd::Backlog) {
        return Verdict::Missed(Miss::Backlog);
    }
    Verdict::Missed(Miss::Latency)
}

impl Verdict {
    /// Whether the step may have been bad by chance: a short stall, with few responses.
    pub(super) fn is_doubtful(self) -> bool {
        matches!(self, Verdict::Missed(Miss::Latency | Miss::Errors) | Verdict::Silent)
    }
}

impl Measured {
    /// Whether the responses are too few for a percentile.
    pub fn is_short(&self) -> bool {
        self.responses < RESPONSES_MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: Goal = Goal { quantile: 0.99, latency: 0.25, errors: 0.001 };

    fn good() -> Measured {
        let client = Client { lag: 0.001, cpu: 0.2, in_flight: 3, connections: 64 };
        Measured {
            rate: 100.0,
            responses: 1000,
            p50: Some(0.01),
            latency: Some(0.2),
            on_connection: Some(0.2),
            client,
            ..Measured::default()
        }
    }

    #[test]
    fn each_limit_has_its_verdict() {
        let client = |change: fn(&mut Client)| {
            let mut step = Measured { latency: Some(0.3), ..good() };
            change(&mut step.client);
            step
        };
        let failing = |kind| {
            let failures = [(FailureKind::Refused, 3), (kind, 5)].into();
            let kinds = Responses { failures, ..Responses::default() };
            Measured { errors: 0.002, kinds, ..good() }
        };
        let silent = |kind, statuses: &[(u16, u64)]| {
            let statuses = statuses.iter().copied().collect();
            let kinds = Responses { failures: [(kind, 50)].into(), statuses, unusual: 0 };
            Measured { errors: 1.0, kinds, ..good() }
        };
        let late = Measured { latency: Some(0.3), on_connection: Some(0.3), ..good() };
        for (step, expected) in [
            (good(), Verdict::Met),
            (Measured { latency: Some(0.25), ..good() }, Verdict::Met),
            (late.clone(), Verdict::Missed(Miss::Latency)),
            (Measured { latency: None, ..good() }, Verdict::Missed(Miss::Latency)),
            (Measured { errors: 0.002, ..good() }, Verdict::Missed(Miss::Errors)),
            (Measured { ended: Some(EarlyEnd::Failures), ..good() }, Verdict::Missed(Miss::Errors)),
            (silent(FailureKind::Timeout, &[]), Verdict::Silent),
            (silent(FailureKind::Closed, &[]), Verdict::Silent),
            (silent(FailureKind::Timeout, &[(200, 1)]), Verdict::Missed(Miss::Errors)),
            (silent(FailureKind::CutOff, &[]), Verdict::Missed(Miss::Errors)),
            (failing(FailureKind::Malformed), Verdict::Missed(Miss::Errors)),
            (failing(FailureKind::HeadLimit), Verdict::ClientLimited(ClientLimit::Head)),
            (Measured { ended: Some(EarlyEnd::Backlog), ..late }, Verdict::Missed(Miss::Backlog)),
            (Measured { ended: Some(EarlyEnd::Dead), ..good() }, Verdict::Dead),
            (Measured { ended: Some(EarlyEnd::Interrupted), ..good() }, Verdict::Interrupted),
            (client(|c| c.cpu = 0.95), Verdict::ClientLimited(ClientLimit::Cpu)),
            (client(|c| c.lag = 0.06), Verdict::ClientLimited(ClientLimit::Late)),
            (client(|c| c.in_flight = 64), Verdict::ClientLimited(ClientLimit::Connections)),
        ] {
            assert_eq!(judge(&step, &GOAL, None), expected, "{step:?}");
        }
    }

    /// 64 connections are enough for 1,000 requests/s of 1 ms, and too few for those of 100 ms.
    #[test]
    fn connections_are_no_limit_if_the_server_needs_few() {
        let mut step = Measured { rate: 1000.0, latency: Some(0.3), ..good() };
        step.client.in_flight = 64;
        let verdict = |light| judge(&step, &GOAL, Some(light));
        assert_eq!(verdict(0.001), Verdict::Missed(Miss::Latency));
        assert_eq!(verdict(0.1), Verdict::ClientLimited(ClientLimit::Connections));
    }

    /// A busy client whose responses are in time still cannot be trusted: its clock may be late.
    #[test]
    fn saturated_client_is_no_success() {
        let mut step = good();
        step.client.cpu = 0.99;
        assert_eq!(judge(&step, &GOAL, None), Verdict::ClientLimited(ClientLimit::Cpu));
    }
}
