//! Control that selects the time range of a page and its comparison. It consists of links and a
//! form, so it needs no script.

use super::view::View;
use crate::format;
use crate::known_releases::{KnownRelease, Label};
use crate::query::{Query, link};
use crate::range::{Against, Known, Range, Resolved, Span, input};
use maud::{Markup, html};

/// Maximum number of releases in the list, the last ones.
const RELEASES_MAX: usize = 20;

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
                (links(self.path, view.query, self.range, view.known()))
                (releases(self, view))
                @if self.compares { (comparison(self.path, view.query, self.range)) }
                p.faint.small {
                    (period.in_words()) " (" (length) ")"
                    (self.release(view.known()))
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

impl Picker<'_> {
    /// Returns the release of the range, in words.
    fn release(&self, known: &Known) -> String {
        let of = |found: Option<&KnownRelease>| found.map(|one| one.text.clone());
        match self.range.span {
            Span::Release => match of(known.release()) {
                Some(text) => format!(", since {text}"),
                None => ", since the start".to_owned(),
            },
            Span::PreviousRelease => {
                of(known.previous_release()).map_or_else(String::new, |text| format!(", {text}"))
            }
            Span::Named(label) => format!(", release {}", label.text()),
            _ => String::new(),
        }
    }
}

/// Returns a form that selects a release by its label; nothing if no release has one.
fn releases(picker: &Picker, view: &View) -> Markup {
    let Picker { path, range, compares, .. } = *picker;
    let mut labels: Vec<(Label, u64)> = Vec::new();
    for one in view.known().releases.iter().rev().filter(|one| !one.is_momentary()) {
        let Some(label) = Label::new(&one.label) else { continue };
        if labels.len() < RELEASES_MAX && !labels.iter().any(|(known, _)| *known == label) {
            labels.push((label, one.from));
        }
    }
    let is_named =
        matches!(range.span, Span::Named(_)) || matches!(range.against, Against::Named(_));
    html! {
        @if !labels.is_empty() {
            details.releases open[is_named] {
                summary { "Releases" }
                ul {
                    @for (label, from) in &labels {
                        @let span = Span::Named(*label);
                        @let against = Against::Named(*label);
                        li {
                            a.name href=(address(path, view.query, &range.with_span(span)))
                                aria-current=[(span == range.span).then_some("true")]
                                { (label.text()) }
                            " " span.faint { "since " (format::moment(*from)) }
                            @if compares {
                                " " a href=(address(path, view.query, &range.with_against(against)))
                                    aria-current=[(against == range.against).then_some("true")]
                                    { "compare" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the links to all ranges, and the form for a custom one.
pub(super) fn links(path: &str, query: &Query, range: &Range, known: &Known) -> Markup {
    let has_previous = known.previous_release().is_some();
    let spans = Span::all().filter(|(span, _)| *span != Span::PreviousRelease || has_previous);
    let custom = match range.span {
        Span::Custom(from, to) => Some((input(from), to.map(input).unwrap_or_default())),
        _ => None,
    };
    let (from, to) = custom.clone().unwrap_or_default();
    html! {
        nav.choice.range aria-label="Time range" {
            @for (span, name) in spans {
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
