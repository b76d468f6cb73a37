//! parse → submit: the body of an incoming request, for all protocols.
//!
//! One type for all protocols, without a box and without a copy. The cost for HTTP is a check of
//! the variant.

use super::fastcgi::pipe::Stdin;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// Received over HTTP/1.1 or HTTP/2.
    Http(Incoming),
    /// Received over FastCGI.
    FastCgi(Stdin),
}

/// The client aborted the body, or sent invalid data.
#[derive(Debug)]
pub(crate) struct Broken;

impl From<Incoming> for RequestBody {
    fn from(body: Incoming) -> RequestBody {
        RequestBody::Http(body)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            RequestBody::Http(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|f| f.map_err(|_| Broken)))
            }
            RequestBody::FastCgi(stdin) => stdin.poll(cx).map(|piece| match piece {
                Some(Ok(bytes)) => Some(Ok(Frame::data(bytes))),
                Some(Err(())) => Some(Err(Broken)),
                None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Http(body) => body.is_end_stream(),
            RequestBody::FastCgi(stdin) => stdin.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Http(body) => body.size_hint(),
            RequestBody::FastCgi(stdin) => {
                stdin.declared().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}
