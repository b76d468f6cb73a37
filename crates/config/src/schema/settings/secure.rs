//! What comes out: certificates.

use crate::schema::sheet::Blank;
use std::path::PathBuf;

sheet! {
/// Certificates that an authority issues by itself.
pub struct Acme {
    /// Names, in lower case, without a dot at their end.
    pub domains: Vec<String>,
    /// Whom the authority may write to.
    pub email: Option<String>,
    /// Where the authority is: begins with `https://`.
    pub directory: String,
    /// PEM file with whom to trust as its server: absolute.
    pub ca: Option<PathBuf>,
    /// Whether its terms are agreed to.
    pub agree: bool,
    /// How it is shown whose a name is.
    pub challenge: AcmeChallenge,
    /// The id of an account that it has made otherwise, with `eab_key`.
    pub eab_id: Option<String>,
    /// That account's key, in base64url.
    pub eab_key: Option<String>,
    /// Where account and certificates are kept: absolute.
    pub folder: PathBuf,
}
}

words! {
/// How an authority is shown whose a name is.
pub enum AcmeChallenge {
    /// What the listeners allow.
    #[default]
    Auto = "auto",
    /// It asks for a file on port 80.
    Http01 = "http-01",
    /// It looks at a certificate on port 443.
    TlsAlpn01 = "tls-alpn-01",
}
}

sheet! {
/// Certificates, and what is asked of clients.
pub struct Tls {
    /// PEM files with a certificate and its chain; absolute. The first is for names that no other has.
    pub certificates: Vec<PathBuf>,
    /// PEM files with their keys in the same order, or none: they are looked for.
    pub keys: Vec<PathBuf>,
    /// The oldest version that is spoken.
    pub min_version: TlsVersion,
    /// `Strict-Transport-Security` of answers over TLS.
    pub hsts: Option<String>,
    /// PHP is told how a connection is encrypted.
    pub variables: bool,
    /// PEM file with the authorities of clients' certificates: absolute.
    pub client_ca: Option<PathBuf>,
    /// Files with what these authorities have revoked, PEM or DER: absolute.
    pub client_crls: Vec<PathBuf>,
    /// Whether a client must have one.
    pub client_certificates: ClientCertificates,
}
}

words! {
/// The oldest version of TLS that is spoken.
pub enum TlsVersion {
    /// 1.2 and 1.3.
    #[default]
    Tls12 = "1.2",
    /// 1.3 alone.
    Tls13 = "1.3",
}
}

words! {
/// What is asked of clients where `tls.client_ca` is set.
pub enum ClientCertificates {
    /// A certificate if they have one; PHP is told.
    #[default]
    Optional = "optional",
    /// A certificate, or they are turned away.
    Required = "required",
}
}
