//! `samovar migrate from`: the configuration of another server → a commented `samovar.toml`, and
//! notes about everything that has no counterpart.
//!
//! - `draft`: the settings with the places that they come from, and the notes; `render` writes them
//! - `origin`, `units`, `glob`: places, sizes and times, regular expressions → patterns of paths
//! - `input`: files with a size limit, and their kinds
//! - one module per kind: `nginx`, `fpm`, `roadrunner`, `caddy`, `octane`, `htaccess`
//!
//! Nothing here is run or connected to, and no file is changed.

mod caddy;
mod convert;
mod directive;
mod draft;
mod fpm;
mod glob;
mod htaccess;
mod input;
mod nginx;
mod octane;
mod origin;
mod render;
mod roadrunner;
mod shared;
mod units;
mod yaml;

pub use convert::{Converted, Rejection, Validate, convert};
pub use draft::{Level, Note};
pub use input::FromError;
pub use origin::Origin;
pub use render::Written;
