//! Two censuses of one process → the differences, by name.
//!
//! A container is compared by the names of its members, a member by its own value. So if
//! `$a['b']['c']` has grown, only the innermost container is reported. The contents of a new
//! container are counted as bytes of the container that it was added to.

use super::heap_walk::{HeapWalk, MEMBER, Node};
use super::naming;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// Kind of the root that leads to it, a letter of walk.h.
    pub(super) kind: u8,
    /// Path to it, in PHP syntax.
    pub(super) name: String,
    /// Value before; `None`: the name is new. The same for `after`: the name is gone.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Number of added members minus removed ones, or bytes of a string.
    pub(super) grown: i64,
    /// Bytes, all new members below included.
    pub(super) bytes: i64,
    /// Fingerprint: equal for two requests that left the same data.
    pub(super) print: u64,
    /// Members added to a container and removed from it.
    pub(super) turnover: Turnover,
    /// File of the declaration, and the lines to search.
    pub(super) file: String,
    pub(super) lines: (u32, u32),
    /// Class and property that hold it, if an object does.
    pub(super) owner: Option<(String, String)>,
    /// Whether it is a container; then `grown` counts members.
    pub(super) container: bool,
    /// Name of the root, by which the declaration is found.
    pub(super) root: String,
}

/// Members added to a container and removed from it, by the hashes of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Turnover {
    pub(super) added: u64,
    pub(super) removed: u64,
    /// Whether the container has members that it had before.
    pub(super) keeps_some: bool,
}

/// Index for finding a node's counterpart in the other heap walk.
struct Index<'a> {
    roots: HashMap<(u8, &'a str, usize), usize>,
    members: HashMap<(usize, &'a str), usize>,
    objects: HashMap<(u32, &'a str), usize>,
}

const OBJECT: u8 = b'o';
const ARRAY: u8 = b'a';
/// A constant expression that is not evaluated yet.
const UNKNOWN: u8 = b'x';

impl Index<'_> {
    fn of(heap_walk: &HeapWalk) -> Index<'_> {
        let mut index =
            Index { roots: HashMap::new(), members: HashMap::new(), objects: HashMap::new() };
        let mut seen = HashMap::new();
        for (n, node) in heap_walk.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => {
                    index.members.insert((parent, &node.key), n);
                }
                None => {
                    index.roots.insert(root_key(node, &mut seen), n);
                }
            }
            if is_open_object(node) {
                index.objects.insert((node.handle, &node.text), n);
            }
        }
        index
    }
}

/// Returns a unique key of a root. Names can repeat, for example functions of two files.
fn root_key<'a>(node: &'a Node, seen: &mut HashMap<(u8, &'a str), usize>) -> (u8, &'a str, usize) {
    let nth = seen.entry((node.kind, &node.key)).or_default();
    *nth += 1;
    (node.kind, &node.key, *nth)
}

fn is_open_object(node: &Node) -> bool {
    node.value == OBJECT && !node.closed && node.kind != b'o'
}

fn is_container(node: &Node) -> bool {
    node.value == ARRAY || node.value == OBJECT
}

/// Counterpart of each node of the later heap walk in the earlier one: by name (`slots`), and for
/// containers by identity (`bodies`).
struct Matches {
    slots: Vec<Option<usize>>,
    bodies: Vec<Option<usize>>,
}

impl Matches {
    fn of(before: &HeapWalk, index: &Index, after: &HeapWalk) -> Matches {
        let (mut slots, mut bodies) = (Vec::new(), Vec::<Option<usize>>::new());
        let mut seen = HashMap::new();
        for node in &after.nodes {
            let slot = match node.parent {
                Some(parent) => bodies[parent]
                    .and_then(|parent| index.members.get(&(parent, node.key.as_str()))),
                None => index.roots.get(&root_key(node, &mut seen)),
            };
            let slot = slot.copied();
            // An object is the same one regardless of the names that refer to it.
            let own = index.objects.get(&(node.handle, node.text.as_str())).copied();
            let body = match own.filter(|_| is_open_object(node)) {
                Some(own) => Some(own),
                None => slot.filter(|at| before.nodes[*at].value == node.value),
            };
            slots.push(slot);
            bodies.push(body);
        }
        Matches { slots, bodies }
    }
}

/// Added and removed members, by the container's index in the later heap walk.
#[derive(Default)]
struct Moves {
    added: i64,
    removed: i64,
    bytes: i64,
    print: u64,
    added_keys: u64,
    removed_keys: u64,
}

/// Returns all differences, in no particular order.
pub(super) fn changes(before: &HeapWalk, after: &HeapWalk) -> Vec<Change> {
    let index = Index::of(before);
    let matches = Matches::of(before, &index, after);
    let mut moves: BTreeMap<usize, Moves> = BTreeMap::new();
    let mut found = Vec::new();
    // Containers whose members are compared by their number only.
    let mut counted = HashSet::new();
    for (n, node) in after.nodes.iter().enumerate() {
        match matches.slots[n] {
            Some(slot) => {
                let change = changed(&before.nodes[slot], after, n);
                counted.extend(change.iter().map(|_| n));
                found.extend(change);
            }
            None => match node.parent {
                None => found.push(came_by_itself(after, n)),
                Some(parent) => came(after, &matches, parent, node, &mut moves),
            },
        }
    }
    let is_whole = !before.cut && !after.cut;
    if is_whole {
        went(before, &matches, after, &mut moves);
        found.extend(gone(before, after));
    }
    let is_listed = |(n, _): &(usize, Moves)| !counted.contains(n);
    found.extend(moves.into_iter().filter(is_listed).filter_map(|(n, moves)| {
        let slot = matches.slots[n].or(matches.bodies[n])?;
        Some(moved(&before.nodes[slot], after, n, &moves))
    }));
    found
}

/// Returns the change for a new root. An additional handler counts as one, regardless of its
/// contents.
fn came_by_itself(after: &HeapWalk, n: usize) -> Change {
    let mut change = change(after, n, None);
    if change.kind.eq_ignore_ascii_case(&b'h') {
        change.grown = 1;
    }
    change
}

/// Counts a new member for the nearest container that existed before.
fn came(
    after: &HeapWalk,
    matches: &Matches,
    parent: usize,
    node: &Node,
    moves: &mut BTreeMap<usize, Moves>,
) {
    let mut at = parent;
    let direct = matches.bodies[at].is_some();
    while matches.bodies[at].is_none() {
        match after.nodes[at].parent {
            Some(above) => at = above,
            None => return,
        }
    }
    let moves = moves.entry(at).or_default();
    moves.bytes += i64::try_from(node.bytes).unwrap_or(0);
    if direct {
        moves.added += 1;
        moves.added_keys ^= naming::hash(&node.key);
        moves.print = moves.print.wrapping_mul(31) ^ naming::hash(&node.key) ^ node.hash;
    }
}

/// Counts members of the earlier heap walk that have no counterpart in the later one.
fn went(
    before: &HeapWalk,
    matches: &Matches,
    after: &HeapWalk,
    moves: &mut BTreeMap<usize, Moves>,
) {
    let mut responded = vec![false; before.nodes.len()];
    let mut open = HashMap::new();
    for (n, node) in after.nodes.iter().enumerate() {
        if let Some(slot) = matches.slots[n] {
            responded[slot] = true;
        }
        if let Some(body) = matches.bodies[n].filter(|_| is_container(node) && !node.closed) {
            open.insert(body, n);
        }
    }
    for (n, node) in before.nodes.iter().enumerate() {
        let container = node.parent.and_then(|parent| open.get(&parent));
        if let (false, Some(container)) = (responded[n], container) {
            let moves = moves.entry(*container).or_default();
            moves.removed += 1;
            moves.removed_keys ^= naming::hash(&node.key);
            moves.bytes -= i64::try_from(node.bytes).unwrap_or(0);
        }
    }
}

/// Returns the roots that no longer exist.
fn gone(before: &HeapWalk, after: &HeapWalk) -> Vec<Change> {
    let index = Index::of(after);
    let mut seen = HashMap::new();
    let mut found = Vec::new();
    for (n, node) in before.nodes.iter().enumerate() {
        if node.kind != MEMBER && !index.roots.contains_key(&root_key(node, &mut seen)) {
            let mut change = change(before, n, None);
            (change.before, change.after) = (change.after, None);
            change.grown = -change.grown;
            change.bytes = -change.bytes;
            found.push(change);
        }
    }
    found
}

/// Returns the change of a value whose name existed before; its members are compared separately.
fn changed(before: &Node, after: &HeapWalk, n: usize) -> Option<Change> {
    let node = &after.nodes[n];
    if before.value == UNKNOWN || node.value == UNKNOWN {
        return None;
    }
    let closed = before.closed || node.closed;
    let same = match (before.value == node.value, node.value) {
        // All members of an array that was empty are new, and listed.
        (true, ARRAY) if before.count == 0 && !node.closed => true,
        (true, ARRAY) if closed => {
            // An array whose members are listed elsewhere, or not at all, is compared by their
            // number.
            let comparable = before.closed && node.closed;
            before.count == node.count && !(comparable && before.hash != node.hash)
        }
        (true, ARRAY) => true,
        (same, _) => same && before.hash == node.hash,
    };
    (!same).then(|| change(after, n, Some(before)))
}

/// Returns the change of a container with added or removed members.
fn moved(before: &Node, after: &HeapWalk, n: usize, moves: &Moves) -> Change {
    let mut change = change(after, n, Some(before));
    change.grown = moves.added - moves.removed;
    change.bytes = moves.bytes;
    change.print = moves.print;
    let size = i64::try_from(after.nodes[n].count).unwrap_or(0);
    change.turnover = Turnover {
        added: moves.added_keys,
        removed: moves.removed_keys,
        keeps_some: size > moves.added,
    };
    if change.grown == 0 {
        let text = format!("{} of {} members were replaced", moves.added, after.nodes[n].count);
        change.after = Some(text);
    }
    change
}

fn change(heap_walk: &HeapWalk, n: usize, before: Option<&Node>) -> Change {
    let node = &heap_walk.nodes[n];
    let root = naming::root(heap_walk, n);
    let size = |node: &Node| i64::try_from(node.count).unwrap_or(0);
    let held = |node: &Node| i64::try_from(node.bytes).unwrap_or(0);
    let (was, had) = before.map_or((0, 0), |node| (size(node), held(node)));
    Change {
        kind: root.kind,
        name: naming::name(heap_walk, n),
        before: before.map(naming::value),
        after: Some(naming::value(node)),
        grown: size(node) - was,
        bytes: held(node) - had,
        print: node.hash,
        turnover: Turnover::default(),
        file: root.file.clone(),
        lines: root.lines,
        owner: naming::owner(heap_walk, n),
        container: is_container(node),
        root: root.key.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: u8, value: u8, key: &str, text: &str, parent: Option<usize>) -> Node {
        let hash = naming::hash(text);
        let (key, text) = (key.to_owned(), text.to_owned());
        Node { parent, kind, value, hash, key, text, bytes: 10, ..Node::default() }
    }

    /// Returns a heap walk with `A::$b`, an array of texts.
    fn array(values: &[&str]) -> HeapWalk {
        let mut root = node(b's', ARRAY, "A::$b", "", None);
        root.count = values.len() as u64;
        root.hash = 0;
        let mut nodes = vec![root];
        for (n, value) in values.iter().enumerate() {
            nodes.push(node(MEMBER, b's', &n.to_string(), value, Some(0)));
        }
        HeapWalk { nodes, ..HeapWalk::default() }
    }

    #[test]
    fn new_members_are_counted_and_changes_shown() {
        assert_eq!(changes(&array(&["a"]), &array(&["a"])), []);
        let found = changes(&array(&["a"]), &array(&["a", "b", "c"]));
        let [grown] = &found[..] else { panic!("one: {found:?}") };
        assert_eq!((grown.name.as_str(), grown.grown, grown.bytes), ("A::$b", 2, 20));
        let found = changes(&array(&["a", "b"]), &array(&["a", "z"]));
        let [changed] = &found[..] else { panic!("one: {found:?}") };
        assert_eq!(changed.name, "A::$b[1]");
        assert_eq!(changed.before.as_deref(), Some("'b'"));
        assert_eq!(changed.after.as_deref(), Some("'z'"));
        let found = changes(&array(&["a", "b"]), &array(&["a"]));
        assert_eq!(found.iter().map(|c| c.grown).collect::<Vec<_>>(), [-1]);
    }

    #[test]
    fn member_of_an_empty_array_is_counted_once() {
        // The walk does not look into empty arrays.
        let mut empty = array(&[]);
        empty.nodes[0].closed = true;
        let grown = |before: &HeapWalk, after: &HeapWalk| {
            changes(before, after).iter().map(|change| change.grown).collect::<Vec<_>>()
        };
        assert_eq!(grown(&empty, &array(&["a"])), [1]);
        assert_eq!(grown(&array(&["a", "b"]), &empty), [-2]);
    }

    #[test]
    fn objects_are_matched_by_identity() {
        let heap_walk = |holder: &str, value: &str| {
            let mut object = node(b'g', OBJECT, holder, "Cart", None);
            object.handle = 5;
            let member = node(MEMBER, b's', "owner", value, Some(0));
            HeapWalk { nodes: vec![object, member], ..HeapWalk::default() }
        };
        let found = changes(&heap_walk("$a", "x"), &heap_walk("$b", "y"));
        let names: Vec<_> = found.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["$b", "$b->owner", "$a"]);
    }
}
