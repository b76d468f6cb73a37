//! The commands beside `serve`: each looks or asks, prints what it is told, and ends.

pub(crate) mod check;
pub(crate) mod reload;
pub(crate) mod routes;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod upgrade;
