//! A profile as a tree of calls, from which flame graphs are drawn.

use super::stacks::{Profile, Weight};
use std::collections::BTreeMap;

/// Maximum number of nodes of a tree; further ones are left out, the lightest stacks first.
pub const NODES_MAX: usize = 50_000;

/// A function, reached by one path of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Weight of the node and of all nodes below.
    pub total: Weight,
    /// Callees, by label.
    pub children: BTreeMap<String, Node>,
}

/// The tree of all stacks, merged by the functions' labels.
pub fn of(profile: &Profile) -> Node {
    let mut stacks = profile.stacks();
    stacks.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.samples));
    let labels: Vec<_> = profile.functions().iter().map(|function| function.label()).collect();
    let mut root = Node::default();
    let mut left = NODES_MAX;
    for (calls, weight) in stacks {
        root.total.add(weight);
        let mut at = &mut root;
        for call in calls {
            let label = &labels[call.function as usize];
            if !at.children.contains_key(label) {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            at = at.children.entry(label.clone()).or_default();
            at.total.add(weight);
        }
    }
    root
}
