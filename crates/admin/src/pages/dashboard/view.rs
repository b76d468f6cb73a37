//! Input and output of every page of the dashboard.

use crate::query::Query;
use crate::sources::Sources;
use http::StatusCode;
use maud::{Markup, html};

/// Shown in place of figures.
pub(super) const NOT_MEASURED: &str =
    "Requests are not measured: insight is disabled in the settings.";

/// Input of a page.
pub(super) struct View<'a> {
    pub(super) sources: &'a Sources,
    pub(super) query: &'a Query,
    /// Current time in seconds since 1970.
    pub(super) now: u64,
}

/// A rendered page.
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) main: Markup,
    pub(super) status: StatusCode,
}

impl Shown {
    pub(super) fn new(title: impl Into<String>, main: Markup) -> Shown {
        Shown { title: title.into(), main, status: StatusCode::OK }
    }

    pub(super) fn not_found(title: &str, why: &str) -> Shown {
        let main = html! { h1 { (title) } p.empty { (why) } };
        Shown { title: title.to_owned(), main, status: StatusCode::NOT_FOUND }
    }
}
