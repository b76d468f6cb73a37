//! Resolved settings: certificates.

use crate::schema::macros::Blank;
use crate::schema::secret::Secret;
use std::path::PathBuf;

sheet! {
/// Certificates that an authority issues automatically.
pub struct Acme {
    /// Names, in lower case, without a trailing dot.
    pub domains: Vec<String>,
    /// Contact address for the authority.
    pub email: Option<String>,
    /// URL of the authority's directory; begins with `https://`.
    pub directory: String,
    /// PEM file with the root certificates to trust for its server: absolute.
    pub ca: Option<PathBuf>,
    /// Whether the operator agrees to the authority's terms.
    pub agree: bool,
    /// Way to prove control over a name.
    pub challenge: AcmeChallenge,
    /// Id of an account that the authority created by other means; set together with `eab_key`.
    pub eab_id: Option<String>,
    /// Key of that account, in base64url.
    pub eab_key: Option<Secret>,
    /// Folder for the account and the certificates: absolute.
    pub folder: PathBuf,
}
}

words! {
/// Way to prove control over a name.
pub enum AcmeChallenge {
    /// The ways that the listeners allow.
    #[default]
    Auto = "auto",
    /// The authority fetches a file on port 80.
    Http01 = "http-01",
    /// The authority checks a certificate on port 443.
    TlsAlpn01 = "tls-alpn-01",
}
}

sheet! {
/// Certificates of the server and of clients.
pub struct Tls {
    /// PEM files with a certificate and its chain; absolute. The first is for names that match no
    /// certificate.
    pub certificates: Vec<PathBuf>,
    /// PEM files with their keys in the same order; empty: the keys are searched for.
    pub keys: Vec<PathBuf>,
    /// Oldest allowed version.
    pub min_version: TlsVersion,
    /// `Strict-Transport-Security` of responses over TLS.
    pub hsts: Option<String>,
    /// Whether PHP gets variables that describe the encryption of the connection.
    pub variables: bool,
    /// PEM file with the authorities of clients' certificates: absolute.
    pub client_ca: Option<PathBuf>,
    /// Files with the revocation lists of these authorities, PEM or DER: absolute.
    pub client_crls: Vec<PathBuf>,
    /// Whether a client must have a certificate.
    pub client_certificates: ClientCertificates,
}
}

words! {
/// Oldest allowed version of TLS.
pub enum TlsVersion {
    /// 1.2 and 1.3.
    #[default]
    Tls12 = "1.2",
    /// 1.3 only.
    Tls13 = "1.3",
}
}

words! {
/// Client certificates if `tls.client_ca` is set.
pub enum ClientCertificates {
    /// A client may present a certificate; PHP gets the result as variables.
    #[default]
    Optional = "optional",
    /// A client without a certificate is rejected.
    Required = "required",
}
}
