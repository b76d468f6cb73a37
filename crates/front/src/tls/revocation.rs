//! Revoked client certificates, by the lists of their authorities (CRLs, RFC 5280, 5).

use super::certificate::Life;
use super::failure::TlsError;
use super::file_reader::{contents, unusable};
use super::watch::Notice;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate};

const HINT: &str = "set `tls.client_crls` to lists of revoked certificates (CRLs) in PEM or DER, \
                    as written by `openssl ca -gencrl`";
const PEM_BEGIN: &[u8] = b"-----BEGIN";

/// The lists of all files.
#[derive(Debug, Default)]
pub(super) struct Revocations {
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
    /// Validity period of each list.
    pub(super) lives: Vec<(PathBuf, Life)>,
    /// Names of their authorities, in DER.
    issuers: Vec<Vec<u8>>,
}

impl Revocations {
    /// Reads the lists for client certificates of `roots`.
    pub(super) fn read(
        paths: &[PathBuf],
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Revocations, TlsError> {
        let mut all = Revocations::default();
        for path in paths {
            for list in lists(path, contents(path, HINT)?)? {
                all.take(path, list, roots, provider)?;
            }
        }
        Ok(all)
    }

    fn take(
        &mut self,
        path: &Path,
        list: CertificateRevocationListDer<'static>,
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<(), TlsError> {
        // The verifier that uses the list later decides whether it is valid.
        let trial =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider));
        trial.with_crls([list.clone()]).build().map_err(|error| unusable(path, error, HINT))?;
        let (_, parsed) = CertificateRevocationList::from_der(&list)
            .map_err(|error| unusable(path, error, HINT))?;
        let since = parsed.last_update().timestamp();
        let until = parsed.next_update().map_or(i64::MAX, |at| at.timestamp());
        self.lives.push((path.to_owned(), Life { since, until }));
        self.issuers.push(parsed.issuer().as_raw().to_vec());
        self.lists.push(list);
        Ok(())
    }

    /// Returns a notice for each authority without a list. If there are any lists, certificates
    /// that no list covers are rejected.
    pub(super) fn missing(&self, path: &Path, authorities: &[CertificateDer<'_>]) -> Vec<Notice> {
        if self.lists.is_empty() {
            return Vec::new();
        }
        let names = authorities.iter().filter_map(|der| {
            let (_, parsed) = X509Certificate::from_der(der).ok()?;
            let subject = parsed.subject();
            (!self.issuers.iter().any(|own| own == subject.as_raw())).then(|| subject.to_string())
        });
        let notice = |name: String| Notice {
            what: format!(
                "`tls.client_crls` has no list of the authority `{name}` of `{}`: clients with \
                 its certificates are rejected",
                path.display()
            ),
            hint: "add the authority's list; use an empty list if no certificate is revoked",
        };
        names.map(notice).collect()
    }
}

/// Reads the lists in a file of either format. There is at least one.
fn lists(
    path: &Path,
    bytes: Vec<u8>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    if !bytes.windows(PEM_BEGIN.len()).any(|window| window == PEM_BEGIN) {
        return Ok(vec![bytes.into()]);
    }
    let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    let all = all.map_err(|error| unusable(path, error, HINT))?;
    if all.is_empty() {
        return Err(unusable(path, "no revocation list in the file", HINT));
    }
    Ok(all)
}
