//! http2: what differs by HTTP/2 over TLS and is known to. An HAProxy stands before both sides and says it by HTTP/1.1.

use crate::answer::Answer;

/// HAProxy's answer where the server behind it ends a stream.
const BAD_GATEWAY: u16 = 502;
/// Bytes of a target that nginx lets through, and that RFC 3986, to which RFC 9113 leads, does not have.
const NO_TARGETS: &[u8] = b"\"<>[\\]^`{|}";

/// Takes away what is known to differ; whether the two answers to this request are not to be compared.
pub(crate) fn is_known(request: &[u8], theirs: &mut Answer, ours: &mut Answer) -> bool {
    let head = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(request.len());
    let (head, body) = request.split_at(head);
    // docs/guide/edge.md: what RFC 9113 calls malformed is refused, where HTTP/1.1's reaches PHP as it came.
    if ours.status == BAD_GATEWAY && is_malformed(head) {
        return true;
    }
    // nginx 1.22 ends streams that have trailers.
    let has_trailers =
        body.windows(5).any(|five| five == b"\r\n0\r\n") && !body.ends_with(b"\r\n0\r\n\r\n");
    if theirs.status == BAD_GATEWAY && has_trailers {
        return true;
    }
    // nginx takes it off by HTTP/2, and leaves it by HTTP/1.1 where PHP has said the status.
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
