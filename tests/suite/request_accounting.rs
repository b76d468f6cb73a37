//! Request accounting: the figures of the admin listener in each execution model, compared with
//! measurements by the request itself.

mod behind;
pub(crate) mod bench;
mod clients;
mod endings;
mod errors;
mod instrumented;
mod memory;
mod php_figures;
mod planted_shop;
mod sampled;
mod statements;
mod truth;
mod unprintable;
mod waits;
mod ways;
