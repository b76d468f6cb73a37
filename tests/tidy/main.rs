//! The tree is as its documents say, and keeps to its habits: all that can be checked without a server.

mod architecture;
mod dependencies;
mod examples;
mod licences;
mod links;
mod names;
mod rooms;
mod sizes;
mod sleeps;
mod stubs;
mod tree;
