//! Encodes and decodes the records of FastCGI 1.0: from web servers, and to php-fpm. Pure.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The only version of the protocol.
const VERSION: u8 = 1;
/// Length of the header before each record's content.
const HEADER_BYTES: usize = 8;
/// Maximum length of one record's content.
pub(crate) const CONTENT_BYTES_MAX: usize = 65_535;
/// Request id of records about the connection itself.
pub(crate) const NO_REQUEST: u16 = 0;

pub(crate) const BEGIN_REQUEST: u8 = 1;
pub(crate) const ABORT_REQUEST: u8 = 2;
pub(crate) const END_REQUEST: u8 = 3;
pub(crate) const PARAMS: u8 = 4;
pub(crate) const STDIN: u8 = 5;
pub(crate) const STDOUT: u8 = 6;
pub(crate) const STDERR: u8 = 7;
pub(crate) const GET_VALUES: u8 = 9;
pub(crate) const GET_VALUES_RESULT: u8 = 10;
pub(crate) const UNKNOWN_TYPE: u8 = 11;

/// Protocol status of a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete = 0,
    CannotMultiplex = 1,
    UnknownRole = 3,
}

/// One record, without its padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: u8,
    pub(crate) id: u16,
    pub(crate) content: Bytes,
}

/// The bytes are not FastCGI records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongVersion;

/// Removes the first record from `bytes` and returns it; `None` if it is incomplete. Its content is
/// not copied.
pub(crate) fn take(bytes: &mut BytesMut) -> Result<Option<Record>, WrongVersion> {
    let [version, kind, id @ ..] = bytes.chunk() else {
        return if bytes.first().is_some_and(|b| *b != VERSION) {
            Err(WrongVersion)
        } else {
            Ok(None)
        };
    };
    let kind = *kind;
    if *version != VERSION {
        return Err(WrongVersion);
    }
    let &[id_high, id_low, length_high, length_low, padding, _, ..] = id else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([length_high, length_low]));
    let padding = usize::from(padding);
    if bytes.len() < HEADER_BYTES + length + padding {
        return Ok(None);
    }
    bytes.advance(HEADER_BYTES);
    let content = bytes.split_to(length).freeze();
    bytes.advance(padding);
    Ok(Some(Record { kind, id: u16::from_be_bytes([id_high, id_low]), content }))
}

/// Appends the header of a record whose content has `length` bytes. The content must follow without
/// padding.
pub(crate) fn put_header(out: &mut BytesMut, kind: u8, id: u16, length: u16) {
    out.put_u8(VERSION);
    out.put_u8(kind);
    out.put_u16(id);
    out.put_u16(length);
    out.put_u16(0);
}

/// Appends stream records that carry `bytes`. Appends nothing if `bytes` is empty.
pub(crate) fn put_stream(out: &mut BytesMut, kind: u8, id: u16, bytes: &[u8]) {
    for piece in bytes.chunks(CONTENT_BYTES_MAX) {
        put_header(out, kind, id, piece.len() as u16);
        out.put_slice(piece);
    }
}

/// Appends the record that ends a request.
pub(crate) fn put_end(out: &mut BytesMut, id: u16, ended: Ended) {
    put_header(out, END_REQUEST, id, 8);
    out.put_u32(0);
    out.put_u32((ended as u32) << 24);
}

/// Appends the reply to a connection record of an unknown type.
pub(crate) fn put_unknown(out: &mut BytesMut, kind: u8) {
    put_header(out, UNKNOWN_TYPE, NO_REQUEST, 8);
    out.put_u64(u64::from(kind) << 56);
}

/// Appends a name and its value in the encoding of parameters.
pub(crate) fn put_pair(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    for bytes in [name, value] {
        match u8::try_from(bytes.len()) {
            Ok(length) if length < 0x80 => out.put_u8(length),
            _ => out.put_u32(bytes.len() as u32 | 1 << 31),
        }
    }
    out.put_slice(name);
    out.put_slice(value);
}

/// Reason why parameters cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpaired {
    /// A length exceeds the remaining bytes.
    Broken,
    /// There are more parameters than allowed.
    TooMany,
}

/// Decodes names and values without copying them. Parameters with an empty name are left out.
pub(crate) fn pairs(mut bytes: Bytes, count_max: usize) -> Result<Vec<(Bytes, Bytes)>, Unpaired> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        let name = length(&mut bytes)?;
        let value = length(&mut bytes)?;
        if name.checked_add(value).is_none_or(|both| both > bytes.len()) {
            return Err(Unpaired::Broken);
        }
        let (name, value) = (bytes.split_to(name), bytes.split_to(value));
        if pairs.len() == count_max {
            return Err(Unpaired::TooMany);
        }
        if !name.is_empty() {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

/// Decodes a length: one byte, or four bytes if the highest bit of the first one is set.
fn length(bytes: &mut Bytes) -> Result<usize, Unpaired> {
    match bytes.first() {
        None => Err(Unpaired::Broken),
        Some(0..0x80) => Ok(usize::from(bytes.get_u8())),
        Some(_) if bytes.len() < 4 => Err(Unpaired::Broken),
        Some(_) => Ok((bytes.get_u32() & !(1 << 31)) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pair_lengths_use_one_or_four_bytes() {
        let long = vec![b'x'; 300];
        let mut out = BytesMut::new();
        put_pair(&mut out, b"A", b"");
        put_pair(&mut out, &long, b"1");
        assert_eq!(out[..3], [1, 0, b'A']);
        assert_eq!(out[3..8], [0x80, 0, 1, 44, 1]);
        let found = pairs(out.freeze(), 2).expect("two pairs");
        assert_eq!(found, [(Bytes::from("A"), Bytes::new()), (long.into(), Bytes::from("1"))]);
    }

    #[test]
    fn invalid_pairs_are_rejected() {
        for bytes in
            [&b"\x01"[..], b"\x01\x01A", b"\x80\0\0", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\x00"]
        {
            assert_eq!(pairs(Bytes::from_static(bytes), 9), Err(Unpaired::Broken), "{bytes:?}");
        }
        assert_eq!(pairs(Bytes::from_static(b"\x01\0A\x01\0B"), 1), Err(Unpaired::TooMany));
        assert_eq!(pairs(Bytes::from_static(b"\0\x01x\x01\0B"), 1).map(|p| p.len()), Ok(1));
    }

    #[test]
    fn bytes_with_wrong_version_are_rejected() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"\x02", b"\0\x01\0\x01", b"\x16\x03\x01"] {
            assert_eq!(take(&mut BytesMut::from(bytes)), Err(WrongVersion), "{bytes:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn records_split_at_any_point_are_decoded_unchanged(
            sent in prop::collection::vec(
                (any::<u8>(), any::<u16>(), 0..70_000usize, any::<u8>()), 1..6
            ),
            cuts in prop::collection::vec(1..9_000usize, 1..40),
        ) {
            let mut bytes = BytesMut::new();
            let mut expected = Vec::new();
            for (kind, id, length, padding) in &sent {
                let content = vec![*kind; (*length).min(CONTENT_BYTES_MAX)];
                put_header(&mut bytes, *kind, *id, content.len() as u16);
                let at = bytes.len() - 2;
                bytes[at] = *padding;
                bytes.put_slice(&content);
                bytes.put_bytes(0xee, usize::from(*padding));
                expected.push(Record { kind: *kind, id: *id, content: content.into() });
            }
            let (mut found, mut input) = (Vec::new(), BytesMut::new());
            let mut cuts = cuts.into_iter().cycle();
            while !bytes.is_empty() {
                let cut = cuts.next().unwrap_or(1).min(bytes.len());
                input.extend_from_slice(&bytes.split_to(cut));
                while let Some(record) = take(&mut input).expect("records") {
                    found.push(record);
                }
            }
            prop_assert_eq!(found, expected);
            prop_assert!(input.is_empty());
        }

        #[test]
        fn encoded_pairs_are_decoded_unchanged(
            sent in prop::collection::vec(
                ("[A-Z_]{1,200}", prop::collection::vec(any::<u8>(), 0..400)), 0..20
            ),
        ) {
            let mut out = BytesMut::new();
            for (name, value) in &sent {
                put_pair(&mut out, name.as_bytes(), value);
            }
            let found = pairs(out.freeze(), 20).expect("pairs");
            let found: Vec<_> = found.into_iter()
                .map(|(n, v)| (String::from_utf8_lossy(&n).into_owned(), v.to_vec())).collect();
            prop_assert_eq!(found, sent);
        }

        #[test]
        fn arbitrary_bytes_cause_no_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            first in 0..3u8,
        ) {
            let _ = pairs(Bytes::from(bytes.clone()), 8);
            let mut input = BytesMut::from(&[&[first][..], &bytes].concat()[..]);
            while let Ok(Some(record)) = take(&mut input) {
                prop_assert!(record.content.len() <= bytes.len());
            }
        }
    }
}
