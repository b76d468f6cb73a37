//! Variables for PHP: a client's certificate, with nginx's names, and the encryption of the
//! connection, with Apache's names.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, ProtocolVersion, ServerConnection};
use std::fmt::Write;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};
use x509_parser::time::ASN1Time;

/// Names and values in `$_SERVER`.
pub(crate) type Variables = Vec<(&'static str, String)>;

/// Maximum length of a subject that is passed on, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// Variables of a connection whose client was requested to send a certificate. It was verified in
/// the handshake.
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

/// Variables about the encryption of a connection.
pub(crate) fn connection(session: &ServerConnection) -> Variables {
    let version = session.protocol_version().map(version);
    let cipher = session.negotiated_cipher_suite().map(|suite| cipher(suite.suite()));
    let name = session.server_name().map(str::to_owned);
    let all = [("SSL_PROTOCOL", version), ("SSL_CIPHER", cipher), ("SSL_TLS_SNI", name)];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn version(version: ProtocolVersion) -> String {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
        ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Returns OpenSSL's name. For TLS 1.3 it is that of RFC 8446, for 1.2 an older one of its own.
fn cipher(suite: CipherSuite) -> String {
    let name = match suite {
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            "ECDHE-ECDSA-CHACHA20-POLY1305"
        }
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        other => return format!("{other:?}"),
    };
    name.to_owned()
}

/// Formats a name by RFC 2253: the last part first, each value escaped.
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

    /// Each suite that can be negotiated has OpenSSL's name.
    #[test]
    fn every_cipher_suite_has_an_openssl_name() {
        let provider = rustls::crypto::ring::default_provider();
        for suite in &provider.cipher_suites {
            let (ours, name) = (format!("{:?}", suite.suite()), cipher(suite.suite()));
            let plain =
                |text: &str| text.replace("TLS13", "TLS").replace("_WITH", "").replace('-', "_");
            let openssl = plain(&name).replace("AES256", "AES_256").replace("AES128", "AES_128");
            let rfc = plain(&ours);
            assert_ne!(name, ours);
            assert!(rfc == openssl || rfc.starts_with(&format!("TLS_{openssl}")), "{ours}: {name}");
        }
    }

    #[test]
    fn subject_values_are_escaped() {
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
