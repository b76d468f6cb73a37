//! Two censuses of one process → what differs, each by its name.
//!
//! A container is told by what its members are named, a member by its own value: so of `$a['b']['c']` that has grown only
//! the innermost is told. What a new container brings along counts as bytes of the one that it was put into.

use super::census::{Census, MEMBER, Node};
use super::naming;
use std::collections::{BTreeMap, HashMap};

/// Something that is not as it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// A letter of walk.h: of the root that leads there.
    pub(super) kind: u8,
    /// The way there, as PHP code would write it.
    pub(super) name: String,
    /// Absent: it was not there, or is not there any more.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Members that came, less those that went; or bytes of a string.
    pub(super) grown: i64,
    /// With all that came below.
    pub(super) bytes: i64,
    /// What two requests must have alike to have left the same.
    pub(super) print: u64,
    /// Where it is declared: a file with the lines to look between.
    pub(super) file: String,
    pub(super) lines: (u32, u32),
    /// The class and the property that hold it, if an object does.
    pub(super) owner: Option<(String, String)>,
    /// It has members: its growth is of their number.
    pub(super) container: bool,
    /// The name of the root, by which its declaration is found.
    pub(super) root: String,
}

/// What is asked of a node's place in the other census.
struct Index<'a> {
    roots: HashMap<(u8, &'a str, usize), usize>,
    members: HashMap<(usize, &'a str), usize>,
    objects: HashMap<(u32, &'a str), usize>,
}

const OBJECT: u8 = b'o';
const ARRAY: u8 = b'a';
/// A constant expression that nobody has asked for yet.
const UNKNOWN: u8 = b'x';

impl Index<'_> {
    fn of(census: &Census) -> Index<'_> {
        let mut index =
            Index { roots: HashMap::new(), members: HashMap::new(), objects: HashMap::new() };
        let mut seen = HashMap::new();
        for (n, node) in census.nodes.iter().enumerate() {
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

/// Names of roots are not always unique: functions of two files, say.
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

/// Where each node of the later census was in the former one: as a value, and as a container.
struct Matches {
    slots: Vec<Option<usize>>,
    bodies: Vec<Option<usize>>,
}

impl Matches {
    fn of(before: &Census, index: &Index, after: &Census) -> Matches {
        let (mut slots, mut bodies) = (Vec::new(), Vec::<Option<usize>>::new());
        let mut seen = HashMap::new();
        for node in &after.nodes {
            let slot = match node.parent {
                Some(parent) => bodies[parent]
                    .and_then(|parent| index.members.get(&(parent, node.key.as_str()))),
                None => index.roots.get(&root_key(node, &mut seen)),
            };
            let slot = slot.copied();
            // An object is itself wherever it stands.
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

/// Members that came and went, by the place of the container in the later census.
#[derive(Default)]
struct Moves {
    added: i64,
    removed: i64,
    bytes: i64,
    print: u64,
}

/// All that differs, in no order.
pub(super) fn changes(before: &Census, after: &Census) -> Vec<Change> {
    let index = Index::of(before);
    let matches = Matches::of(before, &index, after);
    let mut moves: BTreeMap<usize, Moves> = BTreeMap::new();
    let mut found = Vec::new();
    for (n, node) in after.nodes.iter().enumerate() {
        match matches.slots[n] {
            Some(slot) => found.extend(changed(&before.nodes[slot], after, n)),
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
    found.extend(moves.into_iter().filter_map(|(n, moves)| {
        let slot = matches.slots[n].or(matches.bodies[n])?;
        Some(moved(&before.nodes[slot], after, n, &moves))
    }));
    found
}

/// A name that was not there. A handler more is one, whatever it holds.
fn came_by_itself(after: &Census, n: usize) -> Change {
    let mut change = change(after, n, None);
    if change.kind.eq_ignore_ascii_case(&b'h') {
        change.grown = 1;
    }
    change
}

/// A member that was not there: it is counted with the nearest container that was.
fn came(
    after: &Census,
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
        moves.print = moves.print.wrapping_mul(31) ^ naming::hash(&node.key) ^ node.hash;
    }
}

/// Members of the former census that no member of the later one answers to.
fn went(before: &Census, matches: &Matches, after: &Census, moves: &mut BTreeMap<usize, Moves>) {
    let mut answered = vec![false; before.nodes.len()];
    let mut open = HashMap::new();
    for (n, node) in after.nodes.iter().enumerate() {
        if let Some(slot) = matches.slots[n] {
            answered[slot] = true;
        }
        if let Some(body) = matches.bodies[n].filter(|_| is_container(node) && !node.closed) {
            open.insert(body, n);
        }
    }
    for (n, node) in before.nodes.iter().enumerate() {
        let container = node.parent.and_then(|parent| open.get(&parent));
        if let (false, Some(container)) = (answered[n], container) {
            let moves = moves.entry(*container).or_default();
            moves.removed += 1;
            moves.bytes -= i64::try_from(node.bytes).unwrap_or(0);
        }
    }
}

/// Roots that are not there any more.
fn gone(before: &Census, after: &Census) -> Vec<Change> {
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

/// A value whose name was there before; its members are looked at by themselves.
fn changed(before: &Node, after: &Census, n: usize) -> Option<Change> {
    let node = &after.nodes[n];
    if before.value == UNKNOWN || node.value == UNKNOWN {
        return None;
    }
    let closed = before.closed || node.closed;
    let same = match (before.value == node.value, node.value) {
        (true, ARRAY) if closed => {
            // What was told elsewhere, or not at all, has a number of members.
            let comparable = before.closed && node.closed;
            before.count == node.count && !(comparable && before.hash != node.hash)
        }
        (true, ARRAY) => true,
        (same, _) => same && before.hash == node.hash,
    };
    (!same).then(|| change(after, n, Some(before)))
}

/// A container whose members are others.
fn moved(before: &Node, after: &Census, n: usize, moves: &Moves) -> Change {
    let mut change = change(after, n, Some(before));
    change.grown = moves.added - moves.removed;
    change.bytes = moves.bytes;
    change.print = moves.print;
    if change.grown == 0 {
        let text = format!("{} of {} members are others", moves.added, after.nodes[n].count);
        change.after = Some(text);
    }
    change
}

fn change(census: &Census, n: usize, before: Option<&Node>) -> Change {
    let node = &census.nodes[n];
    let root = naming::root(census, n);
    let size = |node: &Node| i64::try_from(node.count).unwrap_or(0);
    let held = |node: &Node| i64::try_from(node.bytes).unwrap_or(0);
    let (was, had) = before.map_or((0, 0), |node| (size(node), held(node)));
    Change {
        kind: root.kind,
        name: naming::name(census, n),
        before: before.map(naming::value),
        after: Some(naming::value(node)),
        grown: size(node) - was,
        bytes: held(node) - had,
        print: node.hash,
        file: root.file.clone(),
        lines: root.lines,
        owner: naming::owner(census, n),
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

    /// `A::$b`, an array of texts.
    fn array(values: &[&str]) -> Census {
        let mut root = node(b's', ARRAY, "A::$b", "", None);
        root.count = values.len() as u64;
        root.hash = 0;
        let mut nodes = vec![root];
        for (n, value) in values.iter().enumerate() {
            nodes.push(node(MEMBER, b's', &n.to_string(), value, Some(0)));
        }
        Census { nodes, ..Census::default() }
    }

    #[test]
    fn what_came_is_counted_and_what_changed_is_shown() {
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
    fn objects_are_known_wherever_they_stand() {
        let census = |holder: &str, value: &str| {
            let mut object = node(b'g', OBJECT, holder, "Cart", None);
            object.handle = 5;
            let member = node(MEMBER, b's', "owner", value, Some(0));
            Census { nodes: vec![object, member], ..Census::default() }
        };
        let found = changes(&census("$a", "x"), &census("$b", "y"));
        let names: Vec<_> = found.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["$b", "$b->owner", "$a"]);
    }
}
