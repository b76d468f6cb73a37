//! Configuration of nginx → draft.
//!
//! `lexer` and `tree` read the files, `site` collects the servers, `server` converts their
//! directives, `place` their locations, `access` the protected ones, `responses` redirects and
//! front controllers. An nginx location replaces the one around it, while tables of Samovar add up;
//! so the tables have the order in which nginx selects its locations.

mod access;
mod directives;
mod lexer;
mod location;
mod place;
mod responses;
mod server;
mod site;
mod tree;

pub(crate) use site::Site;

use super::draft::Draft;
use super::input::FromError;
use std::path::Path;

/// Converts a file. Returns the sites, whose PHP may be in php-fpm's pools.
pub(crate) fn convert(draft: &mut Draft, file: &Path, text: &str) -> Result<Vec<Site>, FromError> {
    let tree = tree::read(file, text, draft)?;
    Ok(server::convert(draft, &tree))
}
