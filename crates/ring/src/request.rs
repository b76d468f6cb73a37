//! The request head as it lies in a slot: a fixed struct, a header table, then the strings.
//!
//! Every string is followed by a NUL that its length does not count, because PHP's request fields are C
//! strings. `crates/worker/csrc/request.h` mirrors [`Head`] and [`Header`]; both sides assert the sizes.

use crate::layout::REQUEST_BYTES;

/// A string: offset from the start of the request area, and length without its NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Str {
    off: u32,
    len: u32,
}

/// Name and value of one header, as it came.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    name: Str,
    value: Str,
}

/// The request was made over TLS (or a trusted proxy says so).
pub const FLAG_HTTPS: u32 = 1;
/// The target script is the front controller.
pub const FLAG_APP: u32 = 2;

/// The fixed part. Offset 0 means absent for the optional strings.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
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
    content_length: i64,
    server_port: u32,
    remote_port: u32,
    flags: u32,
    headers: u32,
    headers_off: u32,
    pad: u32,
}

const _: () = assert!(size_of::<Head>() == 16 * 8 + 8 + 6 * 4);
const _: () = assert!(size_of::<Header>() == 16);

/// What the front tells PHP about a request. Bytes, because HTTP does not promise UTF-8.
#[derive(Clone, Debug, Default)]
pub struct RequestHead<'a> {
    /// `REQUEST_METHOD`.
    pub method: &'a [u8],
    /// `REQUEST_URI`: the target as it came, with query.
    pub target: &'a [u8],
    /// `QUERY_STRING`, without `?`.
    pub query: &'a [u8],
    /// `SERVER_PROTOCOL`, as `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// Absolute path of the script to run.
    pub script_filename: &'a [u8],
    /// `SCRIPT_NAME`: the script's path below the document root, with leading slash.
    pub script_name: &'a [u8],
    /// `DOCUMENT_URI`: script name and path info, decoded.
    pub document_uri: &'a [u8],
    /// `PATH_INFO`: what follows the script's name in the path, decoded; empty for none.
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
    /// `CONTENT_LENGTH`; `None` for no header, body of unknown length included.
    pub content_length: Option<u64>,
    /// `SERVER_PORT`.
    pub server_port: u16,
    /// `REMOTE_PORT`.
    pub remote_port: u16,
    /// [`FLAG_HTTPS`] and others.
    pub flags: u32,
}

/// The head is longer than a slot's request area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request head does not fit {REQUEST_BYTES} bytes")]
pub struct TooLarge;

/// Encodes `head` and `headers` into `out`, replacing what it holds.
pub fn encode<'a>(
    head: &RequestHead<'_>,
    headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    out.clear();
    out.resize(size_of::<Head>(), 0);
    let mut strings = Strings { out, full: false };
    let mut fixed = Head {
        method: strings.put(head.method),
        target: strings.put(head.target),
        query: strings.put(head.query),
        protocol: strings.put(head.protocol),
        script_filename: strings.put(head.script_filename),
        script_name: strings.put(head.script_name),
        document_uri: strings.put(head.document_uri),
        path_info: strings.put(head.path_info),
        document_root: strings.put(head.document_root),
        server_name: strings.put(head.server_name),
        server_addr: strings.put(head.server_addr),
        remote_addr: strings.put(head.remote_addr),
        request_id: strings.put(head.request_id),
        content_type: strings.put_option(head.content_type),
        cookie: strings.put_option(head.cookie),
        authorization: strings.put_option(head.authorization),
        content_length: head.content_length.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
        server_port: u32::from(head.server_port),
        remote_port: u32::from(head.remote_port),
        flags: head.flags,
        ..Head::default()
    };
    let mut table = Vec::with_capacity(32 * size_of::<Header>());
    for (name, value) in headers {
        fixed.headers += 1;
        put_header(&mut table, Header { name: strings.put(name), value: strings.put(value) });
    }
    let full = strings.full;
    out.resize(out.len().next_multiple_of(8), 0);
    fixed.headers_off = out.len() as u32;
    out.extend_from_slice(&table);
    if full || out.len() > REQUEST_BYTES {
        return Err(TooLarge);
    }
    put_head(out, &fixed);
    Ok(())
}

struct Strings<'a> {
    out: &'a mut Vec<u8>,
    full: bool,
}

impl Strings<'_> {
    fn put(&mut self, bytes: &[u8]) -> Str {
        if self.full || bytes.len() >= REQUEST_BYTES - self.out.len().min(REQUEST_BYTES) {
            self.full = true;
            return Str::default();
        }
        let off = self.out.len() as u32;
        self.out.extend_from_slice(bytes);
        self.out.push(0);
        Str { off, len: bytes.len() as u32 }
    }

    fn put_option(&mut self, bytes: Option<&[u8]>) -> Str {
        bytes.map_or(Str::default(), |bytes| self.put(bytes))
    }
}

fn put_header(table: &mut Vec<u8>, header: Header) {
    for number in [header.name.off, header.name.len, header.value.off, header.value.len] {
        table.extend_from_slice(&number.to_ne_bytes());
    }
}

fn put_head(out: &mut [u8], head: &Head) {
    // SAFETY: `Head` is repr(C) of integers without padding (the size is asserted above), so all its bytes are
    // initialised and may be read.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(head).cast::<u8>(), size_of::<Head>())
    };
    out[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> usize {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }
    fn string(bytes: &[u8], at: usize) -> &[u8] {
        let (off, len) = (word(bytes, at), word(bytes, at + 4));
        assert_eq!(bytes[off + len], 0, "every string ends with NUL");
        &bytes[off..off + len]
    }

    #[test]
    fn what_is_encoded_can_be_found_again() {
        let head = RequestHead {
            method: b"POST",
            target: b"/a?b=c",
            content_type: Some(b"text/plain"),
            content_length: Some(3),
            ..RequestHead::default()
        };
        let mut out = Vec::new();
        encode(&head, [(&b"x-one"[..], &b"1"[..]), (b"x-two", b"")], &mut out).unwrap();
        assert_eq!(string(&out, 0), b"POST");
        assert_eq!(string(&out, 8), b"/a?b=c");
        assert_eq!(string(&out, 13 * 8), b"text/plain");
        assert_eq!(word(&out, 14 * 8), 0, "no cookie");
        let at = word(&out, 16 * 8 + 8 + 16);
        assert_eq!(at % 8, 0);
        assert_eq!((string(&out, at), string(&out, at + 8)), (&b"x-one"[..], &b"1"[..]));
        assert_eq!((string(&out, at + 16), string(&out, at + 24)), (&b"x-two"[..], &b""[..]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let long = vec![b'x'; REQUEST_BYTES];
        let head = RequestHead { target: &long, ..RequestHead::default() };
        assert_eq!(encode(&head, [], &mut Vec::new()), Err(TooLarge));
        let half = vec![b'x'; REQUEST_BYTES / 2];
        let head = RequestHead { target: &half, query: &half, ..RequestHead::default() };
        assert_eq!(encode(&head, [], &mut Vec::new()), Err(TooLarge));
    }
}
