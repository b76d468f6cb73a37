//! The checkpoint model: every response equals, byte for byte, the first response of a fresh
//! process, regardless of other requests before.
//!
//! A *scene* is the visit of one new client with its own cookies. Each scene runs once with fresh
//! processes (nginx + php-fpm). Then scenes of five hundred requests run in random order, from two
//! clients at once, on a server that rolls back. `PRISTINE_SEED` repeats an order,
//! `PRISTINE_REQUESTS` makes it longer: `make nightly`.

mod connection;
mod differential;
mod dokuwiki;
mod script;
mod symfony;
mod wordpress;
