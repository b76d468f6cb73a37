//! Heat map: distribution of durations over time; a darker cell has more requests.

use super::area::{Along, HEIGHT, LEFT, RIGHT, TALL, TOP, WIDTH, figure};
use super::axis;
use crate::figures::{Pieces, row_bounds_ns};
use crate::format;
use maud::{Markup, html};
use samovar_insight::HEAT_ROWS;
use samovar_insight::store::Event;
use std::fmt::Write as _;

/// Number of shades, without the empty one.
const SHADES: usize = 6;
/// Minimum number of displayed rows, so that the picture's scale does not jump.
const ROWS_MIN: usize = 6;
/// Minimum number of labels with powers of ten; with fewer, multiples of three are added.
const LABELS_MIN: usize = 3;

/// A heat map of latencies.
pub(crate) struct Heat<'a> {
    pub(crate) title: &'a str,
    pub(crate) note: &'a str,
    pub(crate) pieces: &'a Pieces,
    pub(crate) events: &'a [Event],
}

impl Heat<'_> {
    pub(crate) fn show(&self) -> Markup {
        let along = Along { from: self.pieces.from, to: self.pieces.to() };
        let rows = self.rows();
        let tall = TALL / rows.len() as f64;
        let y = |edge: usize| TOP + TALL - (edge - rows.start) as f64 * tall;
        let drawn = html! {
            @let shades = self.shades(&rows, along, &y);
            @for (n, d) in shades.iter().enumerate().filter(|(_, d)| !d.is_empty()) {
                path class=(format!("h{}", n + 1)) d=(d) {}
            }
            g.grid {
                @for (ns, edge) in labels(&rows) {
                    @let y = TOP + TALL - (edge - rows.start as f64) * tall;
                    path d=(format!("M{LEFT} {y:.1}H{:.1}", WIDTH - RIGHT)) {}
                    text.end x=(LEFT - 6.0) y=(format!("{:.1}", y + 4.0)) { (format::time(ns)) }
                }
            }
            (axis::times(along))
            (along.events(self.events))
            g.titles {
                @let pieces = self.pieces.all.iter().enumerate();
                @for (at, piece) in pieces.filter(|(_, p)| p.requests > 0) {
                    @let begin = self.pieces.from + at as u64 * self.pieces.step;
                    @let x = along.x(begin as f64);
                    rect x=(format!("{x:.1}")) y=(TOP) height=(HEIGHT - TOP)
                        width=(format!("{:.1}", along.x((begin + self.pieces.step) as f64) - x)) {
                        title {
                            (along.named(begin)) "\n" (format::count(piece.requests)) " requests"
                            @for (q, name) in [(0.5, "p50"), (0.99, "p99")] {
                                "\n" (name) " about " (format::time(piece.about_ns(q).unwrap_or(0)))
                            }
                        }
                    }
                }
            }
        };
        let all = self.pieces.last(self.pieces.all.len());
        let about = |q| format::time(all.about_ns(q).unwrap_or(0));
        let said = format!("p50 about {}, p99 about {}.", about(0.5), about(0.99));
        figure(self.title, self.note, &said, &drawn, &html! {})
    }

    /// Returns the range of rows with data, extended to at least `ROWS_MIN`.
    fn rows(&self) -> std::ops::Range<usize> {
        let used = |row: usize| self.pieces.all.iter().any(|piece| piece.heat[row] > 0);
        let first = (0..HEAT_ROWS).find(|row| used(*row)).unwrap_or(3);
        let last = (0..HEAT_ROWS).rev().find(|row| used(*row)).unwrap_or(first);
        let first = first.min(HEAT_ROWS - ROWS_MIN);
        first..(last + 1).max(first + ROWS_MIN)
    }

    /// Returns one path per shade: the number of elements does not depend on the amount of data.
    fn shades(
        &self,
        rows: &std::ops::Range<usize>,
        along: Along,
        y: &impl Fn(usize) -> f64,
    ) -> [String; SHADES] {
        let most = self.pieces.all.iter().flat_map(|p| p.heat).max().unwrap_or(0);
        let mut paths: [String; SHADES] = Default::default();
        for (at, piece) in self.pieces.all.iter().enumerate() {
            let begin = self.pieces.from + at as u64 * self.pieces.step;
            let (x, end) = (along.x(begin as f64), along.x((begin + self.pieces.step) as f64));
            for row in rows.clone() {
                let Some(shade) = shade(piece.heat[row], most) else { continue };
                let (top, bottom) = (y(row + 1), y(row));
                // Writing to a string cannot fail.
                let _ = write!(paths[shade], "M{x:.1} {top:.1}H{end:.1}V{bottom:.1}H{x:.1}Z");
            }
        }
        paths
    }
}

/// Returns round times and their positions in rows.
fn labels(rows: &std::ops::Range<usize>) -> Vec<(u64, f64)> {
    let of = |digits: &[u64]| -> Vec<(u64, f64)> {
        let powers = (4..13).map(|n| 10_u64.pow(n));
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
        let placed = all.map(|ns| (ns, (ns as f64 / row_bounds_ns(0).1 as f64).log2() + 1.0));
        placed.filter(|(_, at)| (rows.start as f64..=rows.end as f64).contains(at)).collect()
    };
    let tens = of(&[1]);
    if tens.len() < LABELS_MIN { of(&[1, 3]) } else { tens }
}

/// Returns the shade of a cell. Shades are logarithmic, so that one request is visible next to
/// thousands.
fn shade(n: u64, most: u64) -> Option<usize> {
    let share = (n as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    (n > 0).then(|| ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES) - 1)
}

#[cfg(test)]
mod tests {
    use super::{Heat, SHADES, labels, shade};
    use crate::figures::{Piece, Pieces, row_bounds_ns};

    #[test]
    fn shade_of_single_request_is_visible() {
        assert_eq!(
            (shade(0, 9), shade(1, 100_000), shade(9, 9)),
            (None, Some(0), Some(SHADES - 1))
        );
    }

    #[test]
    fn heat_map_labels_are_at_their_rows() {
        assert_eq!(labels(&(1..2)), [(100_000, 1.0)]);
        let times: Vec<_> = labels(&(3..14)).into_iter().map(|(ns, _)| ns).collect();
        assert_eq!(times, [1_000_000, 10_000_000, 100_000_000]);
        let (ns, at) = labels(&(4..10))[1];
        let (low, high) = row_bounds_ns(at.floor() as usize);
        assert!((low..high).contains(&ns), "{ns}");
    }

    #[test]
    fn heat_map_draws_one_path_per_shade() {
        let mut pieces = Pieces { from: 0, step: 10, all: vec![Piece::default(); 90] };
        for piece in &mut pieces.all {
            piece.requests = 2;
            piece.heat[4] = 1;
            piece.heat[7] = 1;
        }
        let svg = Heat { title: "t", note: "", pieces: &pieces, events: &[] }.show().into_string();
        assert_eq!(svg.matches("<path class=\"h").count(), 1, "{svg}");
        assert!(svg.contains("2 requests\np50 about 1.6 ms\np99 about"), "{svg}");
        assert!(svg.len() < 30_000, "{}", svg.len());
    }
}
