//! Which certificates of clients are no longer good, by the lists of their authorities (CRLs, RFC 5280, 5).

use super::certificate::Life;
use super::failure::TlsError;
use super::reading::{contents, unusable};
use super::watch::Notice;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate};

const HINT: &str = "`tls.client_crls` takes lists of revoked certificates (CRLs) in PEM or DER, as `openssl ca -gencrl` writes them";
const PEM_BEGIN: &[u8] = b"-----BEGIN";

/// The lists of all files.
#[derive(Debug, Default)]
pub(super) struct Revocations {
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
    /// For how long each holds.
    pub(super) lives: Vec<(PathBuf, Life)>,
    /// Names of their authorities, in DER.
    issuers: Vec<Vec<u8>>,
}

impl Revocations {
    /// Clients may show certificates of `roots`.
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
        // What verifies with it later says whether it can.
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

    /// Which of the authorities have no list here: where there are lists, whose certificates nobody vouches for are not good.
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
                "`tls.client_crls` has no list of the authority `{name}` of `{}`: clients with its certificates are turned away",
                path.display()
            ),
            hint: "add the authority's list, an empty one if it has revoked nothing",
        };
        names.map(notice).collect()
    }
}

/// Those in a file of either kind; one at least.
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
        return Err(unusable(path, "it holds no such list", HINT));
    }
    Ok(all)
}
