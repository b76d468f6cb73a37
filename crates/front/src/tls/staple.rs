//! The OCSP response of an authority about a certificate (RFC 6960, 4.2.1), read from a file.
//!
//! Its signature is verified by clients. Here the result code, the certificate and the validity
//! period are checked, because clients that require a response end the handshake if it is wrong. A
//! wrong response would be worse than none.

use x509_parser::asn1_rs::{Any, Class, FromDer, Tag};
use x509_parser::time::ASN1Time;

/// `id-pkix-ocsp-basic`, the only type of response that exists.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

/// A successful response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Staple {
    pub(super) bytes: Vec<u8>,
    /// Serial numbers of its certificates.
    serials: Vec<Vec<u8>>,
    /// End of the validity of the first part that expires, in seconds of Unix time. `None`: newer
    /// responses are always available.
    pub(super) until: Option<i64>,
    pub(super) says_revoked: bool,
}

impl Staple {
    /// `None`: the bytes are not a response, or report a failure.
    pub(super) fn read(bytes: Vec<u8>) -> Option<Staple> {
        let responses = responses(&bytes)?;
        if responses.is_empty() {
            return None;
        }
        let until = responses.iter().filter_map(|response| response.until).min();
        let says_revoked = responses.iter().any(|response| response.is_revoked);
        let serials = responses.into_iter().map(|response| response.serial).collect();
        Some(Staple { bytes, serials, until, says_revoked })
    }

    /// Whether it is about the certificate with this serial number, in DER.
    pub(super) fn is_of(&self, serial: &[u8]) -> bool {
        self.serials.iter().any(|own| own == serial)
    }
}

/// A `SingleResponse`.
struct OcspResponse {
    serial: Vec<u8>,
    until: Option<i64>,
    is_revoked: bool,
}

fn responses(bytes: &[u8]) -> Option<Vec<OcspResponse>> {
    const SUCCESSFUL: &[u8] = &[0];
    let (rest, outer) = of(bytes, Tag::Sequence)?;
    let (body, status) = of(outer.data, Tag::Enumerated)?;
    if !rest.is_empty() || status.data != SUCCESSFUL {
        return None;
    }
    let (_, body) = tagged(body, 0)?;
    let (_, body) = of(body.data, Tag::Sequence)?;
    let (body, kind) = of(body.data, Tag::Oid)?;
    if kind.data != BASIC {
        return None;
    }
    let (_, body) = of(body, Tag::OctetString)?;
    let (_, basic) = of(body.data, Tag::Sequence)?;
    let (_, data) = of(basic.data, Tag::Sequence)?;
    // version [0] if it is not the first; responderID [1] or [2]; producedAt.
    let inner = tagged(data.data, 0).map_or(data.data, |(rest, _)| rest);
    let (inner, _responder) = tagged(inner, 1).or_else(|| tagged(inner, 2))?;
    let (inner, _produced) = ASN1Time::from_der(inner).ok()?;
    let (_, all) = of(inner, Tag::Sequence)?;
    let mut left = all.data;
    let mut found = Vec::new();
    while !left.is_empty() {
        let (rest, one) = of(left, Tag::Sequence)?;
        found.push(respond(one.data)?);
        left = rest;
    }
    Some(found)
}

/// certID, certStatus, thisUpdate, nextUpdate `[0]`. Extensions are ignored.
fn respond(bytes: &[u8]) -> Option<OcspResponse> {
    let (rest, id) = of(bytes, Tag::Sequence)?;
    let (inner, _algorithm) = of(id.data, Tag::Sequence)?;
    let (inner, _name) = of(inner, Tag::OctetString)?;
    let (inner, _key) = of(inner, Tag::OctetString)?;
    let (_, serial) = of(inner, Tag::Integer)?;
    let (rest, status) = Any::from_der(rest).ok()?;
    let (rest, _since) = ASN1Time::from_der(rest).ok()?;
    let until = match tagged(rest, 0) {
        None => None,
        Some((_, next)) => Some(ASN1Time::from_der(next.data).ok()?.1.timestamp()),
    };
    let is_revoked = status.tag() == Tag(1);
    Some(OcspResponse { serial: serial.data.to_vec(), until, is_revoked })
}

/// Reads an element with this tag. Also returns the bytes after it.
fn of(bytes: &[u8], tag: Tag) -> Option<(&[u8], Any<'_>)> {
    let (rest, found) = Any::from_der(bytes).ok()?;
    (found.class() == Class::Universal && found.tag() == tag).then_some((rest, found))
}

/// Reads an element with this number in the context-specific class.
fn tagged(bytes: &[u8], number: u32) -> Option<(&[u8], Any<'_>)> {
    let (rest, found) = Any::from_der(bytes).ok()?;
    (found.class() == Class::ContextSpecific && found.tag() == Tag(number)).then_some((rest, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_testkit::Certificate;

    /// A response of an authority, and the serial number of its certificate.
    fn made() -> (Vec<u8>, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let authority = Certificate::own(folder.path(), "authority", "DNS:a.example");
        let leaf = Certificate::signed(folder.path(), "leaf", "DNS:b.example", &authority);
        authority.vouch_for(&leaf, folder.path());
        let pem = std::fs::read(&leaf.chain).expect("a certificate");
        let (_, pem) = x509_parser::pem::parse_x509_pem(&pem).expect("PEM");
        let serial = pem.parse_x509().expect("a certificate").raw_serial().to_vec();
        (std::fs::read(folder.path().join("leaf.pem.ocsp")).expect("an answer"), serial)
    }

    #[test]
    fn openssl_response_is_read() {
        let (bytes, serial) = made();
        let staple = Staple::read(bytes.clone()).expect("it went well");
        assert!(staple.is_of(&serial) && !staple.is_of(&[1]) && !staple.says_revoked);
        let now = jiff::Timestamp::now().as_second();
        let hours = (staple.until.expect("it ends") - now) / 3600;
        assert!((7 * 24 - 1..=7 * 24).contains(&hours), "{hours}");
        assert_eq!(staple.bytes, bytes);
    }

    #[test]
    fn truncated_or_changed_response_is_rejected() {
        let (bytes, _) = made();
        for end in 0..bytes.len() {
            assert_eq!(Staple::read(bytes[..end].to_vec()), None, "{end}");
        }
        assert_eq!(Staple::read([&bytes[..], &[0]].concat()), None, "trailing bytes");
        // tryLater (3): the authority is busy.
        assert_eq!(Staple::read(vec![0x30, 3, 0x0a, 1, 3]), None);
        // Any wrong byte leads to a response or a rejection, never to a panic.
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0xff;
            let _ = Staple::read(wrong);
        }
    }
}
