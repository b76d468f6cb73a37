//! The checkpoint model: nothing leaks from a request into the next, whatever it did and however it
//! ended, and no two requests draw the same random numbers.
//!
//! The items that try to leak, one thing each, stand in tests/apps/isolation/items.

#[path = "isolation/beside.rs"]
mod beside;
#[path = "isolation/clients.rs"]
mod clients;
#[path = "isolation/ends.rs"]
mod ends;
#[path = "isolation/files.rs"]
mod files;
#[path = "isolation/kinds.rs"]
mod kinds;
#[path = "isolation/large.rs"]
mod large;
#[path = "isolation/leaks.rs"]
mod leaks;
#[path = "isolation/memory.rs"]
mod memory;
#[path = "isolation/outside.rs"]
mod outside;
#[path = "isolation/snmp.rs"]
mod snmp;
#[path = "isolation/stage.rs"]
mod stage;
#[path = "isolation/tokens.rs"]
mod tokens;
#[path = "isolation/unseen.rs"]
mod unseen;
#[path = "isolation/visitors.rs"]
mod visitors;
