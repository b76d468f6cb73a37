//! Flame graph: one box per function, as wide as its time or memory, below the box of its caller.
//!
//! crates/spy computes the boxes. Without the script `assets/flame_page.js`, everything works
//! except zoom and search.

use crate::format;
use maud::{Markup, html};
use samovar_spy::profile::Profile;
use samovar_spy::profile::boxes::{FlameBox, boxes_against, of};
use samovar_spy::profile::svg::{Measure, compared, fill};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
/// Minimum width of a drawn box, as a fraction of the whole.
const NARROWEST: f64 = 0.4 / WIDTH;
/// Approximate width of a letter.
const LETTER: f64 = 6.6;
/// Maximum number of boxes on a page; the narrowest are left out.
const BOXES_MAX: usize = 4_000;

/// Content of a flame graph.
#[derive(Clone, Copy)]
pub(crate) struct Flames<'a> {
    pub(crate) profile: &'a Profile,
    /// Profile to compare with, and the factor that scales it to this one.
    pub(crate) before: Option<(&'a Profile, f64)>,
    pub(crate) measure: Measure,
    /// Description of the graph.
    pub(crate) title: &'a str,
}

/// Returns the boxes that fit on a page: the widest ones.
fn widest(flames: &Flames) -> Vec<FlameBox> {
    let mut boxes = boxes_against(flames.profile, flames.before, flames.measure, NARROWEST);
    if boxes.len() > BOXES_MAX {
        let mut widths: Vec<f64> = boxes.iter().map(|one| one.width).collect();
        widths.sort_unstable_by(|a, b| b.total_cmp(a));
        let least = widths[BOXES_MAX - 1];
        boxes.retain(|one| one.width >= least);
        boxes.truncate(BOXES_MAX);
    }
    boxes
}

/// Draws the graph.
pub(crate) fn flames(flames: &Flames) -> Markup {
    let boxes = widest(flames);
    let rows = boxes.iter().map(|one| one.row).max().unwrap_or(0) + 1;
    let height = rows as f64 * ROW;
    let all = of(flames.profile.total(), flames.measure);
    html! {
        figure.flame {
            figcaption {
                p #said aria-live="polite" { (flames.title) }
                span #tools hidden {
                    input #find type="search" placeholder="Highlight functions"
                        aria-label="Highlight functions whose name contains";
                    " " button #reset type="button" disabled { "Reset zoom" }
                }
            }
            div.scroll {
                svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(flames.title) {
                    @for one in &boxes { (drawn(one, flames.measure, all)) }
                }
            }
        }
    }
}

fn drawn(one: &FlameBox, measure: Measure, all: u64) -> Markup {
    let FlameBox { label, from, width, row, weight, .. } = one;
    let (left, wide, top) = (from * WIDTH, width * WIDTH, *row as f64 * ROW);
    let value = of(*weight, measure);
    let (fill, against) = (fill(one, value, all), compared(one, value));
    let percent = width * 100.0;
    html! {
        g data-x=(format!("{from:.6}")) data-w=(format!("{width:.6}")) data-r=(row)
            data-name=(label) {
            title {
                (label) " — "
                @if measure.is_bytes() { (format::bytes(value)) } @else { (format::time(value)) }
                ", " (format!("{percent:.2}")) " %, " (format::count(weight.samples)) " "
                @if measure == Measure::Bytes { "allocations" } @else { "samples" }
                (against)
            }
            rect x=(format!("{left:.2}")) y=(top) width=(format!("{wide:.2}")) height=(ROW - 1.0)
                fill=(fill) {}
            text x=(format!("{:.2}", left + 3.0)) y=(top + 12.5) {
                (fitting(label, wide))
            }
        }
    }
}

/// Returns the part of a label that fits into the width.
fn fitting(label: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match label.chars().count() {
        letters if letters <= room => label.to_owned(),
        _ if room < 3 => String::new(),
        _ => label.chars().take(room - 1).chain(['…']).collect(),
    }
}
