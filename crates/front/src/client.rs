//! accept, parse: client connections, from the listening socket to a parsed head.
//!
//! - `listeners` opens the addresses. `accept` accepts connections while there is room.
//!   `thread_balancer` selects the thread of a connection if the front has several threads.
//! - `connection` is the state of one connection, `registry` has all of them.
//! - `serve` determines the ends and the protocol of a connection, over a `socket`. `proxy_header`
//!   reads the `peer_info` from a proxy's header.
//! - `http1` runs hyper's HTTP/1.1 on top of `io_observer`, the socket that hyper gets, and
//!   `head_filter`, which inspects the bytes of heads first.
//! - `http2` does the same for HTTP/2, with `frames` and `streams`.
//! - `fastcgi` accepts requests from web servers in place of php-fpm.
//! - `request_body` is the request body for all of these protocols.
//! - `handler` is the interface to the code that answers a request.
//!
//! Imports `shared`, `exchange` (responses to slow clients), `tls` and `runtime`.

pub(crate) mod accept;
pub(crate) mod connection;
pub(crate) mod fastcgi;
mod frames;
mod handler;
pub(crate) mod head_filter;
mod http1;
mod http2;
mod io_observer;
pub mod listeners;
pub(crate) mod peer_info;
pub mod proxy_header;
mod refused_head;
pub(crate) mod registry;
pub(crate) mod request_body;
pub(crate) mod serve;
mod socket;
mod streams;
pub(crate) mod thread_balancer;
