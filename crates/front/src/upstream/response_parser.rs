//! deliver: state machine that turns php-fpm's records into a response. Pure.

use super::record::{END_REQUEST, Record, STDERR, STDOUT};
use crate::runtime::upstream_failure::UpstreamFailure;
use bytes::{Bytes, BytesMut};

/// Maximum length of a response head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of consecutive records without content.
const EMPTY_MAX: u32 = 64;
/// Content length of the record that ends a request.
const END_BYTES: usize = 8;

/// Result of processing a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// The header lines, and the first bytes of the body.
    Head(Bytes, Bytes),
    Body(Bytes),
    /// A message for the log.
    Said(Bytes),
    /// The request is complete.
    End,
}

/// The response to one request.
#[derive(Debug)]
pub(super) struct Reply {
    id: u16,
    head: BytesMut,
    /// Offset up to which the end of the head was searched.
    looked: usize,
    has_head: bool,
    /// The body is complete.
    is_closed: bool,
    empty: u32,
}

impl Reply {
    pub(super) fn new(id: u16) -> Reply {
        let head = BytesMut::new();
        Reply { id, head, looked: 0, has_head: false, is_closed: false, empty: 0 }
    }

    pub(super) fn step(&mut self, record: Record) -> Result<Step, UpstreamFailure> {
        let Record { kind, id, content } = record;
        if id != self.id {
            return Err(UpstreamFailure::Garbage);
        }
        self.empty = if content.is_empty() { self.empty + 1 } else { 0 };
        if self.empty > EMPTY_MAX {
            return Err(UpstreamFailure::Garbage);
        }
        match kind {
            STDOUT if content.is_empty() => {
                self.is_closed = true;
                Ok(Step::Nothing)
            }
            STDOUT if self.is_closed => Err(UpstreamFailure::Garbage),
            STDOUT if self.has_head => Ok(Step::Body(content)),
            STDOUT => self.more_of_head(&content),
            STDERR if content.is_empty() => Ok(Step::Nothing),
            STDERR => Ok(Step::Said(content)),
            END_REQUEST if content.len() < END_BYTES => Err(UpstreamFailure::Garbage),
            END_REQUEST if content[4] != 0 => Err(UpstreamFailure::Refused),
            END_REQUEST if !self.has_head => Err(UpstreamFailure::Closed),
            END_REQUEST => Ok(Step::End),
            _ => Err(UpstreamFailure::Garbage),
        }
    }

    fn more_of_head(&mut self, content: &[u8]) -> Result<Step, UpstreamFailure> {
        self.head.extend_from_slice(content);
        let Some(end) = self.head_end() else {
            return if self.head.len() > HEAD_BYTES_MAX {
                Err(UpstreamFailure::Head)
            } else {
                Ok(Step::Nothing)
            };
        };
        if end > HEAD_BYTES_MAX {
            return Err(UpstreamFailure::Head);
        }
        self.has_head = true;
        let mut all = std::mem::take(&mut self.head);
        let head = all.split_to(end).freeze();
        Ok(Step::Head(head, all.freeze()))
    }

    /// Offset after the first empty line.
    fn head_end(&mut self) -> Option<usize> {
        let bytes = &self.head[..];
        let mut at = self.looked;
        while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
            if matches!(&bytes[at..at + length], b"" | b"\r") {
                return Some(at + length + 1);
            }
            at += length + 1;
        }
        self.looked = at;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, content: &[u8]) -> Record {
        Record { kind, id: 1, content: Bytes::copy_from_slice(content) }
    }

    fn steps(records: &[(u8, &[u8])]) -> Vec<Result<Step, UpstreamFailure>> {
        let mut reply = Reply::new(1);
        records.iter().map(|(kind, content)| reply.step(record(*kind, content))).collect()
    }

    fn head(head: &'static str, body: &'static str) -> Step {
        Step::Head(head.into(), body.into())
    }

    #[test]
    fn response_in_pieces_is_reassembled() {
        let found = steps(&[
            (STDERR, b"a warning"),
            (STDOUT, b"A: b\r\n\r"),
            (STDOUT, b"\nbody"),
            (STDOUT, b"more"),
            (STDOUT, b""),
            (END_REQUEST, b"\0\0\0\x07\0\0\0\0"),
        ]);
        let said = Ok(Step::Said("a warning".into()));
        let body = Ok(Step::Body("more".into()));
        let nothing = || Ok(Step::Nothing);
        let expected =
            [said, nothing(), Ok(head("A: b\r\n\r\n", "body")), body, nothing(), Ok(Step::End)];
        assert_eq!(found, expected);
        assert_eq!(steps(&[(STDOUT, b"\nbody")]), [Ok(head("\n", "body"))]);
        assert_eq!(steps(&[(STDOUT, b"A: b\n\nbody")]), [Ok(head("A: b\n\n", "body"))]);
    }

    #[test]
    fn invalid_records_report_their_failure() {
        let end = &b"\0\0\0\0\0\0\0\0"[..];
        let long = vec![b'x'; HEAD_BYTES_MAX + 1];
        for (records, trouble) in [
            (&[(END_REQUEST, end)][..], UpstreamFailure::Closed),
            (&[(END_REQUEST, b"\0\0\0\0\x02\0\0\0")], UpstreamFailure::Refused),
            (&[(END_REQUEST, b"")], UpstreamFailure::Garbage),
            (&[(STDOUT, b"A: b\n\n"), (STDOUT, b""), (STDOUT, b"more")], UpstreamFailure::Garbage),
            (&[(9, b"")], UpstreamFailure::Garbage),
            (&[(STDOUT, &long)], UpstreamFailure::Head),
            (&[(STDERR, &b""[..]); EMPTY_MAX as usize + 1], UpstreamFailure::Garbage),
        ] {
            let last = steps(records).pop();
            assert_eq!(last, Some(Err(trouble)));
        }
        let other = Record { id: 2, ..record(STDOUT, b"A: b\n\n") };
        assert_eq!(Reply::new(1).step(other), Err(UpstreamFailure::Garbage));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn response_split_at_any_point_is_parsed_equally(
            cuts in prop::collection::vec(1..20usize, 1..40),
        ) {
            let all = b"Status: 404 Not Found\r\nX-A: b\r\n\r\nthe body\r\n\r\nand more";
            let (mut reply, mut rest) = (Reply::new(1), &all[..]);
            let (mut found, mut body) = (Bytes::new(), Vec::new());
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                rest = more;
                match reply.step(record(STDOUT, piece)) {
                    Ok(Step::Head(head, first)) => {
                        found = head;
                        body.extend_from_slice(&first);
                    }
                    Ok(Step::Body(bytes)) => body.extend_from_slice(&bytes),
                    step => prop_assert_eq!(step, Ok(Step::Nothing)),
                }
            }
            prop_assert_eq!(&found[..], &b"Status: 404 Not Found\r\nX-A: b\r\n\r\n"[..]);
            prop_assert_eq!(body, b"the body\r\n\r\nand more");
        }
    }
}
