//! Bars: shares of a whole, a histogram, a section of a request's time.

use super::area::{HEIGHT, LEFT, RIGHT, TALL, TOP, WIDE, WIDTH, empty, figure};
use super::axis;
use crate::format;
use maud::{Markup, html};
use samovar_insight::Histogram;

/// Number of histogram bars per doubling of the time.
const BARS_PER_DOUBLING: f64 = 4.0;
/// Maximum number of bars. The bars end at the longest time; shorter times beyond the limit are not
/// shown.
const BARS_MAX: i32 = 120;
/// Maximum number of times on a histogram's horizontal axis.
const LABELS_MAX: usize = 6;
/// Minimum distance of two labels as a fraction of the axis: the width of "200 ms" and a space on a
/// phone.
const LABEL_SHARE_MIN: f64 = 0.16;

/// One part of a whole.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) class: &'static str,
    pub(crate) value: f64,
    /// The value as text.
    pub(crate) said: String,
}

/// Draws the parts of a whole next to each other, with a legend.
pub(crate) fn parts(title: &str, parts: &[Part]) -> Markup {
    let whole: f64 = parts.iter().map(|part| part.value).sum();
    let begins = parts.iter().scan(0.0, |sum, part| {
        let begin = *sum;
        *sum += part.value / whole * 1_000.0;
        Some(begin)
    });
    html! {
        svg.parts viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=(title) {
            @for (part, begin) in parts.iter().zip(begins).filter(|(part, _)| part.value > 0.0) {
                @let wide = part.value / whole * 1_000.0;
                rect class=(part.class) x=(format!("{begin:.1}")) y="0" height="20"
                    width=(format!("{wide:.1}")) {
                    title { (part.name) ": " (part.said) }
                }
            }
        }
        ul.legend {
            @for part in parts { li { i class=(part.class) {} (part.name) " " b { (part.said) } } }
        }
    }
}

/// Draws a bar in a table cell.
pub(crate) fn bar(class: &str, value: f64, most: f64) -> Markup {
    span_bar(class, 0.0, if most > 0.0 { value / most } else { 0.0 })
}

/// Draws a bar between two fractions of a table cell.
pub(crate) fn span_bar(class: &str, from: f64, to: f64) -> Markup {
    let (from, to) = (from.clamp(0.0, 1.0) * 1_000.0, to.clamp(0.0, 1.0) * 1_000.0);
    // A minimum width keeps very short spans visible.
    let wide = if to > from { (to - from).max(3.0) } else { 0.0 };
    html! {
        svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            rect class=(class) x=(format!("{:.1}", from.min(997.0))) y="0" height="10"
                width=(format!("{wide:.1}")) {}
        }
    }
}

/// Draws the distribution of durations on a logarithmic axis, with lines at quantiles.
pub(crate) fn histogram(title: &str, times: &Histogram) -> Markup {
    let place = |ns: u64| ((ns.max(1) as f64).log2() * BARS_PER_DOUBLING).floor() as i32;
    let mut bars: Vec<(i32, u64)> = Vec::new();
    for (ns, n) in times.filled() {
        match bars.last_mut() {
            Some((last, sum)) if *last == place(ns) => *sum += n,
            _ => bars.push((place(ns), n)),
        }
    }
    let (Some(&(first, _)), Some(&(last, _))) = (bars.first(), bars.last()) else {
        return empty(title, "No requests yet.");
    };
    let (first, last) = (first.max(last - BARS_MAX + 2) - 1, last + 2);
    let wide = WIDE / f64::from(last - first);
    let x = |place: f64| LEFT + (place - f64::from(first)) * wide;
    let of_ns = |ns: u64| x((ns.max(1) as f64).log2() * BARS_PER_DOUBLING).clamp(LEFT, LEFT + WIDE);
    let edge = |place: i32| 2_f64.powf(f64::from(place) / BARS_PER_DOUBLING) as u64;
    let most = bars.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let (top, step) = axis::scale(most as f64);
    let quantiles = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];
    let drawn = html! {
        (axis::values(top, step, |n| {
            if n.fract() == 0.0 { format::count(n as u64) } else { String::new() }
        }))
        @for (at, n) in bars.iter().filter(|(at, _)| *at >= first) {
            @let tall = *n as f64 / top * TALL;
            rect.c-req x=(format!("{:.1}", x(f64::from(*at)) + 0.5))
                y=(format!("{:.1}", TOP + TALL - tall))
                width=(format!("{:.1}", (wide - 1.0).max(0.5))) height=(format!("{tall:.1}")) {}
        }
        g.grid {
            @for ns in labels(edge(first), edge(last)) {
                path d=(format!("M{:.1} {:.1}v5", of_ns(ns), TOP + TALL)) {}
                text.middle x=(format!("{:.1}", of_ns(ns)))
                    y=(format!("{:.1}", TOP + TALL + 19.0)) { (format::time(ns)) }
            }
        }
        @for (n, (q, name)) in quantiles.into_iter().enumerate() {
            @let x = of_ns(times.quantile_ns(q));
            g.quantile {
                path d=(format!("M{x:.1} {TOP}V{:.1}", TOP + TALL)) {}
                text class=(if x > WIDTH - RIGHT - 40.0 { "end" } else { "start" })
                    x=(format!("{:.1}", if x > WIDTH - RIGHT - 40.0 { x - 4.0 } else { x + 4.0 }))
                    y=(format!("{:.1}", TOP + 10.0 + 14.0 * n as f64)) { (name) }
            }
        }
        g.titles {
            @for (at, n) in &bars {
                rect x=(format!("{:.1}", x(f64::from(*at)))) y=(TOP) height=(HEIGHT - TOP)
                    width=(format!("{wide:.1}")) {
                    title {
                        (format::time(edge(*at))) " to " (format::time(edge(at + 1))) "\n"
                        (format::count(*n)) " requests"
                    }
                }
            }
        }
    };
    let q = |q| format::time(times.quantile_ns(q));
    let note = format!(
        "p50 {}, p95 {}, p99 {}, maximum {}.",
        q(0.5),
        q(0.95),
        q(0.99),
        format::time(times.max_ns())
    );
    figure(title, &note, &note, &drawn, &html! {})
}

/// Returns round times in the range: 1, 2 and 5 times each power of ten, or 1 and 3 times, or
/// fewer.
fn labels(from: u64, to: u64) -> Vec<u64> {
    let of = |digits: &[u64]| -> Vec<u64> {
        let powers = (0..14).map(|n| 10_u64.pow(n));
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
        all.filter(|ns| *ns > from && *ns < to).collect()
    };
    // (digits, smallest ratio between two neighbours)
    let choices: [(&[u64], f64); 3] = [(&[1, 2, 5], 2.0), (&[1, 3], 3.0), (&[1], 10.0)];
    let doublings = (to.max(2) as f64 / from.max(1) as f64).log2();
    let stand_apart = |ratio: f64| ratio.log2() >= doublings * LABEL_SHARE_MIN;
    let fits = choices
        .into_iter()
        .filter(|(_, ratio)| stand_apart(*ratio))
        .map(|(digits, _)| of(digits))
        .find(|labels| labels.len() <= LABELS_MAX);
    fits.unwrap_or_else(|| of(&[1]).into_iter().step_by(2).collect())
}

#[cfg(test)]
mod tests {
    use super::{Part, bar, histogram, labels, parts};
    use samovar_insight::Histogram;

    #[test]
    fn histogram_shows_its_quantiles() {
        let mut times = Histogram::default();
        (1..=1_000).for_each(|n| times.add(n * 100_000));
        let svg = histogram("How long", &times).into_string();
        assert!(svg.contains("p50 50"), "{svg}");
        assert!(svg.contains(">p99</text>") && svg.contains(">10 ms</text>"), "{svg}");
        assert!(svg.len() < 20_000, "{}", svg.len());
    }

    #[test]
    fn histogram_of_no_and_extreme_times_is_drawn() {
        let mut times = Histogram::default();
        assert!(histogram("t", &times).into_string().contains("No requests yet."));
        times.add(0);
        times.add(u64::MAX);
        assert!(histogram("t", &times).into_string().len() < 5_000);
    }

    #[test]
    fn histogram_labels_are_few_and_round() {
        assert_eq!(
            labels(900_000, 25_000_000),
            [1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000]
        );
        // On a phone the letters are larger relative to the picture: 100 ms and 200 ms would touch.
        let of_two_decades = [30_000_000, 100_000_000, 300_000_000, 1_000_000_000];
        assert_eq!(labels(17_000_000, 2_000_000_000), of_two_decades);
        assert!(labels(1, u64::MAX).len() <= 7);
    }

    #[test]
    fn parts_fill_whole_bar() {
        let part = |value| Part { name: "n".into(), class: "c-php", value, said: "s".into() };
        let svg = parts("t", &[part(1.0), part(3.0), part(0.0)]).into_string();
        assert!(svg.contains(r#"x="250.0" y="0" height="20" width="750.0""#), "{svg}");
        assert!(bar("c-php", 1.0, 0.0).into_string().contains(r#"width="0.0""#));
    }
}
