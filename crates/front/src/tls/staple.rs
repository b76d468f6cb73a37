//! What an authority says of a certificate, as a file has it: an answer of OCSP (RFC 6960, 4.2.1).
//!
//! Who signed it is for clients to see. Here it is looked whether it went well, of which certificate it speaks, and how long it
//! holds: clients that want one end the handshake over any other, so that it would be worse than none.

use x509_parser::asn1_rs::{Any, Class, FromDer, Tag};
use x509_parser::time::ASN1Time;

/// `id-pkix-ocsp-basic`, the only kind of answers that there is.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

/// An answer that went well.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Staple {
    pub(super) bytes: Vec<u8>,
    /// Whose it is: their serial numbers.
    serials: Vec<Vec<u8>>,
    /// When the first of what it says no longer holds, in seconds of Unix time; `None`: newer ones can be had at any time.
    pub(super) until: Option<i64>,
    pub(super) says_revoked: bool,
}

impl Staple {
    /// `None`: it is none, or tells of a failure.
    pub(super) fn read(bytes: Vec<u8>) -> Option<Staple> {
        let answers = answers(&bytes)?;
        if answers.is_empty() {
            return None;
        }
        let until = answers.iter().filter_map(|answer| answer.until).min();
        let says_revoked = answers.iter().any(|answer| answer.is_revoked);
        let serials = answers.into_iter().map(|answer| answer.serial).collect();
        Some(Staple { bytes, serials, until, says_revoked })
    }

    /// Whether it speaks of the certificate with this serial number, as DER has it.
    pub(super) fn is_of(&self, serial: &[u8]) -> bool {
        self.serials.iter().any(|own| own == serial)
    }
}

/// A `SingleResponse`.
struct Answer {
    serial: Vec<u8>,
    until: Option<i64>,
    is_revoked: bool,
}

fn answers(bytes: &[u8]) -> Option<Vec<Answer>> {
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
        found.push(answer(one.data)?);
        left = rest;
    }
    Some(found)
}

/// certID, certStatus, thisUpdate, nextUpdate `[0]`; extensions are left alone.
fn answer(bytes: &[u8]) -> Option<Answer> {
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
    Some(Answer { serial: serial.data.to_vec(), until, is_revoked })
}

/// An element of that kind, and what is behind it.
fn of(bytes: &[u8], tag: Tag) -> Option<(&[u8], Any<'_>)> {
    let (rest, found) = Any::from_der(bytes).ok()?;
    (found.class() == Class::Universal && found.tag() == tag).then_some((rest, found))
}

/// One with that number in its context.
fn tagged(bytes: &[u8], number: u32) -> Option<(&[u8], Any<'_>)> {
    let (rest, found) = Any::from_der(bytes).ok()?;
    (found.class() == Class::ContextSpecific && found.tag() == Tag(number)).then_some((rest, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_testkit::Certificate;

    /// Of an authority that has issued a certificate with this serial number.
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
    fn what_openssl_answers_is_understood() {
        let (bytes, serial) = made();
        let staple = Staple::read(bytes.clone()).expect("it went well");
        assert!(staple.is_of(&serial) && !staple.is_of(&[1]) && !staple.says_revoked);
        let now = jiff::Timestamp::now().as_second();
        let hours = (staple.until.expect("it ends") - now) / 3600;
        assert!((7 * 24 - 1..=7 * 24).contains(&hours), "{hours}");
        assert_eq!(staple.bytes, bytes);
    }

    #[test]
    fn no_prefix_of_it_and_no_garbage_passes_for_one() {
        let (bytes, _) = made();
        for end in 0..bytes.len() {
            assert_eq!(Staple::read(bytes[..end].to_vec()), None, "{end}");
        }
        assert_eq!(Staple::read([&bytes[..], &[0]].concat()), None, "something behind it");
        // tryLater (3), as an authority says that is busy.
        assert_eq!(Staple::read(vec![0x30, 3, 0x0a, 1, 3]), None);
        // Nothing else than an answer or a refusal comes of any byte that is wrong.
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0xff;
            let _ = Staple::read(wrong);
        }
    }
}
