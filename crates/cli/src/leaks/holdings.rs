//! What a process holds of the kernel, by what it is: the number of a descriptor or of a child says nothing.

use super::census::{Census, Node};
use std::collections::BTreeMap;

const DESCRIPTOR: u8 = b'd';
const MAPPING: u8 = b'm';
const CHILD: u8 = b'p';

/// One node per file, socket or program instead of one per number.
pub(super) fn group(census: &mut Census) {
    let mut groups: BTreeMap<(u8, String), (u64, u64)> = BTreeMap::new();
    for node in &census.nodes {
        if let Some(name) = name(node) {
            let (count, bytes) = groups.entry((node.kind, name)).or_default();
            *count += 1;
            *bytes += node.bytes;
        }
    }
    // In place: members know their parents by their numbers, and none of these has any.
    for node in census.nodes.iter_mut().filter(|node| name(node).is_some()) {
        let at = (node.kind, name(node).unwrap_or_default());
        node.key.clone_from(&at.1);
        // The first of each takes all, the others stay as nothing.
        let (count, bytes) = groups.remove(&at).unwrap_or_default();
        (node.count, node.bytes, node.hash) = (count, bytes, count);
        node.kind = if count == 0 { 0 } else { node.kind };
        node.text = format!("{count} open");
    }
}

fn name(node: &Node) -> Option<String> {
    match node.kind {
        DESCRIPTOR => Some(kind_of_descriptor(&node.text)),
        MAPPING => Some(node.key.clone()),
        CHILD => Some("child processes".to_owned()),
        _ => None,
    }
}

/// `socket:[4711]` → `a socket`: the number is the kernel's.
fn kind_of_descriptor(link: &str) -> String {
    match link.split_once(":[") {
        Some((kind, _)) => format!("a {kind}"),
        None => link.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_by_what_they_are() {
        let open = |key: &str, text: &str| Node {
            kind: DESCRIPTOR,
            key: key.to_owned(),
            text: text.to_owned(),
            ..Node::default()
        };
        let nodes = vec![open("3", "socket:[7]"), open("4", "/tmp/a"), open("9", "socket:[8]")];
        let mut census = Census { nodes, ..Census::default() };
        group(&mut census);
        let found: Vec<_> =
            census.of_kind(DESCRIPTOR).map(|node| (node.key.as_str(), node.count)).collect();
        assert_eq!(found, [("a socket", 2), ("/tmp/a", 1)]);
    }
}
