//! Filter of the page Requests: status, route, duration, and a text.

use crate::query::Query;
use maud::{Markup, html};
use samovar_insight::RecentRequest;

/// Conditions from the address of the page. An empty field has no effect.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// `503`, `5xx` or `5`.
    status: String,
    route: String,
    /// Minimum duration in ms.
    min_ms: String,
    /// Part of the path, the id, the route, or of the class or message of an error.
    text: String,
}

impl Filter {
    pub(super) fn of(query: &Query) -> Filter {
        let field = |name| query.get(name).unwrap_or_default().trim().to_owned();
        Filter {
            status: field("status"),
            route: field("route"),
            min_ms: field("min_ms"),
            text: field("text"),
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.pairs().next().is_some()
    }

    /// Returns the fields that are set, for links.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("status", &*self.status),
            ("route", &*self.route),
            ("min_ms", &*self.min_ms),
            ("text", &*self.text),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    }

    /// Returns whether the request meets all conditions. A duration that is no number has no
    /// effect.
    pub(super) fn matches(&self, one: &RecentRequest) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text.to_lowercase());
        let has_text = || {
            [&one.path, &one.id, &one.route].into_iter().any(|text| has(text))
                || one.errors.iter().any(|error| {
                    has(&error.class)
                        || has(&error.message)
                        || error.previous.iter().any(|of| has(&of.class) || has(&of.message))
                })
        };
        let status = self.status.trim_end_matches(['x', 'X']);
        let min_ns = self.min_ms.parse().map_or(0.0, |ms: f64| ms * 1e6);
        #[allow(clippy::cast_precision_loss)] // Far below 2^52.
        let is_long = one.numbers.wall_ns as f64 >= min_ns;
        one.numbers.status.to_string().starts_with(status)
            && (self.route.is_empty() || *self.route == *one.route)
            && is_long
            && (self.text.is_empty() || has_text())
    }

    /// Returns the form.
    pub(super) fn form(&self) -> Markup {
        html! {
            form.ask action="/requests" {
                label { "Status " input name="status" size="4" placeholder="5xx"
                    value=(self.status); }
                label { "Route " input name="route" placeholder="all" value=(self.route); }
                label { "Minimum ms " input type="number" name="min_ms" min="0" step="any"
                    placeholder="0" value=(self.min_ms); }
                label { "Text " input type="search" name="text" placeholder="path, id, error"
                    value=(self.text); }
                button { "Show" }
                @if self.is_set() { " " a href="/requests" { "All requests" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;
    use crate::query::Query;
    use samovar_insight::{Finished, Numbers, RecentRequest};

    #[test]
    fn request_must_meet_all_conditions() {
        let numbers = Numbers { status: 503, wall_ns: 250_000_000, ..Numbers::default() };
        let finished =
            Finished { numbers, path: "/Cart/7", id: "ab12", method: "GET", ..Finished::default() };
        let one = RecentRequest::new(&finished, "cart {n}", &[]);
        for (query, expected) in [
            ("", true),
            ("status=503", true),
            ("status=5xx", true),
            ("status=5", true),
            ("status=500", false),
            ("status=4xx", false),
            ("status=abc", false),
            ("route=cart+%7Bn%7D", true),
            ("route=cart", false),
            ("min_ms=250", true),
            ("min_ms=250.5", false),
            ("min_ms=x", true),
            ("min_ms=NaN", false),
            ("text=cart%2F", true),
            ("text=AB1", true),
            ("text=order", false),
            ("status=503&min_ms=100&text=cart", true),
            ("status=503&min_ms=900&text=cart", false),
        ] {
            assert_eq!(Filter::of(&Query::new(query)).matches(&one), expected, "{query}");
        }
    }
}
