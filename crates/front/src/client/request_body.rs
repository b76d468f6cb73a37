//! parse → submit: a request's body on its way in, whatever protocol it comes by.
//!
//! One type for all of them, without a box and without a copy: what HTTP's costs is a look at which it is.

use super::fastcgi::pipe::Stdin;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a request.
#[derive(Debug)]
pub(crate) enum RequestBody {
    /// By HTTP/1.1 or HTTP/2.
    Http(Incoming),
    /// By FastCGI.
    FastCgi(Stdin),
}

/// The client broke off, or sent something else.
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
