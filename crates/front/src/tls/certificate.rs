//! A certificate, and the names that it is for.

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// A certificate with its key, and the names that it is for.
pub(super) struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) names: Vec<String>,
    pub(super) life: Life,
}

/// From when to when a certificate holds, in seconds of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) since: i64,
    pub(super) until: i64,
}

impl Life {
    /// Why clients refuse it now.
    pub(super) fn fault(self, now: i64) -> Option<String> {
        let date = |at| Timestamp::from_second(at).map_or_else(|_| "?".into(), |at| at.to_string());
        if now > self.until {
            return Some(format!("ended on {}", date(self.until)));
        }
        (now < self.since).then(|| format!("begins only on {}", date(self.since)))
    }
}

impl Certificate {
    pub(super) fn new(key: CertifiedKey) -> Result<Certificate, String> {
        let first = key.cert.first().ok_or("it holds no certificate")?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| error.to_string())?;
        let (since, until) = (parsed.validity().not_before, parsed.validity().not_after);
        let life = Life { since: since.timestamp(), until: until.timestamp() };
        Ok(Certificate { names: names(&parsed), life, key: Arc::new(key) })
    }

    /// Whether it names exactly this one, in lower case.
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(super) fn into_key(self) -> Arc<CertifiedKey> {
        self.key
    }
}

/// Whether it is from before the third version of X.509, where the names are that clients look at.
pub(super) fn is_nameless(certificate: &CertificateDer<'_>) -> bool {
    let parsed = X509Certificate::from_der(certificate);
    parsed.is_ok_and(|(_, certificate)| certificate.version() != X509Version::V3)
}

/// In lower case; the subject's where there are no others.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    if let Some(alternative) = alternative {
        let names = alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        return names.collect();
    }
    let subject = certificate.subject().iter_common_name();
    subject.filter_map(|name| name.as_str().ok()).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_has_two_ends() {
        let life = Life { since: 1_000, until: 2_000 };
        assert_eq!(life.fault(1_000), None);
        assert_eq!(life.fault(2_000), None);
        assert_eq!(life.fault(2_001).as_deref(), Some("ended on 1970-01-01T00:33:20Z"));
        assert_eq!(life.fault(999).as_deref(), Some("begins only on 1970-01-01T00:16:40Z"));
    }
}
