//! A census, as a worker has written it (csrc/census/report.c): what there was in its process, node by node.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// More than a worker writes.
const FILE_BYTES_MAX: u64 = 160 << 20;
/// `record` of report.c.
const RECORD_BYTES: usize = 56;

/// The first record's kind, and the last one's.
const BEGIN: u8 = b'<';
const END: u8 = b'>';
/// A member of an array or of an object.
pub(super) const MEMBER: u8 = b'M';

/// One thing: a name with its value, or a fact.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Its place in [`Census::nodes`]; its parent's, when it is a member.
    pub(super) parent: Option<usize>,
    /// A letter of walk.h.
    pub(super) kind: u8,
    /// A letter for a type of PHP's.
    pub(super) value: u8,
    /// Its members are not told.
    pub(super) closed: bool,
    /// Of an object, while it lives.
    pub(super) handle: u32,
    /// Members of a container, bytes of a string, or how many there are.
    pub(super) count: u64,
    pub(super) hash: u64,
    pub(super) bytes: u64,
    pub(super) key: String,
    pub(super) text: String,
    pub(super) file: String,
    /// The first line of what declares it, and the last.
    pub(super) lines: (u32, u32),
}

/// All there was at one time.
#[expect(clippy::struct_excessive_bools, reason = "the words of its head, each by itself")]
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) process: u32,
    /// In the resident model; else below a checkpoint.
    pub(super) resident: bool,
    /// There is none: the request ended in a fatal error.
    pub(super) fatal: bool,
    /// Of a worker before its first request.
    pub(super) begins: bool,
    /// A limit of the worker's was met: not all is told.
    pub(super) cut: bool,
    pub(super) nodes: Vec<Node>,
}

impl Census {
    pub(super) fn read(file: &Path) -> Result<Census> {
        let shown = file.display();
        let size = std::fs::metadata(file).with_context(|| format!("no census `{shown}`"))?.len();
        if size > FILE_BYTES_MAX {
            bail!("the census `{shown}` has {size} bytes, {FILE_BYTES_MAX} is the most");
        }
        let bytes = std::fs::read(file).with_context(|| format!("cannot read `{shown}`"))?;
        parse(&bytes).with_context(|| format!("the census `{shown}` is not understood"))
    }

    /// Those of a kind.
    pub(super) fn of_kind(&self, kind: u8) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.kind == kind)
    }
}

/// Numbers as this machine has them, and texts behind them.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>().context("it ends too early")?;
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
        let (taken, rest) = self.bytes.split_at_checked(len).context("it ends in a text")?;
        self.bytes = rest;
        Ok(String::from_utf8_lossy(taken).into_owned())
    }
}

fn parse(bytes: &[u8]) -> Result<Census> {
    let mut reader = Reader { bytes };
    let mut census = Census::default();
    // By a record's id, its node's place: the ids ascend from 1.
    let mut places: Vec<Option<usize>> = vec![None];
    loop {
        let (id, parent, node) = record(&mut reader)?;
        match node.kind {
            END => {
                census.cut = node.closed;
                return Ok(census);
            }
            BEGIN => {
                census.process = node.handle;
                census.resident = node.text == "resident";
                census.fatal = node.text == "fatal";
                census.begins = node.key.starts_with("begin-");
                places.push(None);
                continue;
            }
            _ if id as usize != places.len() => bail!("record {id} is not in its place"),
            _ => {}
        }
        let above = places.get(parent as usize).copied().flatten();
        if node.kind == MEMBER && above.is_none() {
            bail!("record {id} has no parent");
        }
        places.push(Some(census.nodes.len()));
        census.nodes.push(Node { parent: above, ..node });
    }
}

/// Its id, its parent's, and the rest.
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

    /// A record as report.c writes it.
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
        let census = parse(&bytes).expect("it is whole");
        assert_eq!((census.process, census.resident, census.cut), (3, true, false));
        let [first, second] = &census.nodes[..] else { panic!("two: {census:?}") };
        assert_eq!((first.key.as_str(), first.lines, first.count), ("A::$b", (10, 20), 7));
        assert_eq!((second.parent, second.text.as_str()), (Some(0), "v"));
    }

    #[test]
    fn what_is_cut_or_garbled_is_refused() {
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
