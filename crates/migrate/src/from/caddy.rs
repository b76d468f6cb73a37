//! Caddyfile, also of FrankenPHP → draft.
//!
//! `tree` reads the file, `site` its sites, `handler` the directives that have a matcher, `access`
//! the control of access, `options` the block of global options.

mod access;
mod context;
mod handler;
mod matcher;
mod options;
mod site;
mod tree;

use super::draft::Draft;
use super::input::FromError;
use std::path::Path;

pub(crate) fn convert(draft: &mut Draft, file: &Path, text: &str) -> Result<(), FromError> {
    let tree = tree::read(file, text, draft)?;
    site::convert(draft, file, &tree);
    Ok(())
}
