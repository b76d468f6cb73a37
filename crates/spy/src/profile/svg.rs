//! A profile as a flame graph: one self-contained SVG file that opens in a browser, zooms and
//! searches.

use super::boxes::{FlameBox, boxes_against};
use super::measure::of;
use super::stacks::{Profile, Weight};
use std::fmt::Write as _;

pub use super::measure::Measure;

/// Script of a flame graph, for a page that shows boxes of this crate: `flameGraph()`.
pub const FLAME_SCRIPT: &str = include_str!("flame.js");
/// Connects that script with the file's buttons.
const OWN_SCRIPT: &str = include_str!("flame_svg.js");

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 52.0;
const MARGIN: f64 = 10.0;

/// Minimum width of a box that is drawn.
const NARROWEST: f64 = 0.2;

/// Approximate width of a letter.
const LETTER: f64 = 7.0;

struct Picture {
    out: String,
    measure: Measure,
    all: u64,
}

/// The profile as a picture with a title.
pub fn render(profile: &Profile, title: &str, measure: Measure) -> String {
    render_against(profile, None, title, measure)
}

/// Same as [`render`], compared with another profile, which is multiplied by a factor that makes
/// the two comparable. The more a box has gained, the more red it is; the more it has lost, the
/// more blue.
pub fn render_against(
    profile: &Profile,
    before: Option<(&Profile, f64)>,
    title: &str,
    measure: Measure,
) -> String {
    let narrowest = NARROWEST / (WIDTH - 2.0 * MARGIN);
    let boxes = boxes_against(profile, before, measure, narrowest);
    let rows = boxes.iter().map(|b| b.row).max().unwrap_or(0) + 1;
    #[allow(clippy::cast_precision_loss)] // At most a few hundred.
    let height = HEAD + rows as f64 * ROW + MARGIN;
    let total = profile.total();
    let mut picture = Picture { out: String::new(), measure, all: of(total, measure) };
    picture.head(title, total, height);
    for one in &boxes {
        picture.one(one);
    }
    let _ = write!(
        picture.out,
        "</g>\n<script>//<![CDATA[\n{FLAME_SCRIPT}{OWN_SCRIPT}//]]></script>\n</svg>\n"
    );
    picture.out
}

impl Picture {
    fn head(&mut self, title: &str, total: Weight, height: f64) {
        let measure = match self.measure {
            Measure::Wall => "wall clock",
            Measure::Cpu => "CPU",
            Measure::Bytes => "allocated memory",
            Measure::Growth => "growth of the heap",
        };
        let (value, counted) = (shown(self.all, self.measure), counted(self.measure));
        // Writing to a string cannot fail.
        let _ = write!(
            self.out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"12\">\n\
             <style>rect.bar{{cursor:pointer;stroke:#fff;stroke-width:.5}} \
             rect.bar:hover{{stroke:#000}} text{{fill:#222}} g.found rect{{fill:#c026d3}} \
             #find,#reset{{cursor:pointer;fill:#1d4ed8}}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fdfcf9\"/>\n\
             <text x=\"{MARGIN}\" y=\"18\" font-size=\"14\">{}</text>\n\
             <text x=\"{MARGIN}\" y=\"38\" id=\"said\">{value} of {measure}, {} {counted}</text>\n\
             <text x=\"{}\" y=\"18\" id=\"reset\" visibility=\"hidden\" \
             text-anchor=\"end\">back</text>\n\
             <text x=\"{}\" y=\"18\" id=\"find\" text-anchor=\"end\">search</text>\n\
             <g id=\"graph\">\n",
            escaped(title),
            total.samples,
            WIDTH - 80.0,
            WIDTH - MARGIN,
        );
    }

    fn one(&mut self, one: &FlameBox) {
        let FlameBox { label, from, width, row, weight, .. } = one;
        let scale = WIDTH - 2.0 * MARGIN;
        #[allow(clippy::cast_precision_loss)] // At most a few hundred.
        let top = HEAD + *row as f64 * ROW;
        let (left, wide) = (MARGIN + from * scale, width * scale);
        let percent = width * 100.0;
        let value = of(*weight, self.measure);
        let (compared, fill) = (compared(one, value), fill(one, value, self.all));
        let _ = writeln!(
            self.out,
            "<g data-x=\"{from:.6}\" data-w=\"{width:.6}\" data-r=\"{row}\"><title>{name} — {}, \
             {percent:.2} %, {} {counted}{compared}</title><rect class=\"bar\" x=\"{left:.2}\" \
             y=\"{top}\" width=\"{wide:.2}\" height=\"{}\" fill=\"{fill}\"/><text x=\"{:.2}\" \
             y=\"{}\">{}</text></g>",
            shown(value, self.measure),
            weight.samples,
            ROW - 1.0,
            left + 3.0,
            top + 12.5,
            escaped(&fitting(label, wide)),
            name = escaped(label),
            counted = counted(self.measure),
        );
    }
}

/// Returns, for example, `, +12 % against before` or `, new`; empty without a comparison.
pub fn compared(one: &FlameBox, now: u64) -> String {
    let Some(before) = one.before else { return String::new() };
    #[allow(clippy::cast_precision_loss)] // For people, who read three digits.
    let now = now as f64;
    let noise = if one.is_significant { "" } else { " (may be chance)" };
    if before <= 0.0 {
        return format!(", new{noise}");
    }
    format!(", {:+.0} % against before{noise}", (now - before) / before * 100.0)
}

/// Colour of a box. In a comparison, a difference that may be chance has no colour.
pub fn fill(one: &FlameBox, now: u64, all: u64) -> String {
    match one.before {
        None => colour(&one.label),
        Some(_) if !one.is_significant => "hsl(0,0%,90%)".to_owned(),
        Some(before) => contrast(before, now, all),
    }
}

/// Red for a higher cost, blue for a lower one: the larger the difference as a part of the whole,
/// the stronger.
fn contrast(before: f64, now: u64, all: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // A share; its last bits do not matter.
    let part = (now as f64 - before) / all.max(1) as f64;
    // A tenth of the whole has the maximum strength.
    let strength = (part.abs() * 10.0).min(1.0).sqrt();
    let hue = if part >= 0.0 { 5 } else { 215 };
    format!("hsl({hue},{:.0}%,{:.0}%)", 10.0 + strength * 75.0, 93.0 - strength * 28.0)
}

/// The part of a label that fits.
fn fitting(label: &str, width: f64) -> String {
    #[allow(clippy::cast_sign_loss)] // Not below zero.
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    match label.chars().count() {
        0..3 if room < 3 => String::new(),
        letters if letters <= room => label.to_owned(),
        _ if room < 3 => String::new(),
        _ => label.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// Warm colours for PHP code, the same colour for the same name; blue for waits.
fn colour(label: &str) -> String {
    let hash =
        label.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    if label.starts_with('[') {
        return format!("hsl(205,45%,{}%)", 68 + hash % 12);
    }
    format!("hsl({},{}%,{}%)", 18 + hash % 34, 70 + hash / 64 % 20, 62 + hash / 4096 % 12)
}

/// Returns, for example, `12.0 ms` or `1.20 s`.
pub fn seconds(ns: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // For people, who read three digits.
    let ms = ns as f64 / 1e6;
    if ms < 1000.0 { format!("{ms:.1} ms") } else { format!("{:.2} s", ms / 1000.0) }
}

/// Returns the word for a weight's number of samples.
fn counted(measure: Measure) -> &'static str {
    match measure {
        Measure::Wall | Measure::Cpu | Measure::Growth => "samples",
        Measure::Bytes => "allocations",
    }
}

fn shown(value: u64, measure: Measure) -> String {
    if measure.is_bytes() { format!("{} KiB", value / 1024) } else { seconds(value) }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML does not allow control characters, not even escaped.
            c if samovar_log::is_unprintable(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
