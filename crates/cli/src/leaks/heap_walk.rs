//! The heap walk of a worker's process, node by node, as the worker wrote it
//! (`csrc/heap_walk/report.c`).

use anyhow::{Context, Result, bail};
use std::path::Path;

/// Maximum size of a file: more than a worker writes.
const FILE_BYTES_MAX: u64 = 160 << 20;
/// Size of `record` in report.c.
const RECORD_BYTES: usize = 56;

/// Kinds of the first and of the last record.
const BEGIN: u8 = b'<';
const END: u8 = b'>';
/// A member of an array or of an object.
pub(super) const MEMBER: u8 = b'M';

/// One node: a name with its value, or a fact.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Index of the parent in [`HeapWalk::nodes`], for a member.
    pub(super) parent: Option<usize>,
    /// Kind of the node, a letter of walk.h.
    pub(super) kind: u8,
    /// Type of the PHP value, a letter.
    pub(super) value: u8,
    /// Whether its members are not listed.
    pub(super) closed: bool,
    /// Handle of an object, unique while it lives.
    pub(super) handle: u32,
    /// Number of members of a container, bytes of a string, or number of such nodes.
    pub(super) count: u64,
    pub(super) hash: u64,
    pub(super) bytes: u64,
    pub(super) key: String,
    pub(super) text: String,
    pub(super) file: String,
    /// First and last line of the declaration.
    pub(super) lines: (u32, u32),
}

/// All nodes at one point in time.
#[expect(clippy::struct_excessive_bools, reason = "these are the fields of its header")]
#[derive(Debug, Default)]
pub(super) struct HeapWalk {
    pub(super) process: u32,
    /// Whether the application is resident; otherwise it runs from a checkpoint.
    pub(super) resident: bool,
    /// Whether there are no nodes because the request ended with a fatal error.
    pub(super) fatal: bool,
    /// Whether it was written before the worker's first request.
    pub(super) begins: bool,
    /// Whether a limit of the worker was reached, so that nodes are missing.
    pub(super) cut: bool,
    pub(super) nodes: Vec<Node>,
}

impl HeapWalk {
    pub(super) fn read(file: &Path) -> Result<HeapWalk> {
        let shown = file.display();
        let size = std::fs::metadata(file)
            .with_context(|| format!("cannot find the heap walk `{shown}`"))?
            .len();
        if size > FILE_BYTES_MAX {
            bail!("the heap walk `{shown}` has {size} bytes; the maximum is {FILE_BYTES_MAX}");
        }
        let bytes = std::fs::read(file).with_context(|| format!("cannot read `{shown}`"))?;
        parse(&bytes).with_context(|| format!("cannot parse the heap walk `{shown}`"))
    }

    /// Returns the nodes of a kind.
    pub(super) fn of_kind(&self, kind: u8) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.kind == kind)
    }
}

/// Reader of native-endian numbers and the texts after them.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>().context("unexpected end")?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<usize> {
        Ok(u16::from_ne_bytes(self.take()?).into())
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_ne_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_ne_bytes(self.take()?))
    }

    fn text(&mut self, len: usize) -> Result<String> {
        let (taken, rest) =
            self.bytes.split_at_checked(len).context("unexpected end within a text")?;
        self.bytes = rest;
        Ok(String::from_utf8_lossy(taken).into_owned())
    }
}

fn parse(bytes: &[u8]) -> Result<HeapWalk> {
    let mut reader = Reader { bytes };
    let mut heap_walk = HeapWalk::default();
    // Index of the node for each record id; ids ascend from 1.
    let mut places: Vec<Option<usize>> = vec![None];
    loop {
        let (id, parent, node) = record(&mut reader)?;
        match node.kind {
            END => {
                heap_walk.cut = node.closed;
                return Ok(heap_walk);
            }
            BEGIN => {
                heap_walk.process = node.handle;
                heap_walk.resident = node.text == "resident";
                heap_walk.fatal = node.text == "fatal";
                heap_walk.begins = node.key.starts_with("begin-");
                places.push(None);
                continue;
            }
            _ if id as usize != places.len() => bail!("record {id} is out of order"),
            _ => {}
        }
        let above = places.get(parent as usize).copied().flatten();
        if node.kind == MEMBER && above.is_none() {
            bail!("record {id} has no parent");
        }
        places.push(Some(heap_walk.nodes.len()));
        heap_walk.nodes.push(Node { parent: above, ..node });
    }
}

/// Reads the record's id, its parent's id, and the node.
fn record(reader: &mut Reader) -> Result<(u32, u32, Node)> {
    debug_assert_eq!(RECORD_BYTES, 4 + 4 * 2 + 6 * 4 + 2 * 8 + 4);
    let [kind, value, closed, _] = reader.take()?;
    let lengths = [reader.u16()?, reader.u16()?, reader.u16()?];
    reader.u16()?;
    let (id, parent, count, handle) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    let lines = (reader.u32()?, reader.u32()?);
    reader.take::<4>()?;
    let (hash, bytes) = (reader.u64()?, reader.u64()?);
    let [key, text, file] = lengths;
    let node = Node {
        parent: None,
        kind,
        value,
        closed: closed != 0,
        handle,
        count: count.into(),
        hash,
        bytes,
        key: reader.text(key)?,
        text: reader.text(text)?,
        file: reader.text(file)?,
        lines,
    };
    Ok((id, parent, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record as report.c writes it.
    fn written(kind: u8, id: u32, parent: u32, key: &str, text: &str) -> Vec<u8> {
        let mut out = vec![kind, b's', 0, 0];
        for len in [key.len(), text.len(), 0, 0] {
            out.extend(u16::try_from(len).expect("short").to_ne_bytes());
        }
        for number in [id, parent, 7, 3, 10, 20, 0] {
            out.extend(number.to_ne_bytes());
        }
        for number in [99_u64, 8] {
            out.extend(number.to_ne_bytes());
        }
        out.extend(key.bytes().chain(text.bytes()));
        out
    }

    #[test]
    fn records_become_nodes() {
        let bytes = [
            written(BEGIN, 1, 0, "id", "resident"),
            written(b's', 2, 0, "A::$b", ""),
            written(MEMBER, 3, 2, "k", "v"),
            written(END, 0, 0, "", ""),
        ]
        .concat();
        let heap_walk = parse(&bytes).expect("it is whole");
        assert_eq!((heap_walk.process, heap_walk.resident, heap_walk.cut), (3, true, false));
        let [first, second] = &heap_walk.nodes[..] else { panic!("two: {heap_walk:?}") };
        assert_eq!((first.key.as_str(), first.lines, first.count), ("A::$b", (10, 20), 7));
        assert_eq!((second.parent, second.text.as_str()), (Some(0), "v"));
    }

    #[test]
    fn truncated_or_garbled_heap_walk_is_rejected() {
        let whole = [written(b's', 1, 0, "a", "b"), written(END, 0, 0, "", "")].concat();
        assert!(parse(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "{end} bytes");
        }
        let orphan = [written(MEMBER, 1, 9, "a", "b"), written(END, 0, 0, "", "")].concat();
        assert!(parse(&orphan).is_err());
        let misplaced = [written(b's', 5, 0, "a", "b"), written(END, 0, 0, "", "")].concat();
        assert!(parse(&misplaced).is_err());
    }
}
