//! A client's certificate → what PHP is told of it, as nginx names it.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use std::fmt::Write;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};
use x509_parser::time::ASN1Time;

/// Names and values of `$_SERVER`.
pub(crate) type Variables = Vec<(&'static str, String)>;

/// Longest name of a subject that is passed on, bytes.
const NAME_BYTES_MAX: usize = 4096;

/// What is told of a connection that was asked for a certificate. It was verified in the handshake.
pub(crate) fn variables(shown: Option<&CertificateDer<'_>>) -> Variables {
    let parsed = shown.and_then(|der| X509Certificate::from_der(der).ok());
    let Some((_, certificate)) = parsed else {
        return vec![("SSL_CLIENT_VERIFY", "NONE".to_owned())];
    };
    vec![
        ("SSL_CLIENT_VERIFY", "SUCCESS".to_owned()),
        ("SSL_CLIENT_S_DN", name(certificate.subject())),
        ("SSL_CLIENT_I_DN", name(certificate.issuer())),
        ("SSL_CLIENT_M_SERIAL", hex(certificate.raw_serial())),
        ("SSL_CLIENT_V_START", date(&certificate.validity().not_before)),
        ("SSL_CLIENT_V_END", date(&certificate.validity().not_after)),
    ]
}

/// RFC 2253: the last part first, each value escaped.
fn name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for set in name.iter() {
        let attributes = set.iter().map(|attribute| {
            let kind = attribute.attr_type();
            let short = oid2abbrev(kind, oid_registry());
            let kind = short.map_or_else(|_| kind.to_id_string(), str::to_owned);
            match attribute.as_str() {
                Ok(value) => format!("{kind}={}", escaped(value)),
                Err(_) => format!("{kind}=#{}", hex(attribute.attr_value().data)),
            }
        });
        parts.push(attributes.collect::<Vec<_>>().join("+"));
    }
    parts.reverse();
    let mut text = parts.join(",");
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for (at, character) in value.char_indices() {
        let is_edge = at == 0 || at + character.len_utf8() == value.len();
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => out.extend(['\\', character]),
            '#' if at == 0 => out.push_str("\\#"),
            ' ' if is_edge => out.push_str("\\ "),
            control if control.is_control() => {
                let mut bytes = [0; 4];
                for byte in control.encode_utf8(&mut bytes).bytes() {
                    write!(out, "\\{byte:02X}").expect("writing to a string cannot fail");
                }
            }
            other => out.push(other),
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().skip_while(|byte| **byte == 0);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in digits {
        write!(text, "{byte:02X}").expect("writing to a string cannot fail");
    }
    if text.is_empty() { "00".to_owned() } else { text }
}

fn date(at: &ASN1Time) -> String {
    let at = Timestamp::from_second(at.timestamp()).unwrap_or_default();
    at.strftime("%b %e %H:%M:%S %Y GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        for (value, expected) in [
            ("plain", "plain"),
            ("a,b+c", "a\\,b\\+c"),
            ("#a#", "\\#a#"),
            (" a b ", "\\ a b\\ "),
            ("a\nb\0", "a\\0Ab\\00"),
            ("ä\u{85}", "ä\\C2\\85"),
        ] {
            assert_eq!(escaped(value), expected, "{value:?}");
        }
        assert_eq!(hex(&[0, 1, 0xab]), "01AB");
        assert_eq!(hex(&[0]), "00");
        assert_eq!(variables(None), [("SSL_CLIENT_VERIFY", "NONE".to_owned())]);
        let garbage = CertificateDer::from(vec![0x30, 3, 1]);
        assert_eq!(variables(Some(&garbage)), variables(None));
    }
}
