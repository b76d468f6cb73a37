//! Tasks: concurrent queries of one request to several servers, in each execution model, against
//! real servers.

mod beside;
mod clients;
mod dns;
mod ends;
mod names;
mod odd;
mod peers;
mod pooled;
mod pools;
mod rules;
