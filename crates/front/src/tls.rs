//! accept: what TLS listeners speak with: certificates, tickets, the authorities of clients.
//!
//! `certificate` knows its names, `staple` what its authority says of it, `revocation` which of clients are no longer good; `files` has what the
//! settings name, by `reading`, and `stamp` knows when to look again; `watch` knows when it ends, `issued` has what an authority has issued meanwhile, `chooser` picks a
//! certificate by the name that a client asks for, `client` is what PHP is told of a client's own, and of the connection. Knows no connection; imports no other folder of this crate.

mod certificate;
mod chooser;
pub(crate) mod client;
mod failure;
mod files;
mod issued;
mod reading;
mod revocation;
mod stamp;
mod staple;
mod watch;

use chooser::Chooser;
pub use failure::TlsError;
use files::Files;
use issued::{Issued, PROOF_PROTOCOL};
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use samovar_config::{ClientCertificates, Settings, TlsVersion};
use stamp::{Refused, Stamp};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
pub use watch::Notice;
use watch::Watched;

/// What clients may choose after the handshake, the first being ours.
const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[&[u8]] = &[b"http/1.1", b"http/1.0"];

/// What all TLS listeners speak with; it can be changed while they do.
pub struct Tls {
    provider: Arc<CryptoProvider>,
    /// Kept when certificates change, so that clients can resume.
    tickets: Arc<dyn ProducesTickets>,
    issued: Arc<Issued>,
    /// For authorities that look for a proof.
    proofs: Arc<ServerConfig>,
    current: Mutex<Current>,
    /// Others have been installed.
    installed: Notify,
}

struct Current {
    settings: samovar_config::Tls,
    has_http2: bool,
    config: Arc<ServerConfig>,
    stamp: Stamp,
    /// The certificates of files.
    files: Vec<CertificateFile>,
    /// What of the files comes to an end.
    watched: Vec<Watched>,
    /// What has not been said of them yet.
    notices: Vec<Notice>,
    /// Files that have changed and cannot be used.
    refused: Option<Refused>,
}

/// A certificate that lies in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFile {
    /// The file.
    pub path: PathBuf,
    /// The names that it is for, in lower case.
    pub names: Vec<String>,
    /// When it ends, in seconds of Unix time.
    pub until: i64,
}

/// What one connection uses.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) config: Arc<ServerConfig>,
    /// Clients are asked for a certificate.
    pub(crate) asks_client: bool,
    /// PHP is told how it is encrypted.
    pub(crate) tells_how: bool,
    /// What an authority gets that looks for a proof, while there is one.
    pub(crate) proofs: Option<Arc<ServerConfig>>,
}

/// Certificates that have been read, and wait to be used.
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
    /// Reads what `settings` name; `None`: nothing speaks TLS.
    pub fn load(settings: &Settings) -> Result<Option<Arc<Tls>>, TlsError> {
        if settings.tls.certificates.is_empty() && settings.acme.domains.is_empty() {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        // It draws new keys every six hours, and knows the last ones.
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

    /// Has these names looked after from now on: until it has a certificate, a name of them gets none.
    pub fn look_after(&self, domains: Vec<String>) {
        self.issued.look_after(domains);
    }

    /// Handshakes for `domain` get this certificate from now on: PEM, with its chain and its key.
    ///
    /// # Errors
    /// Where it is none, not this key's, or for another name; says what.
    pub fn install_issued(&self, domain: &str, pem: &[u8]) -> Result<(), String> {
        self.issued.install(domain, pem, &self.provider)
    }

    /// Answers `answer` to whoever asks for the token below `/.well-known/acme-challenge/`.
    pub fn show_token(&self, token: String, answer: String) {
        self.issued.show_token(token, answer);
    }

    /// Ends [`Self::show_token`].
    pub fn hide_token(&self, token: &str) {
        self.issued.hide_token(token);
    }

    /// Shows a certificate (both DER) to authorities that ask for a proof in a handshake for `domain`.
    ///
    /// # Errors
    /// Where the two do not go together.
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

    /// What is answered to whoever asks for this token.
    pub(crate) fn token(&self, token: &str) -> Option<String> {
        self.issued.token(token)
    }

    /// Reads the files anew, by other settings.
    pub fn prepare(&self, settings: &Settings) -> Result<Prepared, TlsError> {
        read(&settings.tls, settings.http2, &self.provider, &self.tickets, &self.issued)
            .map(Prepared)
    }

    /// New connections get these from now on.
    pub fn install(&self, prepared: Prepared) {
        *self.current() = prepared.0;
        self.installed.notify_one();
    }

    /// Waits for the next [`Self::install`], at most so long.
    pub(crate) async fn wait(&self, most: Duration) {
        // Which of the two it was makes no difference.
        let _ = tokio::time::timeout(most, self.installed.notified()).await;
    }

    /// Looks whether files have changed, and uses them if so. What was wrong with them is told once.
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
                // A reload may have come between.
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

    /// What operators should know of the files; each is told once.
    pub fn notices(&self) -> Vec<Notice> {
        let now = Timestamp::now().as_second();
        let mut current = self.current();
        let mut told = std::mem::take(&mut current.notices);
        told.extend(current.watched.iter_mut().filter_map(|watched| watched.notice(now)));
        told
    }

    /// The certificates of files that are shown.
    pub fn files(&self) -> Vec<CertificateFile> {
        self.current().files.clone()
    }

    /// What a connection that begins now is to use.
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
    // Before the files are read: what changes meanwhile is seen the next time.
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
            // As nginx does: a list that is out of date says nothing, and whom no list speaks of may have been revoked.
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
    // A ticket stands for the client's certificate, too: with other authorities nobody resumes.
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

/// Whether a client says in its first word that it is an authority, which looks for a proof and nothing else.
pub(crate) fn is_authority<'a>(mut offered: impl Iterator<Item = &'a [u8]>) -> bool {
    offered.next() == Some(PROOF_PROTOCOL) && offered.next().is_none()
}

/// Whether it got that proof: then it says no more.
pub(crate) fn is_proof(protocol: Option<&[u8]>) -> bool {
    protocol == Some(PROOF_PROTOCOL)
}

/// Whether HTTP/2 was agreed upon in a handshake.
pub(crate) fn is_http2(protocol: Option<&[u8]>) -> bool {
    protocol == Some(ALPN_HTTP2)
}
