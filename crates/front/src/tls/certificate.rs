//! A certificate and the names that it is valid for.

use super::staple::Staple;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// A certificate with its key and the names that it is valid for.
pub(super) struct Certificate {
    pub(super) key: Stapled,
    pub(super) names: Vec<String>,
    pub(super) life: Life,
}

/// Validity period of a certificate, in seconds of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) since: i64,
    pub(super) until: i64,
}

/// A certificate as sent to clients: with the OCSP response of its authority, as long as that is
/// valid.
pub(super) struct Stapled {
    whole: Arc<CertifiedKey>,
    /// The certificate without that response, and the time from which it is used.
    bare: Option<(i64, Arc<CertifiedKey>)>,
}

impl Stapled {
    pub(super) fn new(mut key: CertifiedKey, staple: Option<Staple>) -> Stapled {
        let Some(Staple { bytes, until, .. }) = staple else {
            return Stapled { whole: Arc::new(key), bare: None };
        };
        let bare = until.map(|until| (until, Arc::new(key.clone())));
        key.ocsp = Some(bytes);
        Stapled { whole: Arc::new(key), bare }
    }

    /// The certificate to send at `now`, in seconds of Unix time.
    pub(super) fn at(&self, now: i64) -> &Arc<CertifiedKey> {
        match &self.bare {
            Some((until, bare)) if now > *until => bare,
            _ => &self.whole,
        }
    }
}

impl Certificate {
    pub(super) fn new(key: CertifiedKey, staple: Option<Staple>) -> Result<Certificate, String> {
        let first = key.cert.first().ok_or("no certificate in the file")?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| error.to_string())?;
        let (since, until) = (parsed.validity().not_before, parsed.validity().not_after);
        let life = Life { since: since.timestamp(), until: until.timestamp() };
        let names = names(&parsed);
        Ok(Certificate { names, life, key: Stapled::new(key, staple) })
    }

    /// Whether it contains exactly this name, which is in lower case.
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(super) fn into_key(self) -> Arc<CertifiedKey> {
        self.key.whole
    }
}

/// Whether it is older than version 3 of X.509, the first with the names that clients check.
pub(super) fn is_nameless(certificate: &CertificateDer<'_>) -> bool {
    let parsed = X509Certificate::from_der(certificate);
    parsed.is_ok_and(|(_, certificate)| certificate.version() != X509Version::V3)
}

/// Returns the alternative names in lower case, or the subject's name if there are none.
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
