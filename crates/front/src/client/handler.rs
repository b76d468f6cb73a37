//! What the stages behind this room are to it: something that answers a request.

use super::connection::ConnectionState;
use super::request_body::RequestBody;
use super::screen::Note;
use http::{Request, Response};
use std::rc::Rc;

/// What answers a request; the [`Note`] is what hyper does not tell of it.
///
/// A request's future is moved to where it lives before it runs, so that it holds the request once and nothing around it.
pub(crate) trait Handler<B>:
    Fn(Rc<ConnectionState>, Request<RequestBody>, Note) -> Self::Answering + Copy + 'static
{
    type Answering: Future<Output = Response<B>> + 'static;
}

impl<B, H, F> Handler<B> for H
where
    H: Fn(Rc<ConnectionState>, Request<RequestBody>, Note) -> F + Copy + 'static,
    F: Future<Output = Response<B>> + 'static,
{
    type Answering = F;
}
