//! Reads certificates, keys and related files.

use super::certificate::{Certificate, Life, is_nameless};
use super::failure::TlsError;
use super::file_reader::{contents, optional, unusable};
use super::revocation::Revocations;
use super::staple::Staple;
use super::watch::{Notice, Subject, Watched};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

const PEM_HINT: &str = "use a PEM file (lines such as -----BEGIN CERTIFICATE-----) with the \
                        server's own certificate first";
const KEY_HINT: &str = "put the key into the certificate's file, or next to it with the extension \
                        `.key` or as `privkey.pem`, or name it in `tls.keys`";
const NAMES_HINT: &str = "issue the certificate again with `subjectAltName`: \
                          `openssl req -x509 -addext subjectAltName=DNS:…`, or \
                          `openssl x509 -req -copy_extensions copy`";
const STAPLE_HINT: &str =
    "write the file with `openssl ocsp -respout FILE`, or remove it to run without stapling";
/// Contents of the files.
pub(super) struct Files {
    pub(super) certificates: Vec<Certificate>,
    /// Authorities of client certificates, and their revocation lists.
    pub(super) clients: Option<(Arc<RootCertStore>, Revocations)>,
    /// Files whose contents expire.
    pub(super) watched: Vec<Watched>,
    /// Notices to report immediately.
    pub(super) notices: Vec<Notice>,
}

impl Files {
    pub(super) fn read(
        settings: &samovar_config::Tls,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Files, TlsError> {
        let (certificates, clients, watched) = (Vec::new(), None, Vec::new());
        let mut files = Files { certificates, clients, watched, notices: Vec::new() };
        let keys = settings.keys.iter().map(Some).chain(std::iter::repeat(None));
        for (path, key) in settings.certificates.iter().zip(keys) {
            files.take(path, key, provider)?;
        }
        if let Some(path) = &settings.client_ca {
            files.clients = Some(files.clients_of(path, &settings.client_crls, provider)?);
        }
        Ok(files)
    }

    fn take(
        &mut self,
        path: &Path,
        key: Option<&PathBuf>,
        provider: &CryptoProvider,
    ) -> Result<(), TlsError> {
        let certified = key_of(path, key, provider)?;
        let beside = with_extension(path, "ocsp");
        let (staple, notice) = match certified.cert.first() {
            Some(first) => staple(&beside, &serial(first).unwrap_or_default())?,
            None => (None, None),
        };
        self.notices.extend(notice);
        let until = staple.as_ref().and_then(|staple| staple.until);
        let certificate =
            Certificate::new(certified, staple).map_err(|what| unusable(path, what, PEM_HINT))?;
        self.watched.push(Watched::new(path.to_owned(), Subject::Certificate, certificate.life));
        if let Some(until) = until {
            self.watched.push(Watched::new(beside, Subject::Staple, Life { since: 0, until }));
        }
        self.certificates.push(certificate);
        Ok(())
    }

    fn clients_of(
        &mut self,
        path: &Path,
        lists: &[PathBuf],
        provider: &Arc<CryptoProvider>,
    ) -> Result<(Arc<RootCertStore>, Revocations), TlsError> {
        let (roots, authorities) = authorities(path)?;
        let roots = Arc::new(roots);
        let revocations = Revocations::read(lists, &roots, provider)?;
        let of = |(path, life): &(PathBuf, Life)| {
            Watched::new(path.clone(), Subject::Revocations, *life)
        };
        self.watched.extend(revocations.lives.iter().map(of));
        self.notices.extend(revocations.missing(path, &authorities));
        Ok((roots, revocations))
    }
}

/// Reads a certificate and its key from one text, which is that of `path`.
pub(super) fn certified(
    path: &Path,
    text: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let key = private_key(path, text)?;
    CertifiedKey::from_der(chain(path, text)?, key, provider).map_err(|error| {
        unusable(path, error, "use the key that belongs to the file's first certificate")
    })
}

fn key_of(
    path: &Path,
    key: Option<&PathBuf>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let text = contents(path, PEM_HINT)?;
    let chain = chain(path, &text)?;
    let key = match key {
        Some(path) => private_key(path, &contents(path, KEY_HINT)?)?,
        None => find_key(path, &text)?,
    };
    if chain.first().is_some_and(is_nameless) {
        let what = "X.509 version 1 certificates have no alternative names";
        return Err(unusable(path, what, NAMES_HINT));
    }
    CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        unusable(path, error, "use the key that belongs to the file's first certificate")
    })
}

/// Returns the serial number in DER.
fn serial(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.raw_serial().to_vec())
}

fn chain(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| unusable(path, error, PEM_HINT))?;
    if chain.is_empty() {
        return Err(unusable(path, "no certificate in the file", PEM_HINT));
    }
    Ok(chain)
}

fn private_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|error| unusable(path, format!("no private key in the file ({error})"), KEY_HINT))
}

/// Finds the key in the certificate's file, or else in the usual places.
fn find_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    if let Ok(key) = PrivateKeyDer::from_pem_slice(text) {
        return Ok(key);
    }
    let found = key_places(path).find(|place| fs::symlink_metadata(place).is_ok());
    match found {
        Some(place) => private_key(&place, &contents(&place, KEY_HINT)?),
        None => Err(unusable(path, "no private key found", KEY_HINT)),
    }
}

pub(super) fn key_places(path: &Path) -> impl Iterator<Item = PathBuf> {
    [path.with_extension("key"), path.with_file_name("privkey.pem")].into_iter()
}

pub(super) fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn authorities(path: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsError> {
    let hint = "set `tls.client_ca` to a PEM file with certificates of authorities";
    let mut roots = RootCertStore::empty();
    let all = chain(path, &contents(path, hint)?)?;
    for certificate in &all {
        roots.add(certificate.clone()).map_err(|error| unusable(path, error, hint))?;
    }
    Ok((roots, all))
}

/// Reads the authority's OCSP response to send with the certificate, and a notice about it. A
/// response for another certificate is not used: it was left there by a previous one.
fn staple(path: &Path, serial: &[u8]) -> Result<(Option<Staple>, Option<Notice>), TlsError> {
    let Some(bytes) = optional(path)? else { return Ok((None, None)) };
    let Some(staple) = Staple::read(bytes) else {
        return Err(unusable(path, "not a successful OCSP response in DER", STAPLE_HINT));
    };
    let notice =
        |what| Some(Notice { what: format!("`{}` {what}", path.display()), hint: STAPLE_HINT });
    if !staple.is_of(serial) {
        return Ok((None, notice("is for another certificate: it is not stapled")));
    }
    let revoked = "says that the certificate is revoked: clients reject it";
    let notice = if staple.says_revoked { notice(revoked) } else { None };
    Ok((Some(staple), notice))
}
