//! The wanted certificates.

use std::path::PathBuf;

/// The wanted certificates, their authority, and the folder where they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Names in lower case. Each gets its own certificate, so that a failure for one name does not
    /// affect the others.
    pub domains: Vec<String>,
    /// URL of the authority's directory; begins with `https://`.
    pub directory: String,
    /// PEM file with the root certificates to trust for its server; `None`: those of the machine.
    pub roots: Option<PathBuf>,
    /// Contact address for the authority.
    pub email: Option<String>,
    /// Whether the operator agrees to the authority's terms.
    pub agrees: bool,
    /// Existing account at the authority, created by other means.
    pub external: Option<External>,
    /// Folder for the account and the certificates.
    pub folder: PathBuf,
    /// Ways to prove control over a name, the one most likely to succeed first.
    pub ways: Vec<Way>,
}

/// An account that the authority created by other means (external account binding).
#[derive(Clone, PartialEq, Eq)]
pub struct External {
    /// Id of the account.
    pub id: String,
    /// Key of the account, in base64url.
    pub key: String,
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Way to prove control over a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The authority fetches a file on port 80.
    Http01,
    /// The authority checks a certificate on port 443.
    TlsAlpn01,
}

impl Way {
    /// Name of the challenge in RFC 8555 and RFC 8737.
    pub fn name(self) -> &'static str {
        match self {
            Way::Http01 => "http-01",
            Way::TlsAlpn01 => "tls-alpn-01",
        }
    }
}
