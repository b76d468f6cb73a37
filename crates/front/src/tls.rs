//! accept: the configuration of TLS listeners: certificates, tickets, the authorities of client
//! certificates.
//!
//! - `certificate` reads the names of a certificate. `staple` reads the OCSP response of its
//!   authority.
//! - `revocation` reads the lists of revoked client certificates.
//! - `files` reads the files of the settings, by `file_reader`. `file_stamp` detects when to read
//!   them again.
//! - `watch` reports when a file expires.
//! - `issued` has the certificates that an authority has issued at runtime.
//! - `certificate_selector` selects a certificate by the name that a client requests.
//! - `client` sets the variables for PHP about a client's certificate and the connection.
//!
//! Knows no connections. Imports no other folder of this crate.

mod certificate;
mod certificate_selector;
pub(crate) mod client;
mod failure;
mod file_reader;
mod file_stamp;
mod files;
mod issued;
mod revocation;
mod staple;
mod watch;

use certificate_selector::Chooser;
pub use failure::TlsError;
use file_stamp::{Refused, Stamp};
use files::Files;
use issued::{Issued, PROOF_PROTOCOL};
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use samovar_config::{ClientCertificates, Settings, TlsVersion};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
pub use watch::Notice;
use watch::Watched;

/// Protocols that clients may select in the handshake. The first is our preference.
const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[&[u8]] = &[b"http/1.1", b"http/1.0"];

/// The configuration of all TLS listeners. It can change while they are in use.
pub struct Tls {
    provider: Arc<CryptoProvider>,
    /// Kept when certificates change, so that clients can resume sessions.
    tickets: Arc<dyn ProducesTickets>,
    issued: Arc<Issued>,
    /// Configuration for authorities that validate a domain in a handshake.
    proofs: Arc<ServerConfig>,
    current: Mutex<Current>,
    /// Notified when new certificates have been installed.
    installed: Notify,
}

struct Current {
    settings: samovar_config::Tls,
    has_http2: bool,
    config: Arc<ServerConfig>,
    stamp: Stamp,
    /// The certificates in files.
    files: Vec<CertificateFile>,
    /// Files whose contents expire.
    watched: Vec<Watched>,
    /// Notices about the files that were not reported yet.
    notices: Vec<Notice>,
    /// Changed files that cannot be used.
    refused: Option<Refused>,
}

/// A certificate in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// The file.
    pub path: PathBuf,
    /// The names that it is valid for, in lower case.
    pub names: Vec<String>,
    /// End of its validity, in seconds of Unix time.
    pub until: i64,
}

/// The TLS settings of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) config: Arc<ServerConfig>,
    /// Whether clients are requested to send a certificate.
    pub(crate) asks_client: bool,
    /// Whether PHP gets variables about the encryption.
    pub(crate) tells_how: bool,
    /// Configuration for authorities that validate a domain, while there is a validation.
    pub(crate) proofs: Option<Arc<ServerConfig>>,
}

/// Certificates that have been read and are not in use yet.
pub struct Prepared(Current);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files in `settings`. `None`: no listener uses TLS.
    pub fn load(settings: &Settings) -> Result<Option<Arc<Tls>>, TlsError> {
        if settings.tls.certificates.is_empty() && settings.acme.domains.is_empty() {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        // Generates new keys every six hours, and accepts the previous ones.
        let tickets = ring::Ticketer::new().map_err(|e| TlsError::Refused(e.to_string()))?;
        let issued = Arc::new(Issued::default());
        issued.look_after(settings.acme.domains.clone());
        let current = read(&settings.tls, settings.http2, &provider, &tickets, &issued)?;
        let proofs = issued::proof_config(&issued, &provider)
            .map_err(|e| TlsError::Refused(e.to_string()))?;
        let current = Mutex::new(current);
        let installed = Notify::new();
        Ok(Some(Arc::new(Tls { provider, tickets, issued, proofs, current, installed })))
    }

    /// Sets the names whose certificates are issued at runtime. A handshake for one of them gets no
    /// certificate until one is installed.
    pub fn look_after(&self, domains: Vec<String>) {
        self.issued.look_after(domains);
    }

    /// Uses this certificate for handshakes with `domain` from now on. `pem` contains its chain and
    /// its key.
    ///
    /// # Errors
    /// If it is invalid, does not match the key, or is for another name. Contains the reason.
    pub fn install_issued(&self, domain: &str, pem: &[u8]) -> Result<(), String> {
        self.issued.install(domain, pem, &self.provider)
    }

    /// Serves `response` to requests for the token below `/.well-known/acme-challenge/`.
    pub fn show_token(&self, token: String, response: String) {
        self.issued.show_token(token, response);
    }

    /// Ends [`Self::show_token`].
    pub fn hide_token(&self, token: &str) {
        self.issued.hide_token(token);
    }

    /// Presents a certificate (both parts are DER) to authorities that validate `domain` in a
    /// handshake.
    ///
    /// # Errors
    /// If certificate and key do not match.
    pub fn show_handshake(
        &self,
        domain: String,
        certificate: Vec<u8>,
        key: Vec<u8>,
    ) -> Result<(), String> {
        self.issued.show_handshake(domain, certificate, key, &self.provider)
    }

    /// Ends [`Self::show_handshake`].
    pub fn hide_handshake(&self, domain: &str) {
        self.issued.hide_handshake(domain);
    }

    /// Returns the response to a request for this token.
    pub(crate) fn token(&self, token: &str) -> Option<String> {
        self.issued.token(token)
    }

    /// Reads the files again, with other settings.
    pub fn prepare(&self, settings: &Settings) -> Result<Prepared, TlsError> {
        read(&settings.tls, settings.http2, &self.provider, &self.tickets, &self.issued)
            .map(Prepared)
    }

    /// Uses these certificates for new connections from now on.
    pub fn install(&self, prepared: Prepared) {
        *self.current() = prepared.0;
        self.installed.notify_one();
    }

    /// Waits for the next [`Self::install`], at most for `most`.
    pub(crate) async fn wait(&self, most: Duration) {
        // Both results are handled in the same way.
        let _ = tokio::time::timeout(most, self.installed.notified()).await;
    }

    /// Checks whether files have changed, and uses them if so. An error in them is reported once.
    pub(crate) fn refresh(&self) -> Result<bool, TlsError> {
        let (settings, has_http2, old) = {
            let current = self.current();
            (current.settings.clone(), current.has_http2, current.stamp.clone())
        };
        let stamp = Stamp::of(&settings);
        let is_settled = |refused: &Refused| refused.is_settled(&stamp);
        if stamp == old || self.current().refused.as_ref().is_some_and(is_settled) {
            return Ok(false);
        }
        match read(&settings, has_http2, &self.provider, &self.tickets, &self.issued) {
            Ok(read) => {
                let mut current = self.current();
                // A reload may have happened meanwhile.
                if current.stamp == old {
                    *current = read;
                }
                Ok(true)
            }
            Err(error) => {
                let refused = Refused::new(stamp, &error);
                let mut current = self.current();
                let is_known = refused.is_known(current.refused.as_ref());
                current.refused = Some(refused);
                if is_known { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Returns new notices about the files for operators. Each is returned once.
    pub fn notices(&self) -> Vec<Notice> {
        let now = Timestamp::now().as_second();
        let mut current = self.current();
        let mut told = std::mem::take(&mut current.notices);
        told.extend(current.watched.iter_mut().filter_map(|watched| watched.notice(now)));
        told
    }

    /// The certificates in files that are in use.
    pub fn files(&self) -> Vec<CertificateFile> {
        self.current().files.clone()
    }

    /// Returns the TLS settings for a new connection.
    pub(crate) fn session(&self) -> Session {
        let current = self.current();
        Session {
            config: Arc::clone(&current.config),
            asks_client: current.settings.client_ca.is_some(),
            tells_how: current.settings.variables,
            proofs: self.issued.shows_handshakes().then(|| Arc::clone(&self.proofs)),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(
    settings: &samovar_config::Tls,
    has_http2: bool,
    provider: &Arc<CryptoProvider>,
    tickets: &Arc<dyn ProducesTickets>,
    issued: &Arc<Issued>,
) -> Result<Current, TlsError> {
    // Taken before the files are read, so that a change meanwhile is detected the next time.
    let stamp = Stamp::of(settings);
    let files = Files::read(settings, provider)?;
    let versions: &[_] = match settings.min_version {
        TlsVersion::Tls12 => &[&TLS13, &TLS12],
        TlsVersion::Tls13 => &[&TLS13],
    };
    let refused = |error: &dyn std::fmt::Display| TlsError::Refused(error.to_string());
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)
        .map_err(|e| refused(&e))?;
    let builder = match files.clients {
        None => builder.with_no_client_auth(),
        Some((roots, revocations)) => {
            // As in nginx: an expired list is not used, and a certificate that no list covers is
            // rejected, because it may have been revoked.
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
                .with_crls(revocations.lists)
                .enforce_revocation_expiration();
            let verifier = match settings.client_certificates {
                ClientCertificates::Optional => verifier.allow_unauthenticated(),
                ClientCertificates::Required => verifier,
            };
            builder.with_client_cert_verifier(verifier.build().map_err(|e| refused(&e))?)
        }
    };
    let shown = files.certificates.iter().zip(&settings.certificates).map(|(own, path)| {
        let names = own.names.clone();
        CertificateFile { path: path.clone(), names, until: own.life.until }
    });
    let shown = shown.collect();
    let mut config =
        builder.with_cert_resolver(Arc::new(Chooser::new(files.certificates, Arc::clone(issued))));
    let first = has_http2.then_some(&ALPN_HTTP2);
    let names = first.into_iter().chain(ALPN_HTTP1);
    config.alpn_protocols = names.map(|name| name.to_vec()).collect();
    // A resumed session does not verify the client's certificate again. If the authorities change,
    // no session may be resumed.
    config.ticketer = match settings.client_ca {
        None => Arc::clone(tickets),
        Some(_) => ring::Ticketer::new().map_err(|e| refused(&e))?,
    };
    let settings = settings.clone();
    Ok(Current {
        settings,
        has_http2,
        config: Arc::new(config),
        stamp,
        files: shown,
        watched: files.watched,
        notices: files.notices,
        refused: None,
    })
}

/// Whether a client is an authority that only validates a domain, by the protocols in its first
/// message.
pub(crate) fn is_authority<'a>(mut offered: impl Iterator<Item = &'a [u8]>) -> bool {
    offered.next() == Some(PROOF_PROTOCOL) && offered.next().is_none()
}

/// Whether a client got this validation. Then no request follows.
pub(crate) fn is_proof(protocol: Option<&[u8]>) -> bool {
    protocol == Some(PROOF_PROTOCOL)
}

/// Whether HTTP/2 was negotiated in a handshake.
pub(crate) fn is_http2(protocol: Option<&[u8]>) -> bool {
    protocol == Some(ALPN_HTTP2)
}
