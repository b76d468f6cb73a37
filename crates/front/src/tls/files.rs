//! Certificates, keys and the like, as they lie in files.

use super::certificate::{Certificate, is_nameless};
use super::failure::TlsError;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most bytes of one file that are read.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

const PEM_HINT: &str =
    "PEM files have lines such as -----BEGIN CERTIFICATE-----, the server's own certificate first";
const KEY_HINT: &str = "the key stands in the certificate's file, beside it with the extension `.key` or as \
                        `privkey.pem`, or is named in `tls.keys`";
const NAMES_HINT: &str = "have it made anew with `subjectAltName`, as by `openssl req -x509 -addext subjectAltName=DNS:…`, \
                          or `openssl x509 -req -copy_extensions copy`";
const STAPLE_HINT: &str =
    "`openssl ocsp -respout FILE` writes one; without the file the server goes on without";
const RIGHTS_HINT: &str =
    "the user that the server becomes must be able to read it, if it is to be read again";

/// What the files hold.
pub(super) struct Files {
    pub(super) certificates: Vec<Certificate>,
    /// Whose certificates clients may show.
    pub(super) authorities: Option<RootCertStore>,
}

/// What tells that files have changed: of each its inode, size and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<(u64, u64, i64, i64)>>);

impl Stamp {
    pub(super) fn of(settings: &samovar_config::Tls) -> Stamp {
        let of = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
        };
        let mut stamps: Vec<_> = settings.client_ca.iter().map(|path| of(path)).collect();
        for (index, path) in settings.certificates.iter().enumerate() {
            stamps.push(of(path));
            stamps.push(of(&with_extension(path, "ocsp")));
            match settings.keys.get(index) {
                Some(key) => stamps.push(of(key)),
                None => stamps.extend(key_places(path).map(|path| of(&path))),
            }
        }
        Stamp(stamps)
    }
}

impl Files {
    pub(super) fn read(
        settings: &samovar_config::Tls,
        provider: &CryptoProvider,
    ) -> Result<Files, TlsError> {
        let keys = settings.keys.iter().map(Some).chain(std::iter::repeat(None));
        let pairs = settings.certificates.iter().zip(keys);
        let certificates = pairs.map(|(path, key)| certificate(path, key, provider));
        Ok(Files {
            certificates: certificates.collect::<Result<_, _>>()?,
            authorities: settings.client_ca.as_deref().map(authorities).transpose()?,
        })
    }
}

/// A certificate and its key, both in one text that is `path`'s.
pub(super) fn certified(
    path: &Path,
    text: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let key = private_key(path, text)?;
    CertifiedKey::from_der(chain(path, text)?, key, provider)
        .map_err(|error| unusable(path, error, "the key is that of the file's first certificate"))
}

fn certificate(
    path: &Path,
    key: Option<&PathBuf>,
    provider: &CryptoProvider,
) -> Result<Certificate, TlsError> {
    let text = contents(path, PEM_HINT)?;
    let chain = chain(path, &text)?;
    let key = match key {
        Some(path) => private_key(path, &contents(path, KEY_HINT)?)?,
        None => find_key(path, &text)?,
    };
    if chain.first().is_some_and(is_nameless) {
        let what = "it is of version 1 of X.509, which has no room for the names that it is for";
        return Err(unusable(path, what, NAMES_HINT));
    }
    let mut certified = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        unusable(path, error, "the key is that of the file's first certificate")
    })?;
    certified.ocsp = staple(&with_extension(path, "ocsp"))?;
    Certificate::new(certified).map_err(|what| unusable(path, what, PEM_HINT))
}

fn chain(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let chain = chain.map_err(|error| unusable(path, error, PEM_HINT))?;
    if chain.is_empty() {
        return Err(unusable(path, "it holds no certificate", PEM_HINT));
    }
    Ok(chain)
}

fn private_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text)
        .map_err(|error| unusable(path, format!("it holds no key ({error})"), KEY_HINT))
}

/// In the certificate's file, else where others put it.
fn find_key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    if let Ok(key) = PrivateKeyDer::from_pem_slice(text) {
        return Ok(key);
    }
    let found = key_places(path).find(|place| fs::symlink_metadata(place).is_ok());
    match found {
        Some(place) => private_key(&place, &contents(&place, KEY_HINT)?),
        None => Err(unusable(path, "no key is found for it", KEY_HINT)),
    }
}

fn key_places(path: &Path) -> impl Iterator<Item = PathBuf> {
    [path.with_extension("key"), path.with_file_name("privkey.pem")].into_iter()
}

fn with_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let hint = "`tls.client_ca` takes a PEM file with certificates of authorities";
    let mut roots = RootCertStore::empty();
    for certificate in chain(path, &contents(path, hint)?)? {
        roots.add(certificate).map_err(|error| unusable(path, error, hint))?;
    }
    Ok(roots)
}

/// The answer of the authority that goes along. Clients that want one end the handshake over anything else: it would be
/// worse than none.
fn staple(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    let found = optional(path)?;
    match &found {
        Some(bytes) if !is_good_answer(bytes) => {
            Err(unusable(path, "it is no answer of OCSP in DER that went well", STAPLE_HINT))
        }
        _ => Ok(found),
    }
}

/// Whether these bytes are an `OCSPResponse` whose status is `successful` (RFC 6960, 4.2.1), and nothing besides. Who
/// signed it and of what it speaks is for clients to see.
fn is_good_answer(bytes: &[u8]) -> bool {
    const SUCCESSFUL: &[u8] = &[0x0a, 1, 0];
    let Some((&[0x30, length], rest)) = bytes.split_first_chunk() else { return false };
    // From 0x80 on the low bits say in how many bytes the length stands.
    let long = if length < 0x80 { 0 } else { usize::from(length & 0x7f) };
    let Some((digits, content)) = rest.split_at_checked(long).filter(|_| long <= 4) else {
        return false;
    };
    let length = match long {
        0 => usize::from(length),
        _ => digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)),
    };
    content.len() == length && content.starts_with(SUCCESSFUL) && length > SUCCESSFUL.len()
}

/// `None`: there is no such file, or an empty one.
fn optional(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    match contents(path, "remove it, or make it readable") {
        Ok(bytes) => Ok((!bytes.is_empty()).then_some(bytes)),
        Err(TlsError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn contents(path: &Path, hint: &'static str) -> Result<Vec<u8>, TlsError> {
    let failed = |cause: io::Error| {
        let is_right = cause.kind() == io::ErrorKind::PermissionDenied;
        let hint = if is_right { RIGHTS_HINT } else { hint };
        TlsError::Unreadable { path: path.to_owned(), cause, hint }
    };
    let found = fs::metadata(path).map_err(failed)?;
    // A pipe would be waited for.
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(unusable(path, "it is no file, or a very large one", hint));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn unusable(path: &Path, what: impl std::fmt::Display, hint: &'static str) -> TlsError {
    TlsError::Unusable { path: path.to_owned(), what: what.to_string(), hint }
}
