//! Requests of an `[[intake]]`: stored as jobs without PHP.
//!
//! The body is received as for PHP, so the same limits of time and rate apply. It is complete
//! before the job is pushed. The task waits for the commit; the thread does not.

use super::context::RequestContext;
use super::upload::{self, Source, Upload};
use crate::client::request_body::RequestBody;
use crate::log::trace::{OwnHeader, TRACEPARENT};
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::runtime::job_intake::{IntakeError, IntakeRequest};
use crate::runtime::rejection::Rejection;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use samovar_config::{Intake, IntakeOverload, IntakeResponse};
use tokio::sync::oneshot;

/// `Retry-After` of a rejected request, in s.
const RETRY_S: u64 = 1;
/// A transparent image of one pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\
                     \x01\0\x01\0\0\x02\x02D\x01\0;";

/// Returns the `traceparent` that a script would get as a variable.
fn traceparent(context: &RequestContext<'_>, parts: &Parts) -> String {
    let own = context.traceparent.map(OwnHeader::value);
    let came = || {
        context.trace.filter(|trace| trace.came())?;
        Some(parts.headers.get(TRACEPARENT)?.as_bytes())
    };
    let value = own.or_else(came).unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

/// Stores the request as a job, and returns the intake's response.
pub(super) async fn take(
    context: &RequestContext<'_>,
    parts: &Parts,
    body: RequestBody,
    (intake, path, query): (&Intake, Vec<u8>, Option<&[u8]>),
) -> Result<Response<ResponseBody>, Failure> {
    let settings = &context.setup.settings;
    let source = Source::new(context.connection, settings, Some(intake.body_bytes_max), body);
    let body = match upload::receive(context, source, false).await? {
        Upload::Whole(body) => body,
        // The limit is below the size from which on a body is stored in a file.
        Upload::None | Upload::Spooled(..) | Upload::Live(_) => Vec::new(),
    };
    let headers = intake.headers.iter().filter_map(|name| {
        let value = parts.headers.get(name)?;
        Some((name.clone(), value.as_bytes().to_vec()))
    });
    let request = IntakeRequest {
        queue: intake.queue.clone(),
        method: parts.method.as_str().to_owned(),
        path,
        query: query.unwrap_or_default().to_vec(),
        headers: headers.collect(),
        body,
        client: context.client(),
        traceparent: traceparent(context, parts),
    };
    let counters = &context.connection.shared.counters.server;
    match push(context, request).await {
        Ok(()) => counters.intake_requests_total.add(1),
        Err(IntakeError::Busy) if intake.overload == IntakeOverload::Drop => {
            counters.intake_dropped_total.add(1);
        }
        Err(IntakeError::Busy) => return Err(Failure::Busy(Rejection::Intake, RETRY_S)),
        Err(IntakeError::TooLarge) => return Err(Failure::BodyTooLarge),
        Err(IntakeError::NoQueue) => return Err(Failure::Internal),
    }
    Ok(response(intake.response))
}

async fn push(context: &RequestContext<'_>, request: IntakeRequest) -> Result<(), IntakeError> {
    let Some(intake) = context.shared().common.intake.get() else {
        // A reload has added the first queue, which needs a restart.
        return Err(IntakeError::NoQueue);
    };
    let (tell, told) = oneshot::channel();
    let done = move |stored| {
        // The client may have left.
        let _ = tell.send(stored);
    };
    intake(request, Box::new(done));
    // Without a result, the thread of the queues has ended.
    told.await.unwrap_or(Err(IntakeError::Busy))
}

fn response(of: IntakeResponse) -> Response<ResponseBody> {
    let mut response = match of {
        IntakeResponse::Status(status) => {
            let mut response = Response::new(ResponseBody::empty());
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::NO_CONTENT);
            response
        }
        IntakeResponse::Gif => {
            let mut response = Response::new(ResponseBody::whole(Bytes::from_static(GIF)));
            let kind = HeaderValue::from_static("image/gif");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
    };
    let never = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, never);
    response
}
