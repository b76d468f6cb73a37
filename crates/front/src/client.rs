//! accept, parse: client connections, from the listening socket to a parsed head.
//!
//! `listeners` opens the addresses, `accept` takes connections while there is room (`mates` says whose they are, where the front has several threads), `connection` is what the rest of the
//! front knows of one and `registry` all of them. `serve` finds out who is there and what is spoken, over a `socket`:
//! `proxy_header` reads what a proxy says of the `ends`. `http1` has hyper speak HTTP/1.1: above `watched`, the socket
//! that it is given, and `screen`, which looks at the bytes of heads first. `http2` does the same for HTTP/2, with
//! `frames` and `streams`; `fastcgi` stands where php-fpm stood. All of them have one kind of `request_body`. What answers a request is handed in (`handler`).
//! Imports `shared`, `exchange` (answers of slow clients), `tls` and `runtime`.

pub(crate) mod accept;
pub(crate) mod connection;
pub(crate) mod ends;
pub(crate) mod fastcgi;
mod frames;
mod handler;
mod http1;
mod http2;
pub mod listeners;
pub(crate) mod mates;
pub mod proxy_header;
pub(crate) mod registry;
pub(crate) mod request_body;
pub(crate) mod screen;
pub(crate) mod serve;
mod socket;
mod streams;
mod watched;
