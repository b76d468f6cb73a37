//! A certificate, and the names that it is for.

use rustls::sign::CertifiedKey;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate with its key, and the names that it is for.
pub(super) struct Certificate {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) names: Vec<String>,
}

impl Certificate {
    pub(super) fn new(key: CertifiedKey) -> Result<Certificate, String> {
        let first = key.cert.first().ok_or("it holds no certificate")?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| error.to_string())?;
        Ok(Certificate { names: names(&parsed), key: Arc::new(key) })
    }

    /// Whether it names exactly this one, in lower case.
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    pub(super) fn into_key(self) -> Arc<CertifiedKey> {
        self.key
    }
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
