//! What the stages behind this room are to it: something that answers a request.

use super::connection::ConnectionState;
use super::request_body::RequestBody;
use super::screen::Note;
use http::{Request, Response};
use std::rc::Rc;

/// What answers a request; the [`Note`] is what hyper does not tell of it.
pub(crate) trait Handler<B>:
    AsyncFn(&Rc<ConnectionState>, Request<RequestBody>, Note) -> Response<B> + Copy + 'static
{
}

impl<B, H> Handler<B> for H where
    H: AsyncFn(&Rc<ConnectionState>, Request<RequestBody>, Note) -> Response<B> + Copy + 'static
{
}
