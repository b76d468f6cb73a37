//! The tree is as its documents say, and keeps to its habits: all that can be checked without a server.

#[path = "tidy/architecture.rs"]
mod architecture;
#[path = "tidy/dependencies.rs"]
mod dependencies;
#[path = "tidy/examples.rs"]
mod examples;
#[path = "tidy/licences.rs"]
mod licences;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/sleeps.rs"]
mod sleeps;
#[path = "tidy/stubs.rs"]
mod stubs;
#[path = "tidy/tree.rs"]
mod tree;
