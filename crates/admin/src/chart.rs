//! Charts as SVG: drawn here, without scripts, coloured by the style sheet in light and dark.
//!
//! All have the same size and margins, so that times stand below each other. Each says in words what it shows, for those
//! who do not see it; each column has a title that a pointer brings up.

mod axis;
mod bars;
mod flame;
mod heat;
mod lines;

pub(crate) use bars::{Part, bar, histogram, parts, span_bar};
pub(crate) use flame::{Flames, flames};
pub(crate) use heat::Heat;
pub(crate) use lines::{Layer, Lines};

use maud::{Markup, html};
use samovar_insight::store::Event;

/// A text from outside without what no document may hold, not even escaped.
pub(crate) fn without_controls(text: &str) -> String {
    let is_none = |c: char| c.is_control() || c == '\u{fffe}' || c == '\u{ffff}';
    text.chars().map(|c| if is_none(c) { '?' } else { c }).collect()
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 28.0;
/// Height of what is drawn on.
const TALL: f64 = HEIGHT - TOP - BOTTOM;
/// Width of what is drawn on.
const WIDE: f64 = WIDTH - LEFT - RIGHT;
/// Events drawn on one chart, the latest.
const EVENTS_MAX: usize = 40;

/// A span of time along the lower edge, seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Along {
    from: u64,
    to: u64,
}

impl Along {
    fn x(self, at: f64) -> f64 {
        let wide = self.to.saturating_sub(self.from).max(1) as f64;
        LEFT + (at - self.from as f64) / wide * WIDE
    }

    /// A line for each event, with what happened.
    fn events(self, events: &[Event]) -> Markup {
        let inside = events.iter().filter(|event| (self.from..self.to).contains(&event.at));
        let skipped = inside.clone().count().saturating_sub(EVENTS_MAX);
        html! {
            @for event in inside.skip(skipped) {
                @let x = self.x(event.at as f64);
                g class=(event_class(event)) {
                    title { (crate::human::clock(event.at)) " " (event.kind.name()) ": " (event.text) }
                    path d=(format!("M{x:.1} {TOP}V{:.1}", TOP + TALL)) {}
                    path.head d=(format!("M{:.1} {:.1}h10l-5 8z", x - 5.0, TOP - 9.0)) {}
                }
            }
        }
    }
}

/// How an event is drawn: what was meant, and what went wrong.
pub(crate) fn event_class(event: &Event) -> &'static str {
    use samovar_insight::store::EventKind;
    match event.kind {
        EventKind::Start
        | EventKind::Reload
        | EventKind::Config
        | EventKind::Recycle
        | EventKind::Stop => "event",
        _ => "event bad",
    }
}

/// The chart around what is drawn: its name, a sentence about it, and the picture.
fn figure(title: &str, note: &str, said: &str, drawn: &Markup, below: &Markup) -> Markup {
    html! {
        figure.chart {
            figcaption { h3 { (title) } @if !note.is_empty() { p { (note) } } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{title}. {said}")) {
                (drawn)
            }
            (below)
        }
    }
}

/// In place of a chart that would be empty.
pub(crate) fn empty(title: &str, why: &str) -> Markup {
    html! {
        figure.chart { figcaption { h3 { (title) } } p.empty { (why) } }
    }
}
