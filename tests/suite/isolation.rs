//! The checkpoint model: no state leaks from a request into the next, regardless of its actions and
//! its end. No two requests draw the same random numbers.
//!
//! The items that try to leak, one thing each, are in tests/apps/isolation/items.

mod beside;
mod clients;
mod connection_fuzzer;
mod connections;
mod descendants;
mod ends;
mod files;
mod kinds;
mod large;
mod leaks;
mod memory;
mod outside;
mod resets;
mod signals;
mod snmp;
mod stage;
mod tokens;
mod unseen;
mod visitors;
