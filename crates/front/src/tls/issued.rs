//! Certificates that an authority has issued while the server runs, and what it is shown before it does.
//!
//! Whoever fetches them puts them here; handshakes and requests look. Nothing here changes what files say: a name that a
//! file's certificate has is answered by that one.

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

/// What an authority speaks that looks for a proof in a handshake (RFC 8737).
pub(super) const PROOF_PROTOCOL: &[u8] = b"acme-tls/1";
/// Proofs that are shown at the same time, of each kind: far more than names are looked after.
const PROOFS_MAX: usize = 1024;

/// Names that are looked after, what they have, and what is shown for them.
#[derive(Default)]
pub(super) struct Issued {
    table: Mutex<Table>,
    /// How many proofs there are, so that nobody locks anything for none.
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

/// What there is for a name.
pub(super) enum Found {
    Certificate(Arc<CertifiedKey>),
    /// It is looked after, and there is none yet.
    Pending,
    Nothing,
}

impl Issued {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names that are looked after from now on; the certificates of others go.
    pub(super) fn look_after(&self, domains: Vec<String>) {
        let mut table = self.table();
        table.certificates.retain(|domain, _| domains.contains(domain));
        table.domains = domains;
    }

    /// Puts a certificate with its key (PEM, both in one) in the place of that name's last one.
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

    /// For a name as a client asks for it, in lower case.
    pub(super) fn of(&self, name: &str) -> Found {
        let table = self.table();
        match table.certificates.get(name) {
            Some(key) => Found::Certificate(Arc::clone(key)),
            None if table.domains.iter().any(|known| known == name) => Found::Pending,
            None => Found::Nothing,
        }
    }

    /// For clients that ask for no name, or for one that nobody has.
    pub(super) fn first(&self) -> Option<Arc<CertifiedKey>> {
        let table = self.table();
        let of = |domain: &String| table.certificates.get(domain).cloned();
        table.domains.iter().find_map(of)
    }

    pub(super) fn show_token(&self, token: String, answer: String) {
        let mut table = self.table();
        if table.tokens.len() < PROOFS_MAX {
            table.tokens.insert(token, answer);
        }
        self.tokens.store(table.tokens.len(), Ordering::Release);
    }

    pub(super) fn hide_token(&self, token: &str) {
        let mut table = self.table();
        table.tokens.remove(token);
        self.tokens.store(table.tokens.len(), Ordering::Release);
    }

    /// What is answered to whoever asks for a token's file.
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
        // Not compared: the library's look at certificates refuses the extension that makes this one a proof.
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

    /// Whether some handshake may be an authority's.
    pub(super) fn shows_handshakes(&self) -> bool {
        self.handshakes.load(Ordering::Acquire) > 0
    }
}

/// What handshakes of authorities are made with: they show no certificate of their own, and get no ticket.
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
