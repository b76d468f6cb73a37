//! Values over time: lines, or stacked areas.

use super::area::{Along, HEIGHT, TALL, TOP, figure};
use super::axis;
use maud::{Markup, html};
use samovar_insight::store::Event;
use std::fmt::Write as _;

/// One line or area.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// Style class that sets its colour.
    pub(crate) class: &'static str,
    /// Values; `None`: no measurement.
    pub(crate) values: Vec<Option<f64>>,
}

/// A chart of `step`-second pieces that begin at `from`.
pub(crate) struct Lines<'a> {
    pub(crate) title: &'a str,
    pub(crate) note: &'a str,
    pub(crate) from: u64,
    pub(crate) step: u64,
    pub(crate) layers: Vec<Layer>,
    pub(crate) is_stacked: bool,
    pub(crate) unit: fn(f64) -> String,
    pub(crate) events: &'a [Event],
}

impl Lines<'_> {
    pub(crate) fn show(&self) -> Markup {
        let count = self.layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
        let along = Along { from: self.from, to: self.from + self.step * count as u64 };
        let tops = self.tops(count);
        let highest = tops.iter().flatten().flatten().copied().fold(0.0, f64::max);
        let (top, step) = axis::scale(highest);
        let y = |value: f64| TOP + TALL * (1.0 - value / top);
        let drawn = html! {
            (axis::values(top, step, self.unit))
            (axis::times(along))
            @for (n, layer) in self.layers.iter().enumerate().rev() {
                @let floor = if self.is_stacked && n > 0 { tops.get(n - 1) } else { None };
                @if self.is_stacked {
                    path class=(format!("area {}", layer.class))
                        d=(self.area(&tops[n], floor, along, &y)) {}
                } @else {
                    path class=(format!("line {}", layer.class))
                        d=(self.line(&tops[n], along, &y)) {}
                }
            }
            (along.events(self.events))
            (self.titles(count, along))
        };
        let legend = html! {
            ul.legend {
                @for layer in self.layers.iter().filter(|_| self.layers.len() > 1) {
                    li { i class=(layer.class) {} (layer.name) }
                }
            }
        };
        figure(self.title, self.note, &self.said(), &drawn, &legend)
    }

    /// Returns the upper edge of each layer.
    fn tops(&self, count: usize) -> Vec<Vec<Option<f64>>> {
        let mut below = vec![0.0; count];
        let top = |layer: &Layer, below: &mut Vec<f64>| {
            let each = layer.values.iter().zip(below.iter_mut()).map(|(value, below)| {
                value.map(|value| {
                    let top = if self.is_stacked { *below + value } else { value };
                    *below = top;
                    top
                })
            });
            each.collect()
        };
        self.layers.iter().map(|layer| top(layer, &mut below)).collect()
    }

    fn middle(&self, at: usize, along: Along) -> f64 {
        along.x(self.from as f64 + (at as f64 + 0.5) * self.step as f64)
    }

    /// Returns the ranges `begin..end` without missing values.
    fn runs(values: &[Option<f64>]) -> Vec<std::ops::Range<usize>> {
        let mut runs = Vec::new();
        let mut begin = None;
        for (at, value) in values.iter().chain([&None]).enumerate() {
            match (value, begin) {
                (Some(_), None) => begin = Some(at),
                (None, Some(first)) => {
                    runs.push(first..at);
                    begin = None;
                }
                _ => {}
            }
        }
        runs
    }

    fn line(&self, tops: &[Option<f64>], along: Along, y: &impl Fn(f64) -> f64) -> String {
        let mut d = String::new();
        for run in Self::runs(tops) {
            for at in run.clone() {
                let letter = if at == run.start { 'M' } else { 'L' };
                let (x, y) = (self.middle(at, along), y(tops[at].unwrap_or(0.0)));
                let _ = write!(d, "{letter}{x:.1} {y:.1}");
            }
            // A single value is drawn as a visible dot.
            d.push_str(if run.len() == 1 { "m-2 0h4" } else { "h.1" });
        }
        d
    }

    fn area(
        &self,
        tops: &[Option<f64>],
        floor: Option<&Vec<Option<f64>>>,
        along: Along,
        y: &impl Fn(f64) -> f64,
    ) -> String {
        let mut d = String::new();
        let edge = |at: usize| along.x(self.from as f64 + at as f64 * self.step as f64);
        for run in Self::runs(tops) {
            let below = |at: usize| {
                let floor = floor.and_then(|floor| floor.get(at).copied().flatten());
                y(floor.unwrap_or(0.0))
            };
            let _ = write!(d, "M{:.1} {:.1}", edge(run.start), below(run.start));
            for at in run.clone() {
                let _ = write!(d, "V{:.1}H{:.1}", y(tops[at].unwrap_or(0.0)), edge(at + 1));
            }
            for at in run.rev() {
                let _ = write!(d, "V{:.1}H{:.1}", below(at), edge(at));
            }
            d.push('Z');
        }
        d
    }

    /// Draws an invisible column per piece, which shows its title under the pointer.
    fn titles(&self, count: usize, along: Along) -> Markup {
        html! {
            g.titles {
                @for at in 0..count {
                    @let begin = self.from + at as u64 * self.step;
                    @let x = along.x(begin as f64);
                    rect x=(format!("{x:.1}")) y=(TOP) height=(HEIGHT - TOP)
                        width=(format!("{:.1}", along.x((begin + self.step) as f64) - x)) {
                        title {
                            (along.named(begin))
                            @for layer in &self.layers {
                                @if let Some(Some(value)) = layer.values.get(at) {
                                    "\n" (layer.name) ": " ((self.unit)(*value))
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns the last value of each layer, and the highest value.
    fn said(&self) -> String {
        let each = self.layers.iter().filter_map(|layer| {
            let there = || layer.values.iter().flatten().copied();
            let (last, highest) = (there().next_back()?, there().fold(0.0, f64::max));
            let (last, highest) = ((self.unit)(last), (self.unit)(highest));
            Some(format!("{}: now {last}, maximum {highest}.", layer.name))
        });
        each.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::{Layer, Lines};

    fn chart(is_stacked: bool) -> String {
        let layer = |name, values| Layer { name, class: "c-php", values };
        let lines = Lines {
            title: "Time",
            note: "",
            from: 600,
            step: 60,
            layers: vec![
                layer("a", vec![Some(1.0), None, Some(2.0)]),
                layer("b", vec![Some(3.0), None, Some(1.0)]),
            ],
            is_stacked,
            unit: |v| format!("{v} s"),
            events: &[],
        };
        lines.show().into_string()
    }

    #[test]
    fn stacked_areas_add_up_and_have_gaps() {
        let svg = chart(true);
        // The second area is stacked on the first, from 1 to 4 of 4.
        assert!(svg.contains(r#"d="M66.0 125.5V16.0H228.0V125.5H66.0ZM"#), "{svg}");
        assert!(svg.contains("<title>00:10:00\na: 1 s\nb: 3 s</title>"), "{svg}");
        assert!(svg.contains("<title>00:11:00</title>"), "{svg}");
        assert!(
            svg.contains(r#"aria-label="Time. a: now 2 s, maximum 2 s. b: now 1 s, maximum 3 s.""#)
        );
    }

    #[test]
    fn lines_are_not_stacked() {
        let svg = chart(false);
        assert!(svg.contains(r#"class="line c-php" d="M147.0"#), "{svg}");
        assert_eq!(svg.matches("<path class=\"line").count(), 2);
    }
}
