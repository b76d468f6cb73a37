//! A tree of calls → the boxes of a flame graph: what all who draw one have in common.

#![allow(clippy::cast_precision_loss)] // Shares of a whole; their last bits are no matter.

use super::svg::Measure;
use super::tree::{self, Node};
use super::{Profile, Weight};
use std::collections::BTreeMap;

/// Rows of a picture; deeper calls are not drawn.
pub const ROWS_MAX: usize = 600;

/// One function, called one way.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameBox {
    /// The function.
    pub label: String,
    /// Where it begins, and how wide it is: parts of the whole.
    pub from: f64,
    /// See `from`.
    pub width: f64,
    /// 0 for the whole.
    pub row: usize,
    /// What it and all above weigh.
    pub weight: Weight,
    /// What it weighed before, in the measure and the scale of now; `None` where nothing is compared.
    pub before: Option<f64>,
}

/// What a weight comes to.
pub fn of(weight: Weight, measure: Measure) -> u64 {
    match measure {
        Measure::Wall => weight.wall_ns,
        Measure::Cpu => weight.cpu_ns,
    }
}

/// The boxes, each before those above it; those below `narrowest` of the whole are left out.
pub fn boxes(profile: &Profile, measure: Measure, narrowest: f64) -> Vec<FlameBox> {
    boxes_against(profile, None, measure, narrowest)
}

/// The same, each with what it weighed in another profile, multiplied by a factor that makes the two comparable.
pub fn boxes_against(
    profile: &Profile,
    before: Option<(&Profile, f64)>,
    measure: Measure,
    narrowest: f64,
) -> Vec<FlameBox> {
    let root = tree::of(profile);
    let other = before.map(|(profile, factor)| (tree::of(profile), factor));
    let all = of(root.total, measure);
    let mut drawing = Drawing { out: Vec::new(), measure, all: all.max(1) as f64, narrowest };
    let other = other.as_ref().map(|(node, factor)| (Some(node), *factor));
    drawing.node("all", &root, other, (0.0, 1.0), 0);
    drawing.out
}

struct Drawing {
    out: Vec<FlameBox>,
    measure: Measure,
    all: f64,
    narrowest: f64,
}

/// The same call before, if there was one, and the factor.
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
        let before = other.map(|(node, factor)| {
            node.map_or(0.0, |node| of(node.total, self.measure) as f64 * factor)
        });
        let weight = node.total;
        self.out.push(FlameBox { label: label.to_owned(), from, width, row, weight, before });
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
