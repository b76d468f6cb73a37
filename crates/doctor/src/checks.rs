//! The checks, one file per group.

mod application;
mod boot;
mod figures;
mod health;
mod opcache;
mod php;
mod requests;
mod server;
mod workers;

use crate::check::Check;

/// Returns all checks, in the order of their groups.
#[must_use]
pub fn all() -> Vec<Check> {
    [
        health::CHECKS,
        requests::CHECKS,
        workers::CHECKS,
        boot::CHECKS,
        opcache::CHECKS,
        php::CHECKS,
        application::CHECKS,
        server::CHECKS,
    ]
    .concat()
}
