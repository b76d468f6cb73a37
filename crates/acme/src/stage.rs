//! Interface to the listeners, which use the certificates and show the proofs.

/// Publishes certificates and proofs. Called by the keeper's thread; implementations must not
/// block.
pub trait Stage: Send + Sync + 'static {
    /// Sets the managed names. Certificates of other names are removed.
    fn look_after(&self, domains: &[String]);

    /// Uses a certificate (PEM: chain and key) for `domain` from now on.
    ///
    /// # Errors
    /// The certificate cannot be used; the text gives the reason. The previous one stays in use.
    fn install(&self, domain: &str, pem: &[u8]) -> Result<(), String>;

    /// Shows a proof to the authority.
    ///
    /// # Errors
    /// The proof cannot be shown.
    fn show(&self, proof: &Proof) -> Result<(), String>;

    /// Stops showing a proof.
    fn hide(&self, proof: &Proof);

    /// Prints a message for the operator who started the server.
    fn say(&self, text: &str);
}

/// Proof that an authority checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A file below `/.well-known/acme-challenge/`, fetched over HTTP.
    Token {
        /// Name of the file.
        token: String,
        /// Content of the file.
        response: String,
    },
    /// A certificate, presented in TLS handshakes that request it.
    Handshake {
        /// Server name in the request.
        domain: String,
        /// Certificate in DER.
        certificate: Vec<u8>,
        /// Private key in DER, PKCS #8.
        key: Vec<u8>,
    },
}
