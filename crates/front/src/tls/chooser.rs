//! Which certificate a client gets: by the name that it asks for.

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate with its key, and the names that it is for.
pub(super) struct Certificate {
    key: Arc<CertifiedKey>,
    names: Vec<String>,
}

impl Certificate {
    pub(super) fn new(key: CertifiedKey) -> Result<Certificate, String> {
        let first = key.cert.first().ok_or("it holds no certificate")?;
        let (_, parsed) = X509Certificate::from_der(first).map_err(|error| error.to_string())?;
        Ok(Certificate { names: names(&parsed), key: Arc::new(key) })
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

/// All certificates by their names.
pub(super) struct Chooser {
    all: Vec<Arc<CertifiedKey>>,
    /// A name may have several, with keys of different kinds.
    by_name: HashMap<String, Vec<usize>>,
}

impl std::fmt::Debug for Chooser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chooser").field("by_name", &self.by_name).finish_non_exhaustive()
    }
}

impl Chooser {
    pub(super) fn new(certificates: Vec<Certificate>) -> Chooser {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, certificate) in certificates.iter().enumerate() {
            for name in &certificate.names {
                by_name.entry(name.clone()).or_default().push(index);
            }
        }
        Chooser { all: certificates.into_iter().map(|c| c.key).collect(), by_name }
    }

    /// Those for `name`: exact ones, else those for all names beside it, else the first of all.
    fn of(&self, name: Option<&str>) -> &[usize] {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let found = name.as_deref().and_then(|name| {
            let beside = || Some(format!("*.{}", name.split_once('.')?.1));
            self.by_name.get(name).or_else(|| self.by_name.get(&beside()?))
        });
        found.map_or(&[0], Vec::as_slice)
    }
}

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let candidates = self.of(hello.server_name());
        let schemes = hello.signature_schemes();
        let suits = |index: &&usize| self.all[**index].key.choose_scheme(schemes).is_some();
        let chosen = candidates.iter().find(suits).or(candidates.first())?;
        self.all.get(*chosen).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_certificates() {
        let names = [("a.example", 1), ("*.example", 2), ("*.b.example", 3), ("b.example", 4)];
        let by_name = names.map(|(name, index)| (name.to_owned(), vec![index])).into();
        let chooser = Chooser { all: Vec::new(), by_name };
        for (name, expected) in [
            (Some("a.example"), 1),
            (Some("A.Example."), 1),
            (Some("x.example"), 2),
            (Some("x.b.example"), 3),
            (Some("b.example"), 4),
            (Some("x.y.b.example"), 0),
            (Some("example"), 0),
            (Some(""), 0),
            (None, 0),
        ] {
            assert_eq!(chooser.of(name), [expected], "{name:?}");
        }
    }
}
