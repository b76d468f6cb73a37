//! Control that selects the time range of a page and its comparison. It consists of links and a
//! form, so it needs no script.

use super::view::View;
use crate::format;
use crate::query::{Query, link};
use crate::range::{Against, Range, Resolved, Span, input};
use maud::{Markup, html};

/// Parameters of a page that its picker keeps.
const KEPT: [&str; 10] =
    ["name", "sort", "order", "find", "route", "group", "pool", "status", "min_ms", "text"];

/// Data of a page that has a range.
pub(super) struct Picker<'a> {
    pub(super) path: &'a str,
    pub(super) range: &'a Range,
    pub(super) resolved: &'a Resolved,
    /// Reason why a part of the period is missing; may be empty.
    pub(super) missing: &'a str,
    /// Whether the page compares.
    pub(super) compares: bool,
}

impl Picker<'_> {
    /// Returns the control, and the period in words.
    pub(super) fn show(&self, view: &View) -> Markup {
        let Resolved { period, against } = self.resolved;
        let length = format::span(period.seconds());
        html! {
            section #range data-part {
                (links(self.path, view.query, self.range))
                @if self.compares { (comparison(self.path, view.query, self.range)) }
                p.faint.small {
                    (period.in_words()) " (" (length) ")"
                    @if self.range.span == Span::Release {
                        @match &view.known().release {
                            Some((_, text)) => { ", since " (text) },
                            None => { ", since the start" },
                        }
                    }
                    @if self.compares {
                        @match against {
                            Ok(Some(other)) => { ", compared with " (other.in_words()) "." },
                            Ok(None) => ".",
                            Err(why) => { ". No comparison: " (why) "." },
                        }
                    } @else { "." }
                }
                @if !self.missing.is_empty() { p.small.missing { (self.missing) } }
            }
        }
    }
}

/// Returns the links to all ranges, and the form for a custom one.
pub(super) fn links(path: &str, query: &Query, range: &Range) -> Markup {
    let custom = match range.span {
        Span::Custom(from, to) => Some((input(from), to.map(input).unwrap_or_default())),
        _ => None,
    };
    let (from, to) = custom.clone().unwrap_or_default();
    html! {
        nav.choice.range aria-label="Time range" {
            @for (span, name) in Span::all() {
                a href=(address(path, query, &range.with_span(span)))
                    aria-current=[(span == range.span).then_some("true")] { (name) }
            }
            details open[custom.is_some()] {
                summary { "Custom" }
                form.ask action=(path) data-range {
                    @for (name, value) in kept(query) {
                        input type="hidden" name=(name) value=(value);
                    }
                    @if query.has("compare") {
                        input type="hidden" name="compare" value=(range.against.key());
                    }
                    label { "From " input type="datetime-local" name="from" step="1"
                        value=(from) required; }
                    label { "to " input type="datetime-local" name="to" step="1" value=(to); }
                    span { "UTC" }
                    button { "Show" }
                }
            }
        }
    }
}

fn comparison(path: &str, query: &Query, range: &Range) -> Markup {
    html! {
        nav.choice.range aria-label="Comparison" {
            span { "Compared with" }
            @for (against, _, name) in Against::ALL {
                a href=(address(path, query, &range.with_against(against)))
                    aria-current=[(against == range.against).then_some("true")] { (name) }
            }
        }
    }
}

/// Returns the address of a page with a range; its other parameters stay.
pub(super) fn address(path: &str, query: &Query, range: &Range) -> String {
    let pairs: Vec<_> = kept(query).into_iter().chain(range.pairs()).collect();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    link(path, &pairs)
}

fn kept(query: &Query) -> Vec<(&'static str, String)> {
    let values = KEPT.into_iter().filter_map(|name| Some((name, query.get(name)?)));
    values.filter(|(_, value)| !value.is_empty()).collect()
}

/// Returns a message as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let text = crate::health::capitalised(text);
    if text.ends_with('.') { text } else { format!("{text}.") }
}
