//! Commands other than `serve`: each inspects settings or queries a server, prints the result, and
//! ends.

pub(crate) mod check;
pub(crate) mod reload;
pub(crate) mod routes;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod upgrade;
