//! Releases of an application on one machine, as deploy tools lay them out:
//!
//! ```text
//! /srv/shop/
//!   releases/20261129T011530Z/   one folder for each release
//!   releases/.state.json         when each release was deployed, and whether it served
//!   shared/                      files that all releases use, such as uploads
//!   current -> releases/20261129T011530Z
//! ```
//!
//! [`deploy`] unpacks a release next to the others, runs the commands of the application, switches
//! the link and makes the server boot the release. Until the server has booted it, the old release
//! serves; if it does not boot, the link is switched back. [`rollback`] switches to the release
//! before.
//!
//! The data flows from [`Source`] through `unpack` into [`Site`] (names, link, lock, state); the
//! order of the steps is in `steps`.

#![allow(unsafe_code)] // pre_exec; the block states why it is sound.

mod command;
mod disk;
mod error;
mod interrupt;
mod picked;
mod remote;
mod site;
mod source;
mod state;
mod steps;
mod tree;
mod unpack;

pub use error::Error;
pub use remote::{Hosts, Outcome, deploy_to, rollback_on};
pub use site::{Name, Site};
pub use source::Source;
pub use state::{Release, Verdict, time};
pub use steps::{KEEP_MIN, Plan, Report, Server, deploy, rollback};
