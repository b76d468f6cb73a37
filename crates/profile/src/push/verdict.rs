//! Interprets Pyroscope's response: pure.
//!
//! The body of an error is the Connect protocol's: `{"code": "invalid_argument", "message": "…"}`.
//! Requests can be retried after status 429 (too many at the moment) and 500 or above (error in
//! Pyroscope).

use samovar_outbound::Reply;
use samovar_outbound::waits::{retry_after, words};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// Meaning of the response for the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Accepted.
    Taken,
    /// Rejected for good.
    Refused(String),
    /// May be accepted later, not before `asked` if the response has it.
    Later { asked: Option<Duration>, words: String },
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
}

pub(super) fn judge(reply: &Reply, now: SystemTime) -> Verdict {
    match reply.status {
        200..=299 => Verdict::Taken,
        408 | 429 | 500..=599 => {
            let asked = reply.retry_after.as_deref().and_then(|text| retry_after(text, now));
            Verdict::Later { asked, words: said(reply) }
        }
        404 => Verdict::Refused(format!("{}: it has no push API", said(reply))),
        _ => Verdict::Refused(said(reply)),
    }
}

fn said(reply: &Reply) -> String {
    let problem = serde_json::from_slice::<Problem>(&reply.body).ok();
    let message = problem.map(|problem| words(&problem.message)).unwrap_or_default();
    format!("status {} {message}", reply.status).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Verdict, judge};
    use samovar_outbound::Reply;
    use std::time::{Duration, SystemTime};

    fn verdict(status: u16, retry_after: Option<&str>, body: &str) -> Verdict {
        let retry_after = retry_after.map(str::to_owned);
        judge(&Reply { status, retry_after, body: body.into() }, SystemTime::UNIX_EPOCH)
    }

    fn later(seconds: Option<u64>, words: &str) -> Verdict {
        Verdict::Later { asked: seconds.map(Duration::from_secs), words: words.to_owned() }
    }

    #[test]
    fn verdict_follows_status_and_connect_error() {
        let refused = |words: &str| Verdict::Refused(words.to_owned());
        for (found, expected) in [
            (verdict(200, None, ""), Verdict::Taken),
            (verdict(200, None, "<html>"), Verdict::Taken),
            (
                verdict(400, None, r#"{"code":"invalid_argument","message":"too\nlarge"}"#),
                refused("status 400 toolarge"),
            ),
            (verdict(401, None, "no"), refused("status 401")),
            (verdict(302, None, "[]"), refused("status 302")),
            (verdict(404, None, ""), refused("status 404: it has no push API")),
            (
                verdict(429, Some("7"), r#"{"message":"slow down"}"#),
                later(Some(7), "status 429 slow down"),
            ),
            (verdict(503, None, r#"{"message":7}"#), later(None, "status 503")),
        ] {
            assert_eq!(found, expected);
        }
    }
}
