//! The interface to the later stages: a function that answers a request.

use super::connection::ConnectionState;
use super::head_filter::Note;
use super::request_body::RequestBody;
use http::{Request, Response};
use std::rc::Rc;

/// Answers a request. The [`Note`] contains details of the head that hyper does not pass on.
///
/// A request's future is moved to its final place before it runs. It holds the request once,
/// without anything around it.
pub(crate) trait Handler<B>:
    Fn(Rc<ConnectionState>, Request<RequestBody>, Note) -> Self::PendingResponse + Copy + 'static
{
    type PendingResponse: Future<Output = Response<B>> + 'static;
}

impl<B, H, F> Handler<B> for H
where
    H: Fn(Rc<ConnectionState>, Request<RequestBody>, Note) -> F + Copy + 'static,
    F: Future<Output = Response<B>> + 'static,
{
    type PendingResponse = F;
}
