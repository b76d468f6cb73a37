//! A flame graph: a box for each function, as wide as its time, above the one that called it.
//!
//! The boxes are crates/spy's. Without the script of `assets/flame.js` all is there but zoom and search.

use super::without_controls;
use crate::human;
use maud::{Markup, html};
use samovar_spy::profile::Profile;
use samovar_spy::profile::boxes::{FlameBox, boxes_against, of};
use samovar_spy::profile::svg::{Measure, colour, compared, contrast};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
/// What is narrower is not drawn: a part of the whole.
const NARROWEST: f64 = 0.4 / WIDTH;
/// The width of a letter, about.
const LETTER: f64 = 6.6;
/// Boxes of a page; of wider graphs the narrowest are left out.
const BOXES_MAX: usize = 4_000;

/// What is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Flames<'a> {
    pub(crate) profile: &'a Profile,
    /// Another one, and what it is multiplied by to compare the two.
    pub(crate) before: Option<(&'a Profile, f64)>,
    pub(crate) measure: Measure,
    /// What it shows, in words.
    pub(crate) title: &'a str,
}

/// The boxes that fit a page: the widest.
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

/// The graph.
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
                    input #find type="search" placeholder="Mark functions" aria-label="Mark functions whose name has";
                    " " button #reset type="button" disabled { "Back" }
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
    let FlameBox { label, from, width, row, weight, before } = one;
    let (left, wide, top) = (from * WIDTH, width * WIDTH, *row as f64 * ROW);
    let value = of(*weight, measure);
    let fill = before.map_or_else(|| colour(label), |before| contrast(before, value, all));
    let against =
        before.map_or_else(String::new, |before| format!(", {}", compared(before, value)));
    let percent = width * 100.0;
    html! {
        g data-x=(format!("{from:.6}")) data-w=(format!("{width:.6}")) data-r=(row) data-name=(without_controls(label)) {
            title {
                (without_controls(label)) " — " (human::time(value)) ", " (format!("{percent:.2}")) " %, "
                (human::count(weight.samples)) " samples" (against)
            }
            rect x=(format!("{left:.2}")) y=(top) width=(format!("{wide:.2}")) height=(ROW - 1.0) fill=(fill) {}
            text x=(format!("{:.2}", left + 3.0)) y=(top + 12.5) { (fitting(&without_controls(label), wide)) }
        }
    }
}

/// As much of a label as there is room for.
fn fitting(label: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match label.chars().count() {
        letters if letters <= room => label.to_owned(),
        _ if room < 3 => String::new(),
        _ => label.chars().take(room - 1).chain(['…']).collect(),
    }
}
