//! The only place where failures become HTTP responses. Does not disclose internals to clients.

use crate::response::body::ResponseBody;
use crate::runtime::counters::Counters;
use crate::runtime::rejection::Rejection;
use crate::runtime::upstream_failure::UpstreamFailure;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use samovar_insight::End;

/// Reason why a request gets no response from a file or a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The reason is only logged.
    BadRequest(&'static str),
    BadBody,
    Forbidden,
    /// A symlink points outside the root.
    Outside,
    /// A directory without an index page.
    NoIndex,
    NotFound,
    /// Neither a file nor a front controller exists.
    NoPage,
    /// Contains the allowed methods.
    MethodNotAllowed(&'static str),
    BodyTimeout,
    BodyTooLarge,
    HeadTooLarge,
    TooManyHeaders,
    WorkerDied,
    BrokenResponse,
    /// The reason, and the number of seconds after which the client may retry.
    Busy(Rejection, u64),
    Overrun,
    /// The php-fpm of a location has not responded.
    Passed(UpstreamFailure),
    DiskFull,
    Internal,
    /// The status that a location specifies.
    Said(StatusCode),
}

impl Failure {
    /// Maps a php-fpm failure to the same failure of a worker: clients get the same response.
    fn alike(trouble: UpstreamFailure) -> Failure {
        match trouble {
            UpstreamFailure::Full => Failure::Busy(Rejection::Waited, 1),
            UpstreamFailure::Unaccepted | UpstreamFailure::Quiet | UpstreamFailure::Long => {
                Failure::Overrun
            }
            UpstreamFailure::Unresolved
            | UpstreamFailure::Unreachable
            | UpstreamFailure::Closed => Failure::WorkerDied,
            UpstreamFailure::Refused | UpstreamFailure::Garbage | UpstreamFailure::Head => {
                Failure::BrokenResponse
            }
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Failure::BadRequest(_) | Failure::BadBody => StatusCode::BAD_REQUEST,
            Failure::Forbidden | Failure::Outside | Failure::NoIndex => StatusCode::FORBIDDEN,
            Failure::NotFound | Failure::NoPage => StatusCode::NOT_FOUND,
            Failure::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Failure::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Failure::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::HeadTooLarge | Failure::TooManyHeaders => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Failure::WorkerDied | Failure::BrokenResponse => StatusCode::BAD_GATEWAY,
            Failure::Busy(..) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Overrun => StatusCode::GATEWAY_TIMEOUT,
            Failure::Passed(trouble) => Failure::alike(trouble).status(),
            Failure::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Failure::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::Said(status) => status,
        }
    }

    /// How the request ended, if the response status is not enough to show it.
    pub(crate) fn end(self) -> Option<End> {
        match self {
            Failure::WorkerDied => Some(End::Died),
            Failure::BrokenResponse => Some(End::Cut),
            Failure::Busy(..) => Some(End::Refused),
            Failure::Overrun => Some(End::TimedOut),
            Failure::Passed(trouble) => Failure::alike(trouble).end(),
            _ => None,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Failure::BadRequest(_) | Failure::BadBody => {
                "The server could not understand the request."
            }
            Failure::Forbidden | Failure::Outside | Failure::NoIndex => {
                "You do not have access to this page."
            }
            Failure::NotFound | Failure::NoPage => "There is no page at this address.",
            Failure::MethodNotAllowed(_) => "This page does not support this kind of request.",
            Failure::BodyTimeout => "The request did not arrive in time.",
            Failure::BodyTooLarge => "The request is larger than this server accepts.",
            Failure::HeadTooLarge => {
                "The headers of the request are larger than this server accepts."
            }
            Failure::TooManyHeaders => {
                "The request has more headers than this server accepts (limits.headers_max)."
            }
            Failure::WorkerDied | Failure::BrokenResponse => {
                "The application stopped while it was working on this page."
            }
            Failure::Busy(Rejection::Starting, _) => {
                "The server is starting. Please try again in a moment."
            }
            Failure::Busy(Rejection::Unread, _) => {
                "Too many responses wait to be read. Please try again in a moment."
            }
            Failure::Busy(Rejection::Spool, _) => {
                "The server has no room for the request now. Please try again in a moment."
            }
            Failure::Busy(..) => "The server is busy. Please try again in a moment.",
            Failure::Overrun => "The application did not respond in time.",
            Failure::Passed(trouble) => Failure::alike(trouble).sentence(),
            Failure::DiskFull => "The server has no space to store the request.",
            Failure::Internal => "Something went wrong on the server.",
            Failure::Said(StatusCode::NOT_FOUND) => Failure::NotFound.sentence(),
            Failure::Said(StatusCode::GONE) => "There is no longer a page at this address.",
            Failure::Said(status) if status.is_server_error() => {
                "The server cannot process this request now. Please try again later."
            }
            Failure::Said(_) => "The server does not accept this request.",
        }
    }

    /// Whether the connection must be closed. Either the client may still be sending a body that is
    /// not read, or the end of its request is ambiguous, and so is the start of the next one.
    pub(crate) fn closes_connection(self) -> bool {
        matches!(
            self,
            Failure::BadRequest(_)
                | Failure::BadBody
                | Failure::BodyTimeout
                | Failure::BodyTooLarge
                | Failure::DiskFull
                | Failure::Busy(Rejection::Spool, _)
        )
    }

    pub(crate) fn count(self, counters: &Counters) {
        match self {
            Failure::Busy(shed, _) => {
                counters.pool.rejected_total.add(1);
                counters.rejected[shed as usize].add(1);
            }
            Failure::Overrun => counters.pool.timeouts_total.add(1),
            _ => {}
        }
    }
}

/// Builds the response: HTML if the client accepts it, one line of text otherwise. `advice` is a
/// text for the operator and replaces the default sentence.
pub(crate) fn response(
    failure: &Failure,
    parts: &Parts,
    id: &HeaderValue,
    advice: Option<&str>,
) -> Response<ResponseBody> {
    if let Failure::BadRequest(reason) = failure {
        tracing::debug!(reason, id = id.to_str().unwrap_or_default(), "request rejected");
    }
    let status = failure.status();
    let is_browser = parts
        .headers
        .get(header::ACCEPT)
        .is_some_and(|accept| memchr::memmem::find(accept.as_bytes(), b"text/html").is_some());
    let id = id.to_str().unwrap_or_default();
    let sentence = advice.unwrap_or_else(|| failure.sentence());
    let (kind, text) = if is_browser {
        ("text/html; charset=utf-8", html(status, sentence, id))
    } else {
        ("text/plain; charset=utf-8", format!("{status}: {sentence}\n"))
    };
    let mut response = Response::new(ResponseBody::whole(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Failure::MethodNotAllowed(allowed) = failure {
        headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
    }
    if let Failure::Busy(_, seconds) = failure {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
    }
    if failure.closes_connection() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Response after a panic in the request's handler. It uses no state of the request.
pub(crate) fn sorry() -> Response<ResponseBody> {
    const TEXT: &str = "500 Internal Server Error: Something went wrong on the server.\n";
    let mut response = Response::new(ResponseBody::whole(TEXT.into()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The ID was validated or generated by `request_id` and needs no escaping.
fn html(status: StatusCode, sentence: &str, id: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{status}</title>\n\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;margin:15vh auto;\
         max-width:32rem;padding:0 1rem}}\
         small{{color:#777}}</style>\n<h1>{status}</h1>\n<p>{sentence}\n\
         <p><small>Request {id}</small>\n</html>\n"
    )
}
