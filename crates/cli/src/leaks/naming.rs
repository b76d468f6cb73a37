//! Nodes of a heap walk → names and values in PHP syntax.

use super::heap_walk::{HeapWalk, Node};

/// Maximum number of steps in a path.
const DEPTH_MAX: usize = 24;
const TEXT_CHARS_MAX: usize = 60;

/// Returns the root of the path to a node.
pub(super) fn root(heap_walk: &HeapWalk, n: usize) -> &Node {
    let mut node = &heap_walk.nodes[n];
    // Ends because a parent is always before its members.
    while let Some(parent) = node.parent {
        node = &heap_walk.nodes[parent];
    }
    node
}

/// Returns the path to a node: `App\Registry::$items['a']->b`.
pub(super) fn name(heap_walk: &HeapWalk, n: usize) -> String {
    let mut steps = Vec::new();
    let mut at = n;
    while let Some(parent) = heap_walk.nodes[at].parent {
        steps.push(step(&heap_walk.nodes[parent], &heap_walk.nodes[at].key));
        at = parent;
    }
    steps.push(root_name(&heap_walk.nodes[at]));
    if steps.len() > DEPTH_MAX {
        steps.splice(DEPTH_MAX / 2..steps.len() - DEPTH_MAX / 2, ["…".to_owned()]);
    }
    steps.reverse();
    steps.concat()
}

/// Returns the class of the last object on the path, and the name of its next step.
pub(super) fn owner(heap_walk: &HeapWalk, n: usize) -> Option<(String, String)> {
    let mut at = n;
    while let Some(parent) = heap_walk.nodes[at].parent {
        let holder = &heap_walk.nodes[parent];
        if holder.value == b'o' && holder.text != "Closure" {
            return Some((holder.text.clone(), heap_walk.nodes[at].key.clone()));
        }
        at = parent;
    }
    None
}

fn step(parent: &Node, key: &str) -> String {
    match parent.value {
        b'o' if key.starts_with('#') => format!("{{{}}}", &key[1..]),
        b'o' if parent.text == "Closure" && key != "this" => format!(" use ${key}"),
        b'o' => format!("->{key}"),
        _ if key.parse::<i64>().is_ok() => format!("[{key}]"),
        _ => format!("['{}']", cut(key)),
    }
}

/// Returns the name of a root; roots that differ only in a number share one.
fn root_name(node: &Node) -> String {
    let numbered = ["autoloader ", "shutdown function "];
    match numbered
        .iter()
        .find(|name| node.kind.eq_ignore_ascii_case(&b'h') && node.key.starts_with(**name))
    {
        Some(name) => format!("{}s", name.trim_end()),
        None => node.key.clone(),
    }
}

/// Returns a value for display.
pub(super) fn value(node: &Node) -> String {
    match node.value {
        b'n' => "null".to_owned(),
        b's' => {
            let more = if node.text.len() as u64 >= node.count { "" } else { "…" };
            format!("'{}{more}'", cut(&node.text))
        }
        b'a' => match node.count {
            1 => "array of 1 element".to_owned(),
            n => format!("array of {n} elements"),
        },
        b'o' if node.kind == b'o' => format!("{} objects", node.count),
        b'o' if node.text == "Closure" && node.parent.is_some() && node.lines.0 > 0 => {
            format!("Closure of {}:{}", node.file, node.lines.0)
        }
        b'o' => node.text.clone(),
        b'r' => format!("resource ({})", node.text),
        b'i' if matches!(node.kind, b'o' | b'r') => node.count.to_string(),
        b'i' if node.kind == b'b' => format!("{} B", node.bytes),
        _ => cut(&node.text),
    }
}

fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(TEXT_CHARS_MAX).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

/// FNV-1a, 64 bits: the result is the same in each run.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_node_is_php_syntax() {
        let node = |kind: u8, value: u8, key: &str, text: &str, parent| Node {
            kind,
            value,
            key: key.to_owned(),
            text: text.to_owned(),
            parent,
            ..Node::default()
        };
        let nodes = vec![
            node(b's', b'a', "A::$all", "", None),
            node(b'M', b'o', "first", "Box", Some(0)),
            node(b'M', b'a', "lid", "", Some(1)),
            node(b'M', b's', "3", "x", Some(2)),
            node(b'h', b'a', "autoloader 2", "", None),
        ];
        let heap_walk = HeapWalk { nodes, ..HeapWalk::default() };
        assert_eq!(name(&heap_walk, 3), "A::$all['first']->lid[3]");
        assert_eq!(name(&heap_walk, 4), "autoloaders");
        assert_eq!(root(&heap_walk, 3).key, "A::$all");
        assert_eq!(owner(&heap_walk, 3), Some(("Box".to_owned(), "lid".to_owned())));
        assert_eq!(owner(&heap_walk, 1), None);
    }
}
