//! Interprets a collector's response: pure.
//!
//! [OTLP/HTTP](https://opentelemetry.io/docs/specs/otlp/#otlphttp-response): requests can be
//! retried after 429, 502, 503 and 504, but not after other errors. A success may be partial.

use prost::Message as _;
use samovar_outbound::Reply;
use samovar_outbound::waits::{retry_after, words};
use std::time::{Duration, SystemTime};

/// Meaning of the response for the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted, except for this number of records.
    Taken { rejected: u64, words: String },
    /// Rejected for good.
    Refused(String),
    /// May be accepted later, not before this duration if the response has it.
    Later(Option<Duration>),
}

/// `ExportTraceServiceResponse` and `ExportMetricsServiceResponse`, which have the same form.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

pub(super) fn judge(reply: &Reply, now: SystemTime) -> Verdict {
    match reply.status {
        200..=299 => {
            // A success with an unreadable body counts as accepted; nothing else is known.
            let response = Response::decode(&reply.body[..]).unwrap_or_default();
            let partial = response.partial_success.unwrap_or_default();
            let rejected = u64::try_from(partial.rejected).unwrap_or_default();
            Verdict::Taken { rejected, words: words(&partial.error_message) }
        }
        429 | 502 | 503 | 504 => {
            let asked = reply.retry_after.as_deref().and_then(|text| retry_after(text, now));
            Verdict::Later(asked)
        }
        status => {
            let message = Status::decode(&reply.body[..]).map(|s| s.message).unwrap_or_default();
            Verdict::Refused(format!("status {status} {}", words(&message)).trim_end().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PartialSuccess, Reply, Response, Status, Verdict, judge};
    use prost::Message as _;
    use std::time::{Duration, SystemTime};

    fn verdict(status: u16, retry_after: Option<&str>, body: &[u8]) -> Verdict {
        let retry_after = retry_after.map(str::to_owned);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        judge(&Reply { status, retry_after, body: body.to_vec() }, now)
    }

    fn taken(rejected: u64, words: &str) -> Verdict {
        Verdict::Taken { rejected, words: words.to_owned() }
    }

    #[test]
    fn verdict_follows_status_and_partial_success() {
        let partial = |rejected, text: &str| {
            let partial = PartialSuccess { rejected, error_message: text.to_owned() };
            Response { partial_success: Some(partial) }.encode_to_vec()
        };
        let status = Status { message: "no\nroom".to_owned() }.encode_to_vec();
        for (found, expected) in [
            (verdict(200, None, b""), taken(0, "")),
            (verdict(200, None, b"\xff\xffgarbage"), taken(0, "")),
            (verdict(200, None, &partial(3, "too old")), taken(3, "too old")),
            (verdict(200, None, &partial(-3, "")), taken(0, "")),
            (verdict(503, None, b""), Verdict::Later(None)),
            (verdict(429, Some("7"), b""), Verdict::Later(Some(Duration::from_secs(7)))),
            (
                verdict(503, Some("Sun, 06 Nov 1994 08:49:47 GMT"), b""),
                Verdict::Later(Some(Duration::from_secs(10))),
            ),
            (verdict(502, Some("soon"), b""), Verdict::Later(None)),
            (verdict(400, None, &status), Verdict::Refused("status 400 noroom".to_owned())),
            (verdict(500, None, b"<html>"), Verdict::Refused("status 500".to_owned())),
            (verdict(302, None, b""), Verdict::Refused("status 302".to_owned())),
        ] {
            assert_eq!(found, expected);
        }
    }
}
