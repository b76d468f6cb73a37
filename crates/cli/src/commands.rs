//! Commands of one file each.

pub(crate) mod canary;
pub(crate) mod check;
pub(crate) mod queue;
pub(crate) mod record;
pub(crate) mod reload;
pub(crate) mod routes;
pub(crate) mod schedule;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod upgrade;
pub(crate) mod version;
