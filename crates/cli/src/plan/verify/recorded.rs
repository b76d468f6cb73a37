//! Recorded requests of a running server (`samovar record`). They are sent as they are recorded:
//! without secret values, unless the recording keeps them.

use super::targets::{Requests, Weighted, literal};
use crate::commands::record::decoded;
use crate::control_client::{self, printable, understand};
use anyhow::{Result, bail};
use samovar_load::Target;
use samovar_wire::{
    RecordAction, RecordQuestion, RecordResponse, RecordedRequest, Refused, Request,
};
use std::path::Path;

/// Returns the recorded requests of the server. Each counts once: the recording is a sample.
pub(crate) fn collect(control: &Path) -> Result<Requests> {
    let mut requests = Requests::default();
    let list = ask(control, RecordAction::List, None)?;
    let mut redacted = 0_u64;
    for one in list.requests {
        if one.is_cut {
            requests.leave_out("the body was too long to be recorded", 1);
            continue;
        }
        let Ok(found) = ask(control, RecordAction::Show, Some(one.id)) else {
            requests.leave_out("dropped from the recording meanwhile", 1);
            continue;
        };
        for recorded in found.requests {
            redacted += u64::from(!recorded.redacted.is_empty());
            requests.add(weighted(recorded));
        }
    }
    requests.words = format!("{} recorded", requests.all.len());
    if redacted > 0 {
        requests.notes.push(format!(
            "{redacted} requests have replaced secret values: pages for logged-in visitors respond \
             otherwise"
        ));
    }
    if list.recording.is_some_and(|one| one.failed || one.slow_ms.is_some()) {
        requests.notes.push(
            "the recording has slow or failed requests only: --mix history corrects the shares"
                .to_owned(),
        );
    }
    Ok(requests)
}

fn ask(control: &Path, action: RecordAction, id: Option<u64>) -> Result<RecordResponse> {
    let question = RecordQuestion { action, id, ..RecordQuestion::default() };
    let request = Request::Record(Box::new(question));
    let line = control_client::ask(control, &request, control_client::RESPONSE_LIMIT)?;
    if let Ok(refused) = understand::<Refused>(&line) {
        bail!(printable(&refused.error));
    }
    let response: RecordResponse = understand(&line)?;
    if let Some(error) = &response.error {
        bail!(printable(error));
    }
    Ok(response)
}

fn weighted(recorded: RecordedRequest) -> Weighted {
    let details = recorded.details.unwrap_or_default();
    let mut headers = details.headers;
    let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !has_host && !recorded.host.is_empty() {
        headers.push(("Host".to_owned(), recorded.host));
    }
    let target = Target {
        weight: 1.0,
        method: recorded.method,
        path: literal(&recorded.target),
        headers,
        body: decoded(&details.body),
        expected: Some(recorded.status).filter(|status| *status > 0),
    };
    Weighted { target, route: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_wire::RecordedDetails;

    #[test]
    fn recorded_request_keeps_host_and_body() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let details = RecordedDetails {
            headers: vec![header("accept", "*/*")],
            body: "aGVsbG8=".to_owned(),
            ..RecordedDetails::default()
        };
        let one = weighted(RecordedRequest {
            method: "POST".to_owned(),
            target: "/a?token=(redacted)".to_owned(),
            host: "shop.test".to_owned(),
            status: 302,
            details: Some(details),
            ..RecordedRequest::default()
        });
        assert_eq!(one.target.headers, [header("accept", "*/*"), header("Host", "shop.test")]);
        assert_eq!((one.target.body, one.target.expected), (b"hello".to_vec(), Some(302)));
        assert_eq!(one.target.path, "/a?token=(redacted)");
    }
}
