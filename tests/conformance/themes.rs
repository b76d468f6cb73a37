//! themes: the tables of cases, one file for each theme.

mod bodies;
mod cookies;
mod ending;
mod errors;
mod files;
mod headers;
mod methods;
mod multipart;
mod output;
mod paths;
mod query;
mod responses;
mod sessions;
mod settings;

use crate::case::Theme;

/// All themes, in execution order.
pub(crate) fn all() -> Vec<Theme> {
    vec![
        methods::theme(),
        query::theme(),
        bodies::theme(),
        multipart::theme(),
        headers::theme(),
        cookies::theme(),
        paths::theme(),
        responses::theme(),
        output::theme(),
        ending::theme(),
        sessions::theme(),
        errors::theme(),
        settings::theme(),
        files::theme(),
    ]
}
