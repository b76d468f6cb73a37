//! Requests of an `[[intake]]` → jobs: the payload, and the limit of those that wait.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use samovar_channel::{NewJob, PAYLOAD_BYTES_MAX, Push, PushReply, TraceContext};
use samovar_front::{IntakeCell, IntakeDone, IntakeError, IntakeRequest};
use samovar_jobs::Jobs;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum bytes of all requests that wait for the store. The store writes them in groups.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Bytes of a waiting request in addition to its payload.
const REQUEST_BYTES: usize = 512;

/// Stores the requests of the front as jobs from now on.
pub(crate) fn connect(cell: &IntakeCell, jobs: Option<&Jobs>) {
    let Some(jobs) = jobs.cloned() else { return };
    let waiting = Arc::new(AtomicUsize::new(0));
    cell.set(Box::new(move |request, done| take(&jobs, &waiting, request, done)));
}

fn take(jobs: &Jobs, waiting: &Arc<AtomicUsize>, request: IntakeRequest, done: IntakeDone) {
    let queue = request.queue.clone();
    let trace =
        TraceContext { traceparent: request.traceparent.clone(), ..TraceContext::default() };
    let payload = payload(request);
    if payload.len() > PAYLOAD_BYTES_MAX {
        return done(Err(IntakeError::TooLarge));
    }
    let Some(share) = Share::take(waiting, REQUEST_BYTES + payload.len()) else {
        return done(Err(IntakeError::Busy));
    };
    let push = Push { queue, jobs: vec![NewJob { payload, trace, ..NewJob::default() }] };
    jobs.push(push, move |reply| {
        drop(share);
        done(match reply {
            PushReply::Stored(_) => Ok(()),
            PushReply::Refused(_) => Err(IntakeError::Busy),
            PushReply::Wrong(_) | PushReply::Depth(_) => Err(IntakeError::NoQueue),
        });
    });
}

/// Part of [`WAITING_BYTES_MAX`], returned when it is dropped.
struct Share(Arc<AtomicUsize>, usize);

impl Share {
    fn take(waiting: &Arc<AtomicUsize>, bytes: usize) -> Option<Share> {
        let before = waiting.fetch_add(bytes, Ordering::Relaxed);
        let share = Share(Arc::clone(waiting), bytes);
        (before + bytes <= WAITING_BYTES_MAX).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Returns the payload of the job: JSON. A body that is not UTF-8 is encoded.
fn payload(request: IntakeRequest) -> String {
    let IntakeRequest { method, path, query, headers, body, client, .. } = request;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Map<String, Value> =
        headers.into_iter().map(|(name, value)| (name, text(&value).into())).collect();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut payload = json!({
        "time": since.as_secs_f64(),
        "method": method,
        "path": text(&path),
        "query": text(&query),
        "client": client.to_string(),
        "headers": headers,
    });
    match String::from_utf8(body) {
        Ok(body) => payload["body"] = body.into(),
        Err(body) => payload["body_base64"] = STANDARD.encode(body.as_bytes()).into(),
    }
    payload.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &[u8]) -> IntakeRequest {
        IntakeRequest {
            queue: "clicks".to_owned(),
            method: "POST".to_owned(),
            path: b"/track".to_vec(),
            query: b"a=1&b=%20".to_vec(),
            headers: vec![("referer".to_owned(), b"http://x/\xff".to_vec())],
            body: body.to_vec(),
            client: std::net::Ipv4Addr::LOCALHOST.into(),
            traceparent: String::new(),
        }
    }

    #[test]
    fn payload_has_the_parts_of_the_request() {
        let payload: Value = serde_json::from_str(&payload(request("ä\0".as_bytes()))).unwrap();
        assert_eq!(payload["method"], "POST");
        assert_eq!(payload["query"], "a=1&b=%20");
        assert_eq!(payload["headers"], json!({ "referer": "http://x/\u{fffd}" }));
        assert_eq!((&payload["body"], &payload["client"]), (&json!("ä\0"), &json!("127.0.0.1")));
        assert!(payload["time"].as_f64() > Some(1.7e9));
        assert_eq!(payload.get("body_base64"), None);
    }

    #[test]
    fn body_that_is_not_text_is_encoded() {
        let payload: Value = serde_json::from_str(&payload(request(b"\xff\0"))).unwrap();
        assert_eq!(payload["body_base64"], "/wA=");
        assert_eq!(payload.get("body"), None);
    }

    #[test]
    fn waiting_bytes_are_bounded() {
        let waiting = Arc::new(AtomicUsize::new(0));
        let half = WAITING_BYTES_MAX / 2;
        let first = Share::take(&waiting, half);
        let second = Share::take(&waiting, half);
        assert!(first.is_some() && second.is_some());
        assert!(Share::take(&waiting, 1).is_none());
        drop(first);
        assert!(Share::take(&waiting, half).is_some());
        drop(second);
        assert_eq!(waiting.load(Ordering::Relaxed), 0);
    }
}
