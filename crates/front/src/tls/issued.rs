//! Certificates that an authority has issued at runtime, and the proofs for the authority's
//! validation.
//!
//! The ACME client stores them here; handshakes and requests use them. They do not override files:
//! a name in a file's certificate is served with that certificate.

use super::certificate::Certificate;
use super::files;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Protocol of an authority that validates a domain in a handshake (RFC 8737).
pub(super) const PROOF_PROTOCOL: &[u8] = b"acme-tls/1";
/// Maximum number of concurrent proofs of each type. Far more than the number of managed names.
const PROOFS_MAX: usize = 1024;

/// Managed names, their certificates, and the proofs for them.
#[derive(Default)]
pub(super) struct Issued {
    table: Mutex<Table>,
    /// Number of proofs, so that no lock is taken if there are none.
    tokens: AtomicUsize,
    handshakes: AtomicUsize,
}

#[derive(Default)]
struct Table {
    /// In the order of the settings.
    domains: Vec<String>,
    certificates: HashMap<String, Arc<CertifiedKey>>,
    tokens: HashMap<String, String>,
    handshakes: HashMap<String, Arc<CertifiedKey>>,
}

/// Result of a lookup by name.
pub(super) enum Found {
    Certificate(Arc<CertifiedKey>),
    /// The name is managed, and has no certificate yet.
    Pending,
    Nothing,
}

impl Issued {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the managed names. Certificates of other names are removed.
    pub(super) fn look_after(&self, domains: Vec<String>) {
        let mut table = self.table();
        table.certificates.retain(|domain, _| domains.contains(domain));
        table.domains = domains;
    }

    /// Replaces the name's certificate. `pem` contains the new one and its key.
    pub(super) fn install(
        &self,
        domain: &str,
        pem: &[u8],
        provider: &CryptoProvider,
    ) -> Result<(), String> {
        let certified = files::certified(Path::new(domain), pem, provider)
            .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?;
        let certificate = Certificate::new(certified, None)?;
        if !certificate.is_for(domain) {
            return Err(format!("the certificate is not for `{domain}`"));
        }
        let mut table = self.table();
        if table.domains.iter().any(|known| known == domain) {
            table.certificates.insert(domain.to_owned(), certificate.into_key());
        }
        Ok(())
    }

    /// Looks up a name that a client requests, in lower case.
    pub(super) fn of(&self, name: &str) -> Found {
        let table = self.table();
        match table.certificates.get(name) {
            Some(key) => Found::Certificate(Arc::clone(key)),
            None if table.domains.iter().any(|known| known == name) => Found::Pending,
            None => Found::Nothing,
        }
    }

    /// The certificate for clients that request no name, or an unknown one.
    pub(super) fn first(&self) -> Option<Arc<CertifiedKey>> {
        let table = self.table();
        let of = |domain: &String| table.certificates.get(domain).cloned();
        table.domains.iter().find_map(of)
    }

    pub(super) fn show_token(&self, token: String, response: String) {
        let mut table = self.table();
        if table.tokens.len() < PROOFS_MAX {
            table.tokens.insert(token, response);
        }
        self.tokens.store(table.tokens.len(), Ordering::Release);
    }

    pub(super) fn hide_token(&self, token: &str) {
        let mut table = self.table();
        table.tokens.remove(token);
        self.tokens.store(table.tokens.len(), Ordering::Release);
    }

    /// Returns the contents of a token's file.
    pub(super) fn token(&self, token: &str) -> Option<String> {
        if self.tokens.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.table().tokens.get(token).cloned()
    }

    pub(super) fn show_handshake(
        &self,
        domain: String,
        certificate: Vec<u8>,
        key: Vec<u8>,
        provider: &CryptoProvider,
    ) -> Result<(), String> {
        let chain = vec![CertificateDer::from(certificate)];
        let key = PrivateKeyDer::try_from(key)?;
        // Certificate and key are not compared: the library's parser rejects the extension that
        // makes this certificate a proof.
        let key = provider.key_provider.load_private_key(key).map_err(|e| e.to_string())?;
        let key = CertifiedKey::new(chain, key);
        let mut table = self.table();
        if table.handshakes.len() < PROOFS_MAX {
            table.handshakes.insert(domain, Arc::new(key));
        }
        self.handshakes.store(table.handshakes.len(), Ordering::Release);
        Ok(())
    }

    pub(super) fn hide_handshake(&self, domain: &str) {
        let mut table = self.table();
        table.handshakes.remove(domain);
        self.handshakes.store(table.handshakes.len(), Ordering::Release);
    }

    /// Whether a handshake may be that of an authority.
    pub(super) fn shows_handshakes(&self) -> bool {
        self.handshakes.load(Ordering::Acquire) > 0
    }
}

/// Configuration for handshakes of authorities. It has no certificate of a site, and sends no
/// tickets.
pub(super) fn proof_config(
    issued: &Arc<Issued>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Proofs(Arc::clone(issued))));
    config.alpn_protocols = vec![PROOF_PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

struct Proofs(Arc<Issued>);

impl std::fmt::Debug for Proofs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proofs").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Proofs {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        self.0.table().handshakes.get(&name).cloned()
    }
}
