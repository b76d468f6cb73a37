//! Tasks: what one request asks of several others at once, in each execution model, against real servers.

#[path = "parallel/beside.rs"]
mod beside;
#[path = "parallel/clients.rs"]
mod clients;
#[path = "parallel/dns.rs"]
mod dns;
#[path = "parallel/ends.rs"]
mod ends;
#[path = "parallel/names.rs"]
mod names;
#[path = "parallel/odd.rs"]
mod odd;
#[path = "parallel/peers.rs"]
mod peers;
#[path = "parallel/pooled.rs"]
mod pooled;
#[path = "parallel/pools.rs"]
mod pools;
#[path = "parallel/rules.rs"]
mod rules;
