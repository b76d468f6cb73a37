//! The one place where what went wrong becomes an HTTP answer. Tells the client no internals.

use crate::answer::body::AnswerBody;
use crate::runtime::counters::Counters;
use crate::runtime::shed::Shed;
use crate::runtime::trouble::Trouble;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use samovar_insight::End;

/// Why a request gets no answer from file or worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The reason is for the log.
    BadRequest(&'static str),
    BadBody,
    Forbidden,
    /// A symlink leads out of the root.
    Outside,
    /// A directory without a page.
    NoIndex,
    NotFound,
    /// Neither file nor front controller.
    NoPage,
    /// The methods are those that are allowed.
    MethodNotAllowed(&'static str),
    BodyTimeout,
    BodyTooLarge,
    HeadTooLarge,
    WorkerDied,
    BrokenAnswer,
    /// Why, and after how many seconds the client may come again.
    Busy(Shed, u64),
    Overrun,
    /// The php-fpm of a location has not answered.
    Passed(Trouble),
    DiskFull,
    Internal,
    /// A location says so.
    Said(StatusCode),
}

impl Failure {
    /// What it would be, were it a worker that has not answered: clients are told the same.
    fn alike(trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Full => Failure::Busy(Shed::Waited, 1),
            Trouble::Unaccepted | Trouble::Quiet | Trouble::Long => Failure::Overrun,
            Trouble::Unresolved | Trouble::Unreachable | Trouble::Closed => Failure::WorkerDied,
            Trouble::Refused | Trouble::Garbage | Trouble::Head => Failure::BrokenAnswer,
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
            Failure::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Failure::WorkerDied | Failure::BrokenAnswer => StatusCode::BAD_GATEWAY,
            Failure::Busy(..) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Overrun => StatusCode::GATEWAY_TIMEOUT,
            Failure::Passed(trouble) => Failure::alike(trouble).status(),
            Failure::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
            Failure::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Failure::Said(status) => status,
        }
    }

    /// How the request ended, where the answer's status alone does not tell.
    pub(crate) fn end(self) -> Option<End> {
        match self {
            Failure::WorkerDied => Some(End::Died),
            Failure::BrokenAnswer => Some(End::Cut),
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
                "You may not see this page."
            }
            Failure::NotFound | Failure::NoPage => "There is no page at this address.",
            Failure::MethodNotAllowed(_) => "This page does not support that kind of request.",
            Failure::BodyTimeout => "The request did not arrive in time.",
            Failure::BodyTooLarge => "What you sent is larger than this server accepts.",
            Failure::HeadTooLarge => "The request's headers are larger than this server accepts.",
            Failure::WorkerDied | Failure::BrokenAnswer => {
                "The application stopped while it was working on this page."
            }
            Failure::Busy(Shed::Starting, _) => {
                "The server is starting. Please try again in a moment."
            }
            Failure::Busy(..) => "The server is busy. Please try again in a moment.",
            Failure::Overrun => "The application took too long to answer.",
            Failure::Passed(trouble) => Failure::alike(trouble).sentence(),
            Failure::DiskFull => "The server has no room for what you sent.",
            Failure::Internal => "Something went wrong on the server.",
            Failure::Said(StatusCode::NOT_FOUND) => Failure::NotFound.sentence(),
            Failure::Said(StatusCode::GONE) => "There is no page at this address any more.",
            Failure::Said(status) if status.is_server_error() => {
                "The server does not answer this now. Please try again later."
            }
            Failure::Said(_) => "The server does not answer this request.",
        }
    }

    /// The client may still be sending, and nobody will read it; or what it means is in doubt, and so is
    /// where its next request begins.
    pub(crate) fn closes_connection(self) -> bool {
        matches!(
            self,
            Failure::BadRequest(_)
                | Failure::BadBody
                | Failure::BodyTimeout
                | Failure::BodyTooLarge
                | Failure::DiskFull
        )
    }

    pub(crate) fn count(self, counters: &Counters) {
        match self {
            Failure::Busy(shed, _) => {
                counters.rejected.add(1);
                counters.shed[shed as usize].add(1);
            }
            Failure::Overrun => counters.timeouts.add(1),
            _ => {}
        }
    }
}

/// The answer: HTML for who asks for it, one line of text for others. `advice`: for whoever set the server up.
pub(crate) fn response(
    failure: &Failure,
    parts: &Parts,
    id: &HeaderValue,
    advice: Option<&str>,
) -> Response<AnswerBody> {
    if let Failure::BadRequest(reason) = failure {
        tracing::debug!(reason, id = id.to_str().unwrap_or_default(), "refused a request");
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
    let mut response = Response::new(AnswerBody::whole(text.into()));
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

/// For a request whose handling has panicked: nothing that was made for it is relied upon.
pub(crate) fn sorry() -> Response<AnswerBody> {
    const TEXT: &str = "500 Internal Server Error: Something went wrong on the server.\n";
    let mut response = Response::new(AnswerBody::whole(TEXT.into()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The id was checked or made by `request_id`: it needs no escaping.
fn html(status: StatusCode, sentence: &str, id: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{status}</title>\n\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32rem;padding:0 1rem}}\
         small{{color:#777}}</style>\n<h1>{status}</h1>\n<p>{sentence}\n\
         <p><small>Request {id}</small>\n</html>\n"
    )
}
