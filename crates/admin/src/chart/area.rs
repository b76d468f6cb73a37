//! Area of a chart: its size and margins, its time range with the events, and the frame around it.
//! The other files of this folder draw in it.

use crate::format;
use maud::{Markup, html};
use samovar_insight::store::Event;

pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 190.0;
pub(super) const LEFT: f64 = 66.0;
pub(super) const RIGHT: f64 = 8.0;
pub(super) const TOP: f64 = 16.0;
const BOTTOM: f64 = 28.0;
/// Height of the drawing area.
pub(super) const TALL: f64 = HEIGHT - TOP - BOTTOM;
/// Width of the drawing area.
pub(super) const WIDE: f64 = WIDTH - LEFT - RIGHT;
const DAY_S: u64 = 86_400;
/// Maximum number of events drawn on one chart; the latest ones are drawn.
const EVENTS_MAX: usize = 40;

/// Time range of the horizontal axis, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Along {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Along {
    pub(super) fn x(self, at: f64) -> f64 {
        let wide = self.to.saturating_sub(self.from).max(1) as f64;
        LEFT + (at - self.from as f64) / wide * WIDE
    }

    /// Formats a time; with its date if the range is longer than a day.
    pub(super) fn named(self, at: u64) -> String {
        let is_long = self.to.saturating_sub(self.from) > DAY_S;
        if is_long { format::moment(at) } else { format::clock(at) }
    }

    /// Draws a line with a description for each event.
    pub(super) fn events(self, events: &[Event]) -> Markup {
        let inside = events.iter().filter(|event| (self.from..self.to).contains(&event.at));
        let skipped = inside.clone().count().saturating_sub(EVENTS_MAX);
        html! {
            @for event in inside.skip(skipped) {
                @let x = self.x(event.at as f64);
                g class=(event_class(event)) {
                    title {
                        (self.named(event.at)) " " (event.kind.name()) ": " (event.text)
                    }
                    path d=(format!("M{x:.1} {TOP}V{:.1}", TOP + TALL)) {}
                    path.head d=(format!("M{:.1} {:.1}h10l-5 8z", x - 5.0, TOP - 9.0)) {}
                }
            }
        }
    }
}

/// Returns the style class of an event: intended events differ from failures.
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

/// Returns a chart's frame around the drawing: its title, a note, and the picture.
pub(super) fn figure(
    title: &str,
    note: &str,
    said: &str,
    drawn: &Markup,
    below: &Markup,
) -> Markup {
    html! {
        figure.chart {
            figcaption { h3 { (title) } @if !note.is_empty() { p { (note) } } }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
                aria-label=(format!("{title}. {said}")) {
                (drawn)
            }
            (below)
        }
    }
}

/// Returns a note in place of an empty chart.
pub(crate) fn empty(title: &str, why: &str) -> Markup {
    html! {
        figure.chart { figcaption { h3 { (title) } } p.empty { (why) } }
    }
}
