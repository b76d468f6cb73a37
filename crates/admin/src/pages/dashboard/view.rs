//! Input and output of every page of the dashboard.

use crate::query::Query;
use crate::queue_periods::QueueHistory;
use crate::range::{Known, Range, Resolved, Span};
use crate::sources::Sources;
use http::StatusCode;
use maud::{Markup, html};
use std::cell::OnceCell;

/// Shown in place of figures.
pub(super) const NOT_MEASURED: &str =
    "Requests are not measured: insight is disabled in the settings.";

/// Input of a page.
pub(super) struct View<'a> {
    pub(super) sources: &'a Sources,
    pub(super) query: &'a Query,
    /// Current time in seconds since 1970.
    pub(super) now: u64,
    /// Selected time range.
    pub(super) range: Range,
    known: OnceCell<Known>,
}

impl<'a> View<'a> {
    pub(super) fn new(sources: &'a Sources, query: &'a Query, now: u64, range: Range) -> View<'a> {
        View { sources, query, now, range, known: OnceCell::new() }
    }

    /// Returns the times that a range can refer to. Reads the server's status once.
    pub(super) fn known(&self) -> &Known {
        self.known.get_or_init(|| self.sources.known(self.now))
    }

    /// Returns the figures of queues now and in the last minutes.
    pub(super) fn queue_history(&self) -> QueueHistory {
        let host = &self.sources.host;
        QueueHistory::new(host.queue_minutes(), self.now, host.status().queues)
    }

    /// Returns the selected range, or this one if the query has none.
    pub(super) fn range_or(&self, span: Span) -> Range {
        self.range.or(span)
    }

    /// Returns the times of a range.
    pub(super) fn resolve(&self, range: &Range) -> Resolved {
        range.resolve(self.known())
    }
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
