//! The checkpoint model: nothing leaks from a request into the next, whatever it did and however it
//! ended, and no two requests draw the same random numbers.
//!
//! The items that try to leak, one thing each, stand in tests/apps/isolation/items.

mod beside;
mod clients;
mod ends;
mod files;
mod kinds;
mod large;
mod leaks;
mod memory;
mod outside;
mod snmp;
mod stage;
mod tokens;
mod unseen;
mod visitors;
