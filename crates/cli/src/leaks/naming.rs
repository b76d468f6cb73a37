//! Nodes of a census → names and values as PHP code would write them.

use super::census::{Census, Node};

/// Ways are not longer than that.
const DEPTH_MAX: usize = 24;
const TEXT_CHARS_MAX: usize = 60;

/// The root from which the way to a node leads.
pub(super) fn root(census: &Census, n: usize) -> &Node {
    let mut node = &census.nodes[n];
    // A parent stands before its members, so that this ends.
    while let Some(parent) = node.parent {
        node = &census.nodes[parent];
    }
    node
}

/// `App\Registry::$items['a']->b`.
pub(super) fn name(census: &Census, n: usize) -> String {
    let mut steps = Vec::new();
    let mut at = n;
    while let Some(parent) = census.nodes[at].parent {
        steps.push(step(&census.nodes[parent], &census.nodes[at].key));
        at = parent;
    }
    steps.push(root_name(&census.nodes[at]));
    if steps.len() > DEPTH_MAX {
        steps.splice(DEPTH_MAX / 2..steps.len() - DEPTH_MAX / 2, ["…".to_owned()]);
    }
    steps.reverse();
    steps.concat()
}

/// The class of the last object on the way, and what of it leads on.
pub(super) fn owner(census: &Census, n: usize) -> Option<(String, String)> {
    let mut at = n;
    while let Some(parent) = census.nodes[at].parent {
        let holder = &census.nodes[parent];
        if holder.value == b'o' && holder.text != "Closure" {
            return Some((holder.text.clone(), census.nodes[at].key.clone()));
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

/// Of several that are only told apart by a number: what they are together.
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

/// What a reader sees of a value.
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

/// FNV-1a, of 64 bits: the same in each run.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_reads_as_code() {
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
        let census = Census { nodes, ..Census::default() };
        assert_eq!(name(&census, 3), "A::$all['first']->lid[3]");
        assert_eq!(name(&census, 4), "autoloaders");
        assert_eq!(root(&census, 3).key, "A::$all");
        assert_eq!(owner(&census, 3), Some(("Box".to_owned(), "lid".to_owned())));
        assert_eq!(owner(&census, 1), None);
    }
}
