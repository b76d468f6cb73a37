//! Groups a process's kernel resources by kind, because the number of a descriptor or of a child
//! has no meaning.

use super::heap_walk::{HeapWalk, Node};
use std::collections::BTreeMap;

const DESCRIPTOR: u8 = b'd';
const MAPPING: u8 = b'm';
const CHILD: u8 = b'p';

/// Replaces the nodes for single numbers by one node per file, socket or program.
pub(super) fn group(heap_walk: &mut HeapWalk) {
    let mut groups: BTreeMap<(u8, String), (u64, u64)> = BTreeMap::new();
    let names: Vec<_> = heap_walk.nodes.iter().map(name).collect();
    for (node, name) in heap_walk.nodes.iter().zip(&names) {
        if let Some(name) = name.clone() {
            let (count, bytes) = groups.entry((node.kind, name)).or_default();
            *count += 1;
            *bytes += node.bytes;
        }
    }
    // Changed in place: members refer to their parents by index. None of these nodes has members.
    for (node, name) in heap_walk.nodes.iter_mut().zip(names) {
        let Some(name) = name else { continue };
        let at = (node.kind, name);
        node.key.clone_from(&at.1);
        // The first node of each group gets the totals; the others become empty.
        let (count, bytes) = groups.remove(&at).unwrap_or_default();
        (node.count, node.bytes, node.hash) = (count, bytes, count);
        node.kind = if count == 0 { 0 } else { node.kind };
        node.text = format!("{count} open");
    }
}

fn name(node: &Node) -> Option<String> {
    match node.kind {
        DESCRIPTOR => Some(kind_of_descriptor(&node.text)),
        MAPPING => Some(kind_of_file(&node.key)),
        CHILD => Some("child processes".to_owned()),
        _ => None,
    }
}

/// Returns the kind of a descriptor: `socket:[4711]` → `a socket`; the number is the kernel's.
fn kind_of_descriptor(link: &str) -> String {
    match link.split_once(":[") {
        Some((kind, _)) => format!("a {kind}"),
        None => kind_of_file(link),
    }
}

/// Minimum length of a number that is replaced.
const NUMBER_MIN: usize = 3;
/// Minimum length of a hexadecimal text that is replaced, as from `uniqid()` or a hash.
const HASH_MIN: usize = 8;
/// PHP's temporary files: `php` and six letters or digits.
const TEMPORARY: (&str, usize) = ("php", 9);

/// Returns the kind of a file: `/tmp/report-4711.pdf` → `/tmp/report-*.pdf`. Files that differ only
/// in a number, and PHP's temporary files, are of one kind. A growing worker uses the same rule in
/// its reports (`crates/worker/csrc/heap_walk/holdings.c`).
pub(super) fn kind_of_file(path: &str) -> String {
    let (folder, base) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
    let (prefix, length) = TEMPORARY;
    let word = base.split(' ').next().unwrap_or_default();
    if base.starts_with(prefix) && word.len() == length {
        return format!("{folder}{prefix}*{}", &base[length..]);
    }
    let mut kind = folder.to_owned();
    let is_part = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let mut rest = base;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let end = if end == 0 { first.len_utf8() } else { end };
        let (run, behind) = rest.split_at(end);
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        let is_number = digits == run.len() && digits >= NUMBER_MIN;
        let is_hash = digits > 0 && run.len() >= HASH_MIN;
        kind.push_str(if is_number || is_hash { "*" } else { run });
        rest = behind;
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_in_a_number_are_of_one_kind() {
        for (path, expected) in [
            ("/tmp/phpAb3xYz (deleted)", "/tmp/php* (deleted)"),
            ("/tmp/phpunit.xml", "/tmp/phpunit.xml"),
            ("/srv/2026/report-4711.pdf", "/srv/2026/report-*.pdf"),
            ("/srv/cache/65f1a2b3c4d5e.tmp", "/srv/cache/*.tmp"),
            ("/srv/app/log4.txt", "/srv/app/log4.txt"),
            ("/srv/facade.php", "/srv/facade.php"),
            ("/SYSV00000000 (deleted)", "/SYSV* (deleted)"),
            ("/srv/größe-100", "/srv/größe-*"),
        ] {
            assert_eq!(kind_of_file(path), expected, "{path}");
        }
    }

    #[test]
    fn descriptors_are_counted_by_kind() {
        let open = |key: &str, text: &str| Node {
            kind: DESCRIPTOR,
            key: key.to_owned(),
            text: text.to_owned(),
            ..Node::default()
        };
        let nodes = vec![open("3", "socket:[7]"), open("4", "/tmp/a"), open("9", "socket:[8]")];
        let mut heap_walk = HeapWalk { nodes, ..HeapWalk::default() };
        group(&mut heap_walk);
        let found: Vec<_> =
            heap_walk.of_kind(DESCRIPTOR).map(|node| (node.key.as_str(), node.count)).collect();
        assert_eq!(found, [("a socket", 2), ("/tmp/a", 1)]);
    }
}
