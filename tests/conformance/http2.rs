//! http2: known differences over HTTP/2 with TLS. An HAProxy in front of both servers forwards the
//! test's HTTP/1.1 requests as HTTP/2.

use crate::response::ObservedResponse;

/// HAProxy's response if its backend resets a stream.
const BAD_GATEWAY: u16 = 502;
/// Bytes of a target that nginx accepts. RFC 3986, to which RFC 9113 refers, does not allow them.
const NO_TARGETS: &[u8] = b"\"<>[\\]^`{|}";

/// Removes known differences. Returns true if the two responses to this request must not be
/// compared.
pub(crate) fn is_known(
    request: &[u8],
    theirs: &mut ObservedResponse,
    ours: &mut ObservedResponse,
) -> bool {
    let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let (head, body) = request.split_at(head);
    // docs/guide/tls-and-http2.md: Samovar rejects requests that are malformed by RFC 9113. The
    // same request over HTTP/1.1 reaches PHP unchanged.
    if ours.status == BAD_GATEWAY && is_malformed(head) {
        return true;
    }
    // nginx 1.22 resets streams that have trailers.
    let has_trailers =
        body.windows(5).any(|five| five == b"\r\n0\r\n") && !body.ends_with(b"\r\n0\r\n\r\n");
    if theirs.status == BAD_GATEWAY && has_trailers {
        return true;
    }
    // nginx removes the header over HTTP/2. Over HTTP/1.1 nginx keeps it if PHP set the status.
    if theirs.status == 204 && ours.status == 204 {
        ours.remove("content-type");
    }
    false
}

fn is_malformed(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let is_wrong = |byte: &u8| NO_TARGETS.contains(byte) || !(b' '..=b'~').contains(byte);
    let is_control = |byte: &u8| *byte < b' ' && !b"\r\n\t".contains(byte) || *byte == 0x7f;
    line.iter().any(is_wrong) || head.iter().any(is_control)
}
