//! Layout of the request head in a slot: a fixed struct, a header table, then the strings.
//!
//! Every string is followed by a NUL that its length does not count, because PHP's request fields
//! are C strings. The C view of these structs, `crates/worker/csrc/ring.h`, is generated from this
//! file (`c_header.rs`).

use crate::c_header::mirrored;
use crate::limits::REQUEST_BYTES;
use std::mem::offset_of;
use zerocopy::{FromBytes, Immutable, IntoBytes};

mirrored! {
    /// A string: offset from the start of the request area, and length without its NUL.
    pub struct Str {
        off: u32,
        len: u32,
    }
}

mirrored! {
    /// Name and value of one header, as received.
    pub struct Header {
        name: Str,
        value: Str,
    }
}

/// The request was made over TLS, or a trusted proxy reports so.
pub const FLAG_HTTPS: u32 = 1;
/// The target script is the front controller.
pub const FLAG_APP: u32 = 2;
/// The worker's report on the request has a reader, in addition to the usage.
pub const FLAG_REQUEST_ACCOUNTING: u32 = 4;
/// A web server supplied all variables of the request: no other variable is added, and no field of
/// the head becomes a variable.
pub const FLAG_FASTCGI: u32 = 8;
/// The request runs as a whole script although the application may be booted ahead, to see the cost
/// of that.
pub const FLAG_WHOLE: u32 = 16;
/// The request is a batch of jobs from the server itself.
pub const FLAG_JOBS: u32 = 32;
/// Writes to sockets, new connections and new processes are refused: the request is a replay.
pub const FLAG_NO_NETWORK: u32 = 64;

mirrored! {
    /// The fixed part. Offset 0 means absent for the optional strings.
    pub struct Head {
        method: Str,
        target: Str,
        query: Str,
        protocol: Str,
        script_filename: Str,
        script_name: Str,
        document_uri: Str,
        path_info: Str,
        document_root: Str,
        server_name: Str,
        server_addr: Str,
        remote_addr: Str,
        request_id: Str,
        content_type: Str,
        cookie: Str,
        authorization: Str,
        /// -1: none
        content_length: i64,
        server_port: u32,
        remote_port: u32,
        flags: u32,
        headers: u32,
        headers_off: u32,
        /// Further variables of the request, after the headers in their table.
        variables: u32,
    }
}

/// Request head that the front passes to PHP. Bytes, because HTTP does not guarantee UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// `REQUEST_METHOD`.
    pub method: &'a [u8],
    /// `REQUEST_URI`: the target as received, with query.
    pub target: &'a [u8],
    /// `QUERY_STRING`, without `?`.
    pub query: &'a [u8],
    /// `SERVER_PROTOCOL`, such as `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// Absolute path of the script to run.
    pub script_filename: &'a [u8],
    /// `SCRIPT_NAME`: the script's path below the document root, with leading slash.
    pub script_name: &'a [u8],
    /// `DOCUMENT_URI`: script name and path info, decoded.
    pub document_uri: &'a [u8],
    /// `PATH_INFO`: the part of the path after the script's name, decoded; empty if there is none.
    pub path_info: &'a [u8],
    /// `DOCUMENT_ROOT`.
    pub document_root: &'a [u8],
    /// `SERVER_NAME`.
    pub server_name: &'a [u8],
    /// `SERVER_ADDR`, without port.
    pub server_addr: &'a [u8],
    /// `REMOTE_ADDR`, without port.
    pub remote_addr: &'a [u8],
    /// The request id for logs and `$_SERVER`.
    pub request_id: &'a [u8],
    /// `CONTENT_TYPE`, if the header was sent.
    pub content_type: Option<&'a [u8]>,
    /// All `Cookie` headers joined by `; `.
    pub cookie: Option<&'a [u8]>,
    /// The `Authorization` header, for `PHP_AUTH_*`.
    pub authorization: Option<&'a [u8]>,
    /// `CONTENT_LENGTH`; `None` without the header, also for a body of unknown length.
    pub content_length: Option<u64>,
    /// `SERVER_PORT`.
    pub server_port: u16,
    /// `REMOTE_PORT`.
    pub remote_port: u16,
    /// [`FLAG_HTTPS`] and the other flags.
    pub flags: u32,
}

/// The head is longer than a slot's request area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request head does not fit {REQUEST_BYTES} bytes")]
pub struct TooLarge;

/// Room in the header table before it has to grow.
const HEADERS_USUAL: usize = 32;
/// Maximum logged part of a method or a target, bytes.
const LOGGED_BYTES_MAX: usize = 512;

/// Method, target and id of an encoded head that may be garbage. `read` appends the given number of
/// bytes at the given offset.
pub(crate) fn line_of(read: impl Fn(usize, usize, &mut Vec<u8>)) -> [String; 3] {
    [offset_of!(Head, method), offset_of!(Head, target), offset_of!(Head, request_id)]
        .map(|field| text_of(field, &read))
}

/// The script's name of an encoded head that may be garbage.
pub(crate) fn script_of(read: impl Fn(usize, usize, &mut Vec<u8>)) -> String {
    text_of(offset_of!(Head, script_name), &read)
}

fn text_of(field: usize, read: &impl Fn(usize, usize, &mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    read(field, size_of::<Str>(), &mut bytes);
    let at = Str::read_from_bytes(&bytes).unwrap_or_default();
    let (off, len) = (at.off as usize, (at.len as usize).min(LOGGED_BYTES_MAX));
    bytes.clear();
    if off.saturating_add(len) <= REQUEST_BYTES {
        read(off, len, &mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes `head` and `headers` into `out`, replacing its content.
pub fn encode<'a>(
    head: &RequestHead<'_>,
    headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    encode_with(head, headers, [], out)
}

/// Same as [`encode`], with additional variables for `$_SERVER`, by their names there.
pub fn encode_with<'a>(
    head: &RequestHead<'_>,
    headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    out.clear();
    out.resize(size_of::<Head>(), 0);
    let mut strings = Strings { out, full: false };
    // A loop over a list: separate calls would be 8 KB of code, which each request would have to
    // fetch.
    let texts = [
        head.method,
        head.target,
        head.query,
        head.protocol,
        head.script_filename,
        head.script_name,
        head.document_uri,
        head.path_info,
        head.document_root,
        head.server_name,
        head.server_addr,
        head.remote_addr,
        head.request_id,
    ];
    let mut at = [Str::default(); 13];
    for (at, text) in at.iter_mut().zip(texts) {
        *at = strings.put(text);
    }
    let [
        method,
        target,
        query,
        protocol,
        script_filename,
        script_name,
        document_uri,
        path_info,
        document_root,
        server_name,
        server_addr,
        remote_addr,
        request_id,
    ] = at;
    let mut fixed = Head {
        method,
        target,
        query,
        protocol,
        script_filename,
        script_name,
        document_uri,
        path_info,
        document_root,
        server_name,
        server_addr,
        remote_addr,
        request_id,
        content_type: strings.put_option(head.content_type),
        cookie: strings.put_option(head.cookie),
        authorization: strings.put_option(head.authorization),
        content_length: head.content_length.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
        server_port: u32::from(head.server_port),
        remote_port: u32::from(head.remote_port),
        flags: head.flags,
        ..Head::default()
    };
    let mut table = Vec::with_capacity(HEADERS_USUAL);
    for (name, value) in headers {
        table.push(Header { name: strings.put(name), value: strings.put(value) });
    }
    let headers = table.len();
    for (name, value) in variables {
        table.push(Header { name: strings.put(name), value: strings.put(value) });
    }
    let full = strings.full;
    out.resize(out.len().next_multiple_of(8), 0);
    (fixed.headers, fixed.headers_off) = (headers as u32, out.len() as u32);
    fixed.variables = (table.len() - headers) as u32;
    out.extend_from_slice(table.as_bytes());
    if full || out.len() > REQUEST_BYTES {
        return Err(TooLarge);
    }
    out[..size_of::<Head>()].copy_from_slice(fixed.as_bytes());
    Ok(())
}

/// Names and values, in order.
pub type Headers<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Reads the variables that [`encode_with`] wrote; `None` if it did not write `area`.
pub fn decode_variables(area: &[u8]) -> Option<Headers<'_>> {
    let (fixed, _) = Head::read_from_prefix(area).ok()?;
    let all = fixed.headers.checked_add(fixed.variables)?;
    let mut table = read_table(area, fixed.headers_off, all)?;
    Some(table.split_off(fixed.headers as usize))
}

fn read_table(area: &[u8], at: u32, entries: u32) -> Option<Headers<'_>> {
    let string = |at: Str| area.get(at.off as usize..)?.get(..at.len as usize);
    let mut table = area.get(at as usize..)?;
    let mut headers = Headers::new();
    for _ in 0..entries {
        let (header, rest) = Header::read_from_prefix(table).ok()?;
        headers.push((string(header.name)?, string(header.value)?));
        table = rest;
    }
    Some(headers)
}

/// Reads the head and the headers that [`encode`] wrote; `None` if it did not write `area`. PHP
/// reads the same bytes with its own functions.
pub fn decode(area: &[u8]) -> Option<(RequestHead<'_>, Headers<'_>)> {
    let (fixed, _) = Head::read_from_prefix(area).ok()?;
    let string = |at: Str| area.get(at.off as usize..)?.get(..at.len as usize);
    let optional = |at: Str| if at.off == 0 { Some(None) } else { string(at).map(Some) };
    let headers = read_table(area, fixed.headers_off, fixed.headers)?;
    let head = RequestHead {
        method: string(fixed.method)?,
        target: string(fixed.target)?,
        query: string(fixed.query)?,
        protocol: string(fixed.protocol)?,
        script_filename: string(fixed.script_filename)?,
        script_name: string(fixed.script_name)?,
        document_uri: string(fixed.document_uri)?,
        path_info: string(fixed.path_info)?,
        document_root: string(fixed.document_root)?,
        server_name: string(fixed.server_name)?,
        server_addr: string(fixed.server_addr)?,
        remote_addr: string(fixed.remote_addr)?,
        request_id: string(fixed.request_id)?,
        content_type: optional(fixed.content_type)?,
        cookie: optional(fixed.cookie)?,
        authorization: optional(fixed.authorization)?,
        content_length: u64::try_from(fixed.content_length).ok(),
        server_port: u16::try_from(fixed.server_port).ok()?,
        remote_port: u16::try_from(fixed.remote_port).ok()?,
        flags: fixed.flags,
    };
    Some((head, headers))
}

struct Strings<'a> {
    out: &'a mut Vec<u8>,
    full: bool,
}

impl Strings<'_> {
    #[inline(never)]
    fn put(&mut self, bytes: &[u8]) -> Str {
        if self.full || bytes.len() >= REQUEST_BYTES - self.out.len().min(REQUEST_BYTES) {
            self.full = true;
            return Str::default();
        }
        let off = self.out.len() as u32;
        self.out.reserve(bytes.len() + 1);
        self.out.extend_from_slice(bytes);
        self.out.push(0);
        Str { off, len: bytes.len() as u32 }
    }

    fn put_option(&mut self, bytes: Option<&[u8]>) -> Str {
        bytes.map_or(Str::default(), |bytes| self.put(bytes))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn encoded_head_can_be_decoded() {
        let head = RequestHead {
            method: b"POST",
            target: b"/a?b=c",
            content_type: Some(b"text/plain"),
            content_length: Some(3),
            ..RequestHead::default()
        };
        let headers: [(&[u8], &[u8]); 2] = [(b"x-one", b"1"), (b"x-two", b"")];
        let mut out = Vec::new();
        encode(&head, headers, &mut out).unwrap();
        assert_eq!(decode(&out), Some((head, headers.to_vec())));
        let (fixed, _) = Head::read_from_prefix(&out).unwrap();
        assert_eq!(fixed.headers_off % 8, 0);
        for at in [fixed.method, fixed.target, fixed.query, fixed.content_type] {
            assert_eq!(out[(at.off + at.len) as usize], 0, "every string ends with NUL");
        }
    }

    #[test]
    fn variables_follow_the_headers() {
        let headers: [(&[u8], &[u8]); 1] = [(b"x-one", b"1")];
        let variables: [(&[u8], &[u8]); 2] = [(b"SSL_CLIENT_VERIFY", b"NONE"), (b"A", b"")];
        let mut out = Vec::new();
        encode_with(&RequestHead::default(), headers, variables, &mut out).unwrap();
        assert_eq!(decode(&out).map(|(_, found)| found), Some(headers.to_vec()));
        assert_eq!(decode_variables(&out), Some(variables.to_vec()));
        encode(&RequestHead::default(), headers, &mut out).unwrap();
        assert_eq!(decode_variables(&out), Some(vec![]));
    }

    proptest! {
        #[test]
        fn encoded_request_decodes_to_same_request(
            [target, query, cookie] in any::<[Vec<u8>; 3]>(),
            has_cookie: bool,
            headers in prop::collection::vec(any::<[Vec<u8>; 2]>(), 0..40),
            length in prop::option::of(0..i64::MAX as u64),
            [server_port, remote_port]: [u16; 2],
            flags: u32,
        ) {
            let cookie = has_cookie.then_some(&cookie[..]);
            let head = RequestHead {
                target: &target, query: &query, cookie,
                content_length: length, server_port, remote_port, flags,
                ..RequestHead::default()
            };
            let headers: Vec<_> = headers.iter().map(|[n, v]| (&n[..], &v[..])).collect();
            let mut out = Vec::new();
            encode(&head, headers.iter().copied(), &mut out).unwrap();
            prop_assert_eq!(decode(&out), Some((head, headers)));
        }

        #[test]
        fn garbage_decodes_to_none_or_stays_within_area(area: Vec<u8>) {
            let _ = (decode(&area), decode_variables(&area));
            let read = |at, len, out: &mut Vec<u8>| {
                out.extend((at..at + len).map(|i| area.get(i).copied().unwrap_or(0)));
            };
            let _ = line_of(read);
        }
    }

    #[test]
    fn oversized_head_is_rejected() {
        let long = vec![b'x'; REQUEST_BYTES];
        let head = RequestHead { target: &long, ..RequestHead::default() };
        assert_eq!(encode(&head, [], &mut Vec::new()), Err(TooLarge));
        let half = vec![b'x'; REQUEST_BYTES / 2];
        let head = RequestHead { target: &half, query: &half, ..RequestHead::default() };
        assert_eq!(encode(&head, [], &mut Vec::new()), Err(TooLarge));
    }
}
