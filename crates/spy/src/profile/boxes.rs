//! Boxes of a flame graph, from a tree of calls. Shared by all code that draws one.

#![allow(clippy::cast_precision_loss)] // Shares of a whole; their last bits do not matter.

use super::difference::{Sum, each, error};
use super::measure::Measure;
use super::stacks::{Profile, Weight};
use super::tree::{self, Node};
use std::collections::BTreeMap;

pub use super::measure::of;

/// Maximum number of rows of a picture; deeper calls are not drawn.
pub const ROWS_MAX: usize = 600;

/// One function, reached by one path of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameBox {
    /// Label of the function.
    pub label: String,
    /// Left edge, as a fraction of the whole width.
    pub from: f64,
    /// Width, as a fraction of the whole width.
    pub width: f64,
    /// Row; 0 for the whole.
    pub row: usize,
    /// Weight, including that of all boxes above.
    pub weight: Weight,
    /// Previous weight, in the present measure and scale; `None` without a comparison.
    pub before: Option<f64>,
    /// Whether the difference from the previous weight is too large to be chance.
    pub is_significant: bool,
}

/// The boxes, each before those above it. Boxes narrower than `narrowest` of the whole are left
/// out.
pub fn boxes(profile: &Profile, measure: Measure, narrowest: f64) -> Vec<FlameBox> {
    boxes_against(profile, None, measure, narrowest)
}

/// Same as [`boxes`], each with its weight in another profile, multiplied by a factor that makes
/// the two comparable.
pub fn boxes_against(
    profile: &Profile,
    before: Option<(&Profile, f64)>,
    measure: Measure,
    narrowest: f64,
) -> Vec<FlameBox> {
    let root = tree::of(profile);
    let other = before.map(|(profile, factor)| (tree::of(profile), factor));
    let all = of(root.total, measure);
    let before = other.as_ref().map_or(0.0, |(node, by)| each(sum(node.total, *by, measure)));
    let each = (before, each(sum(root.total, 1.0, measure)));
    let all = all.max(1) as f64;
    let mut drawing = Drawing { out: Vec::new(), measure, all, each, narrowest };
    let other = other.as_ref().map(|(node, factor)| (Some(node), *factor));
    drawing.node("all", &root, other, (0.0, 1.0), 0);
    drawing.out
}

/// A weight, multiplied by a factor.
fn sum(weight: Weight, factor: f64, measure: Measure) -> Sum {
    Sum { value: of(weight, measure) as f64 * factor, samples: weight.samples }
}

struct Drawing {
    out: Vec<FlameBox>,
    measure: Measure,
    all: f64,
    /// Mean weights of a sample, before and now.
    each: (f64, f64),
    narrowest: f64,
}

/// The same call in the other profile, if it exists, and the factor.
type Other<'a> = Option<(Option<&'a Node>, f64)>;

impl Drawing {
    fn node(
        &mut self,
        label: &str,
        node: &Node,
        other: Other<'_>,
        (from, width): (f64, f64),
        row: usize,
    ) {
        if width < self.narrowest || row > ROWS_MAX {
            return;
        }
        let was = other.map(|(node, factor)| {
            node.map_or(Sum::default(), |node| sum(node.total, factor, self.measure))
        });
        let (weight, is) = (node.total, sum(node.total, 1.0, self.measure));
        let is_real = |was: Sum| (is.value - was.value).abs() > error(was, is, self.each);
        self.out.push(FlameBox {
            label: label.to_owned(),
            from,
            width,
            row,
            weight,
            before: was.map(|was| was.value),
            is_significant: was.is_some_and(is_real),
        });
        let mut at = from;
        let nobody = BTreeMap::new();
        let others = other.and_then(|(node, _)| node).map_or(&nobody, |node| &node.children);
        for (label, child) in &node.children {
            let part = of(child.total, self.measure) as f64 / self.all;
            let other = other.map(|(_, factor)| (others.get(label), factor));
            self.node(label, child, other, (at, part), row + 1);
            at += part;
        }
    }
}
