//! How many requests took how long, over time: the darker, the more.

use super::{Along, HEIGHT, LEFT, TALL, TOP, WIDTH, axis, figure};
use crate::figures::{Pieces, row_bounds_ns};
use crate::human;
use maud::{Markup, html};
use samovar_insight::HEAT_ROWS;
use samovar_insight::store::Event;
use std::fmt::Write as _;

/// Shades, beside none.
const SHADES: usize = 6;
/// Rows that are shown at least, so that the picture does not jump.
const ROWS_MIN: usize = 6;
/// Round times beside a heat map, if there are as many; else those between them are named, too.
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
            @for (n, d) in self.shades(&rows, along, &y).iter().enumerate().filter(|(_, d)| !d.is_empty()) {
                path class=(format!("h{}", n + 1)) d=(d) {}
            }
            g.grid {
                @for (ns, edge) in labels(&rows) {
                    @let y = TOP + TALL - (edge - rows.start as f64) * tall;
                    path d=(format!("M{LEFT} {y:.1}H{:.1}", WIDTH - super::RIGHT)) {}
                    text.end x=(LEFT - 6.0) y=(format!("{:.1}", y + 4.0)) { (human::time(ns)) }
                }
            }
            (axis::times(along))
            (along.events(self.events))
            g.titles {
                @for (at, piece) in self.pieces.all.iter().enumerate().filter(|(_, p)| p.requests > 0) {
                    @let begin = self.pieces.from + at as u64 * self.pieces.step;
                    @let x = along.x(begin as f64);
                    rect x=(format!("{x:.1}")) y=(TOP) height=(HEIGHT - TOP)
                        width=(format!("{:.1}", along.x((begin + self.pieces.step) as f64) - x)) {
                        title {
                            (human::clock(begin)) "\n" (human::count(piece.requests)) " requests"
                            @for (q, name) in [(0.5, "half"), (0.99, "99 %")] {
                                "\n" (name) " within about " (human::time(piece.about_ns(q).unwrap_or(0)))
                            }
                        }
                    }
                }
            }
        };
        let all = self.pieces.last(self.pieces.all.len());
        let about = |q| human::time(all.about_ns(q).unwrap_or(0));
        let said = format!("Half of all within about {}, 99 % within {}.", about(0.5), about(0.99));
        figure(self.title, self.note, &said, &drawn, &html! {})
    }

    /// The rows that have something, and a few more.
    fn rows(&self) -> std::ops::Range<usize> {
        let used = |row: usize| self.pieces.all.iter().any(|piece| piece.heat[row] > 0);
        let first = (0..HEAT_ROWS).find(|row| used(*row)).unwrap_or(3);
        let last = (0..HEAT_ROWS).rev().find(|row| used(*row)).unwrap_or(first);
        let first = first.min(HEAT_ROWS - ROWS_MIN);
        first..(last + 1).max(first + ROWS_MIN)
    }

    /// One path for each shade: few elements however much there is to see.
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

/// Round times and where they are, in rows.
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

/// One request is seen beside thousands: shades go by the logarithm.
fn shade(n: u64, most: u64) -> Option<usize> {
    let share = (n as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    (n > 0).then(|| ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES) - 1)
}

#[cfg(test)]
mod tests {
    use super::{Heat, SHADES, labels, shade};
    use crate::figures::{Piece, Pieces, row_bounds_ns};

    #[test]
    fn one_is_seen_beside_many() {
        assert_eq!(
            (shade(0, 9), shade(1, 100_000), shade(9, 9)),
            (None, Some(0), Some(SHADES - 1))
        );
    }

    #[test]
    fn round_times_stand_where_they_belong() {
        assert_eq!(labels(&(1..2)), [(100_000, 1.0)]);
        let times: Vec<_> = labels(&(3..14)).into_iter().map(|(ns, _)| ns).collect();
        assert_eq!(times, [1_000_000, 10_000_000, 100_000_000]);
        let (ns, at) = labels(&(4..10))[1];
        let (low, high) = row_bounds_ns(at.floor() as usize);
        assert!((low..high).contains(&ns), "{ns}");
    }

    #[test]
    fn cells_of_a_shade_are_one_path() {
        let mut pieces = Pieces { from: 0, step: 10, all: vec![Piece::default(); 90] };
        for piece in &mut pieces.all {
            piece.requests = 2;
            piece.heat[4] = 1;
            piece.heat[7] = 1;
        }
        let svg = Heat { title: "t", note: "", pieces: &pieces, events: &[] }.show().into_string();
        assert_eq!(svg.matches("<path class=\"h").count(), 1, "{svg}");
        assert!(svg.contains("2 requests\nhalf within about 1.6 ms\n99 % within about"), "{svg}");
        assert!(svg.len() < 30_000, "{}", svg.len());
    }
}
