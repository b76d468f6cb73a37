//! Where certificates are used, and proofs shown: somebody else's listeners.

/// Puts what is fetched and shown where others find it. Called by the keeper's thread, and must not wait.
pub trait Stage: Send + Sync + 'static {
    /// These names are looked after: certificates of others go.
    fn look_after(&self, domains: &[String]);

    /// Uses a certificate (PEM: chain and key) for `domain` from now on.
    ///
    /// # Errors
    /// Where it cannot be used; says why. The one before stays.
    fn install(&self, domain: &str, pem: &[u8]) -> Result<(), String>;

    /// Shows a proof to the authority.
    ///
    /// # Errors
    /// Where it cannot be shown.
    fn show(&self, proof: &Proof) -> Result<(), String>;

    /// Shows it no more.
    fn hide(&self, proof: &Proof);

    /// Says something that whoever started the server waits for.
    fn say(&self, text: &str);
}

/// What an authority looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A file below `/.well-known/acme-challenge/`, by HTTP.
    Token {
        /// The file's name.
        token: String,
        /// What it holds.
        answer: String,
    },
    /// A certificate, in handshakes that ask for it.
    Handshake {
        /// The name that it is asked for by.
        domain: String,
        /// DER.
        certificate: Vec<u8>,
        /// DER, PKCS #8.
        key: Vec<u8>,
    },
}
