//! Axes with few, round numbers.

use super::area::{Along, LEFT, RIGHT, TALL, TOP, WIDE, WIDTH};
use crate::format;
use maud::{Markup, html};

/// Maximum number of horizontal lines of a chart.
const LINES_MAX: f64 = 4.0;
/// Possible steps between times, in seconds.
const TIME_STEPS: [u64; 16] = [
    60,
    120,
    300,
    600,
    1_800,
    3_600,
    7_200,
    14_400,
    21_600,
    DAY_S,
    2 * DAY_S,
    7 * DAY_S,
    14 * DAY_S,
    28 * DAY_S,
    91 * DAY_S,
    182 * DAY_S,
];
const DAY_S: u64 = 86_400;
/// Length of the year prefix, `2026-`, that is removed from a date.
const YEAR_BYTES: usize = 5;
/// Length from which dates need their year.
const YEARS_S: u64 = 300 * DAY_S;
/// Maximum number of times on the horizontal axis.
const TIMES_MAX: u64 = 5;

/// Returns the top of an axis that shows `highest`, and the step of its lines: 1, 2 or 5 times a
/// power of ten.
pub(super) fn scale(highest: f64) -> (f64, f64) {
    if highest <= 0.0 || !highest.is_finite() {
        return (1.0, 0.5);
    }
    let rough = highest / LINES_MAX;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|n| n * power >= rough).unwrap_or(10.0) * power;
    ((highest / step).ceil() * step, step)
}

/// Draws horizontal lines, each with its value.
pub(super) fn values(top: f64, step: f64, unit: fn(f64) -> String) -> Markup {
    let lines = (top / step).round() as usize;
    html! {
        g.grid {
            @for line in 0..=lines {
                @let value = line as f64 * step;
                @let y = TOP + TALL * (1.0 - value / top);
                path d=(format!("M{LEFT} {y:.1}H{:.1}", WIDTH - RIGHT)) {}
                text.end x=(format!("{:.1}", LEFT - 6.0)) y=(format!("{:.1}", y + 4.0)) {
                    (unit(value))
                }
            }
        }
    }
}

/// Draws the times of the horizontal axis.
pub(super) fn times(along: Along) -> Markup {
    let wide = along.to.saturating_sub(along.from);
    let step = TIME_STEPS.into_iter().find(|step| wide / step <= TIMES_MAX).unwrap_or(wide.max(1));
    let first = along.from.next_multiple_of(step);
    html! {
        g.grid {
            @for at in (first..=along.to).step_by(step as usize) {
                @let x = along.x(at as f64);
                @if x > LEFT + 12.0 && x < LEFT + WIDE - 14.0 {
                    path d=(format!("M{x:.1} {:.1}v5", TOP + TALL)) {}
                    text.middle x=(format!("{x:.1}")) y=(format!("{:.1}", TOP + TALL + 19.0)) {
                        (if step < DAY_S {
                            format::minute(at)
                        } else if wide < YEARS_S {
                            format::date(at).split_off(YEAR_BYTES)
                        } else {
                            format::date(at)
                        })
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn axis_top_is_above_values_with_round_steps() {
        for (highest, expected) in [
            (0.0, (1.0, 0.5)),
            (f64::NAN, (1.0, 0.5)),
            (1.0, (1.0, 0.5)),
            (7.0, (8.0, 2.0)),
            (42.0, (60.0, 20.0)),
            (950.0, (1_000.0, 500.0)),
        ] {
            assert_eq!(scale(highest), expected, "{highest}");
        }
    }
}
