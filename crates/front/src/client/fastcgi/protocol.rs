//! parse: interprets a web server's records in order. A pure state machine.
//!
//! It accepts one request at a time, as php-fpm does. Another one that begins meanwhile gets the
//! reply that connections are not multiplexed.

use crate::runtime::hostile::Hostile;
use crate::upstream::record::{
    ABORT_REQUEST, BEGIN_REQUEST, Ended, GET_VALUES, GET_VALUES_RESULT, NO_REQUEST, PARAMS, Record,
    STDIN, pairs, put_end, put_header, put_pair, put_stream, put_unknown,
};
use bytes::{Bytes, BytesMut};

/// Maximum number of records between two requests that belong to no request. Usually these are
/// records of a refused request.
const STRAYS_MAX: u32 = 1_024;
/// Maximum number of bytes of parameters that are read and discarded after the limit was exceeded.
const SKIPPED_BYTES_MAX: usize = 16 << 20;
/// Maximum number of names that a web server may query at once. Three are defined.
const VALUES_MAX: usize = 64;
const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;

/// Result of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Send these bytes.
    Reply(BytesMut),
    /// Send these bytes and end the connection.
    Refuse(BytesMut),
    /// All parameters were received. `None`: they are too long.
    Request(Option<Bytes>),
    Body(Bytes),
    BodyEnd,
    /// The web server has aborted the request.
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Params,
    Stdin,
    ResponseReader,
}

#[derive(Debug)]
struct Current {
    id: u16,
    keeps: bool,
    stage: Stage,
    params: Params,
}

#[derive(Debug, Default)]
struct Params {
    /// The first piece is not copied. Usually it is the only one.
    first: Bytes,
    more: BytesMut,
    bytes: usize,
}

/// The web server's side of a connection.
#[derive(Debug)]
pub(super) struct Protocol {
    params_bytes_max: usize,
    connections_max: usize,
    current: Option<Current>,
    strays: u32,
}

impl Protocol {
    pub(super) fn new(params_bytes_max: usize, connections_max: usize) -> Protocol {
        Protocol { params_bytes_max, connections_max, current: None, strays: 0 }
    }

    /// Whether the parameters of a request have begun and are not complete.
    pub(super) fn is_inside_params(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.stage == Stage::Params)
    }

    /// ID of the current request.
    pub(super) fn id(&self) -> u16 {
        self.current.as_ref().map_or(NO_REQUEST, |current| current.id)
    }

    /// Whether the whole body of the request has been received.
    pub(super) fn has_body(&self) -> bool {
        self.current.as_ref().is_none_or(|current| current.stage == Stage::ResponseReader)
    }

    /// Ends the request. Returns whether the connection is kept.
    pub(super) fn finish(&mut self) -> bool {
        self.strays = 0;
        self.current
            .take()
            .is_some_and(|current| current.keeps && current.stage == Stage::ResponseReader)
    }

    /// Processes the next record.
    pub(super) fn step(&mut self, record: Record) -> Result<Step, Hostile> {
        let Record { kind, id, content } = record;
        if id == NO_REQUEST {
            return self.about_connection(kind, content);
        }
        if kind == BEGIN_REQUEST {
            return self.begin(id, &content);
        }
        let Some(current) = self.current.as_mut().filter(|current| current.id == id) else {
            return self.stray();
        };
        match (kind, current.stage) {
            (PARAMS, Stage::Params) if content.is_empty() => {
                current.stage = Stage::Stdin;
                let params = std::mem::take(&mut current.params);
                Ok(Step::Request(params.all(self.params_bytes_max)))
            }
            (PARAMS, Stage::Params) => {
                current.params.add(content, self.params_bytes_max)?;
                Ok(Step::Nothing)
            }
            (STDIN, Stage::Stdin) if content.is_empty() => {
                current.stage = Stage::ResponseReader;
                Ok(Step::BodyEnd)
            }
            (STDIN, Stage::Stdin) => Ok(Step::Body(content)),
            // Some clients end it twice.
            (STDIN, Stage::ResponseReader) if content.is_empty() => self.stray(),
            (PARAMS | STDIN, _) => Err(Hostile::Order),
            (ABORT_REQUEST, Stage::Params) => {
                let keeps = current.keeps;
                self.current = None;
                self.stray()?;
                Ok(ending(id, Ended::Complete, keeps))
            }
            (ABORT_REQUEST, _) => Ok(Step::Abort),
            _ => self.stray(),
        }
    }

    fn begin(&mut self, id: u16, content: &[u8]) -> Result<Step, Hostile> {
        // Eight bytes, of which five are reserved. php-fpm requires the same number.
        let &[role_high, role_low, flags, _, _, _, _, _, ..] = content else {
            return Err(Hostile::Short);
        };
        let keeps = flags & KEEP_CONNECTION != 0;
        match &self.current {
            Some(current) if current.id == id => Err(Hostile::Order),
            Some(_) => {
                self.stray()?;
                Ok(ending(id, Ended::CannotMultiplex, true))
            }
            None if u16::from_be_bytes([role_high, role_low]) != RESPONDER => {
                self.stray()?;
                Ok(ending(id, Ended::UnknownRole, keeps))
            }
            None => {
                self.strays = 0;
                let params = Params::default();
                self.current = Some(Current { id, keeps, stage: Stage::Params, params });
                Ok(Step::Nothing)
            }
        }
    }

    fn stray(&mut self) -> Result<Step, Hostile> {
        self.strays += 1;
        if self.strays > STRAYS_MAX { Err(Hostile::Flood) } else { Ok(Step::Nothing) }
    }

    fn about_connection(&mut self, kind: u8, content: Bytes) -> Result<Step, Hostile> {
        self.stray()?;
        let mut out = BytesMut::new();
        if kind == GET_VALUES {
            let asked = pairs(content, VALUES_MAX).map_err(|_| Hostile::Params)?;
            let most = self.connections_max.to_string();
            let mut values = BytesMut::new();
            for (name, value) in [
                ("FCGI_MAX_CONNS", most.as_str()),
                ("FCGI_MAX_REQS", &most),
                ("FCGI_MPXS_CONNS", "0"),
            ] {
                if asked.iter().any(|(asked, _)| asked == name) {
                    put_pair(&mut values, name.as_bytes(), value.as_bytes());
                }
            }
            if values.is_empty() {
                put_header(&mut out, GET_VALUES_RESULT, NO_REQUEST, 0);
            }
            put_stream(&mut out, GET_VALUES_RESULT, NO_REQUEST, &values);
        } else {
            put_unknown(&mut out, kind);
        }
        Ok(Step::Reply(out))
    }
}

fn ending(id: u16, ended: Ended, keeps: bool) -> Step {
    let mut out = BytesMut::new();
    put_end(&mut out, id, ended);
    if keeps { Step::Reply(out) } else { Step::Refuse(out) }
}

impl Params {
    fn add(&mut self, piece: Bytes, bytes_max: usize) -> Result<(), Hostile> {
        self.bytes += piece.len();
        if self.bytes > bytes_max {
            (self.first, self.more) = (Bytes::new(), BytesMut::new());
            let is_flood = self.bytes > bytes_max.saturating_add(SKIPPED_BYTES_MAX);
            return if is_flood { Err(Hostile::Flood) } else { Ok(()) };
        }
        if self.first.is_empty() {
            self.first = piece;
        } else {
            if self.more.is_empty() {
                self.more.extend_from_slice(&self.first);
            }
            self.more.extend_from_slice(&piece);
        }
        Ok(())
    }

    fn all(self, bytes_max: usize) -> Option<Bytes> {
        if self.bytes > bytes_max {
            None
        } else if self.more.is_empty() {
            Some(self.first)
        } else {
            Some(self.more.freeze())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, id: u16, content: &[u8]) -> Record {
        Record { kind, id, content: Bytes::copy_from_slice(content) }
    }

    fn begin(id: u16, role: u8, flags: u8) -> Record {
        record(BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0])
    }

    fn end(id: u16, ended: Ended) -> BytesMut {
        let mut out = BytesMut::new();
        put_end(&mut out, id, ended);
        out
    }

    /// Expected results of the records, in order. The last may be an error.
    fn check<const N: usize>(records: [Record; N], expected: &[Result<Step, Hostile>]) {
        let mut protocol = Protocol::new(100, 7);
        let found = records.map(|record| protocol.step(record));
        assert_eq!(found, expected);
    }

    #[test]
    fn request_records_become_steps() {
        check(
            [
                begin(1, 1, 0),
                record(PARAMS, 1, b"\x01\x01"),
                record(PARAMS, 1, b"AB"),
                record(PARAMS, 1, b""),
                record(STDIN, 1, b"body"),
                record(STDIN, 1, b""),
                record(STDIN, 1, b""),
                record(ABORT_REQUEST, 1, b""),
            ],
            &[
                Ok(Step::Nothing),
                Ok(Step::Nothing),
                Ok(Step::Nothing),
                Ok(Step::Request(Some(Bytes::from("\x01\x01AB")))),
                Ok(Step::Body(Bytes::from("body"))),
                Ok(Step::BodyEnd),
                Ok(Step::Nothing),
                Ok(Step::Abort),
            ],
        );
    }

    #[test]
    fn concurrent_requests_and_other_roles_are_refused() {
        let (reply, refuse) = (|bytes| Ok(Step::Reply(bytes)), |bytes| Ok(Step::Refuse(bytes)));
        check(
            [begin(1, 1, 1), begin(2, 1, 1), record(PARAMS, 2, b"x")],
            &[Ok(Step::Nothing), reply(end(2, Ended::CannotMultiplex)), Ok(Step::Nothing)],
        );
        check([begin(1, 2, 1)], &[reply(end(1, Ended::UnknownRole))]);
        check([begin(1, 3, 0)], &[refuse(end(1, Ended::UnknownRole))]);
        check(
            [begin(9, 1, 1), record(ABORT_REQUEST, 9, b"")],
            &[Ok(Step::Nothing), reply(end(9, Ended::Complete))],
        );
    }

    #[test]
    fn connection_queries_are_responded() {
        let mut asked = BytesMut::new();
        for name in ["FCGI_MPXS_CONNS", "FCGI_MAX_CONNS", "OTHER"] {
            put_pair(&mut asked, name.as_bytes(), b"");
        }
        let mut values = BytesMut::new();
        put_pair(&mut values, b"FCGI_MAX_CONNS", b"7");
        put_pair(&mut values, b"FCGI_MPXS_CONNS", b"0");
        let mut told = BytesMut::new();
        put_stream(&mut told, GET_VALUES_RESULT, 0, &values);
        let mut unknown = BytesMut::new();
        put_unknown(&mut unknown, 99);
        check(
            [record(GET_VALUES, 0, &asked), record(99, 0, b"")],
            &[Ok(Step::Reply(told)), Ok(Step::Reply(unknown))],
        );
        check([record(GET_VALUES, 0, b"\x09")], &[Err(Hostile::Params)]);
    }

    #[test]
    fn records_out_of_order_or_too_short_are_hostile() {
        let parameters = |id| record(PARAMS, id, b"");
        check([begin(1, 1, 0), begin(1, 1, 0)], &[Ok(Step::Nothing), Err(Hostile::Order)]);
        check([begin(1, 1, 0), record(STDIN, 1, b"x")], &[Ok(Step::Nothing), Err(Hostile::Order)]);
        check(
            [begin(1, 1, 0), parameters(1), parameters(1)],
            &[Ok(Step::Nothing), Ok(Step::Request(Some(Bytes::new()))), Err(Hostile::Order)],
        );
        check([record(BEGIN_REQUEST, 1, b"\0\x01")], &[Err(Hostile::Short)]);
        check([record(BEGIN_REQUEST, 1, b"\0\x01\x01\0\0\0\0")], &[Err(Hostile::Short)]);
    }

    #[test]
    fn too_long_parameters_are_skipped_to_their_end() {
        check(
            [
                begin(1, 1, 1),
                record(PARAMS, 1, &[b'x'; 60]),
                record(PARAMS, 1, &[b'x'; 60]),
                record(PARAMS, 1, b""),
            ],
            &[Ok(Step::Nothing), Ok(Step::Nothing), Ok(Step::Nothing), Ok(Step::Request(None))],
        );
    }

    #[test]
    fn useless_records_become_a_flood() {
        for stray in [record(STDIN, 5, b"x"), begin(1, 3, 1), record(77, 0, b""), record(8, 5, b"")]
        {
            let mut protocol = Protocol::new(100, 7);
            let hostile = (0..=STRAYS_MAX).find_map(|_| protocol.step(stray.clone()).err());
            assert_eq!(hostile, Some(Hostile::Flood), "{stray:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_records_keep_invariants(
            sent in prop::collection::vec(
                (0..13u8, 0..3u16, prop::collection::vec(0..4u8, 0..10)), 0..60),
        ) {
            let mut protocol = Protocol::new(20, 7);
            let mut is_open = false;
            for (kind, id, content) in sent {
                match protocol.step(record(kind, id, &content)) {
                    Ok(Step::Request(params)) => {
                        prop_assert!(!is_open, "a request before the last one was answered");
                        prop_assert!(params.is_none_or(|params| params.len() <= 20));
                        is_open = true;
                    }
                    Ok(Step::Body(_) | Step::BodyEnd) => prop_assert!(is_open),
                    Ok(Step::Abort) => {
                        prop_assert!(is_open);
                        protocol.finish();
                        is_open = false;
                    }
                    Ok(_) => {}
                    Err(_) => return Ok(()),
                }
            }
        }
    }
}
