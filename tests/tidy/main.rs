//! Checks that the tree matches its documents and conventions: all checks that need no server.

mod architecture;
mod boundary;
mod dependencies;
mod examples;
mod licences;
mod links;
mod names;
mod reference;
mod release;
mod rooms;
mod sizes;
mod sleeps;
mod stubs;
mod tree;
