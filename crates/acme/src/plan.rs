//! What is wanted.

use std::path::PathBuf;

/// Which certificates, from whom, and where they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Names in lower case; each gets a certificate of its own, so that one that cannot be had keeps none of the others
    /// from theirs.
    pub domains: Vec<String>,
    /// The authority's directory: begins with `https://`.
    pub directory: String,
    /// PEM file with whom to trust as its server; `None`: what the machine trusts.
    pub roots: Option<PathBuf>,
    /// Whom the authority may write to.
    pub email: Option<String>,
    /// Whether its terms are agreed to.
    pub agrees: bool,
    /// An account that it has made otherwise.
    pub external: Option<External>,
    /// Where account and certificates are kept.
    pub folder: PathBuf,
    /// How it is shown whose a name is, the likeliest first.
    pub ways: Vec<Way>,
}

/// An account that an authority has made otherwise.
#[derive(Clone, PartialEq, Eq)]
pub struct External {
    /// Its id.
    pub id: String,
    /// Its key, in base64url.
    pub key: String,
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How an authority is shown whose a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It asks for a file on port 80.
    Http01,
    /// It looks at a certificate on port 443.
    TlsAlpn01,
}

impl Way {
    /// As RFC 8555 and 8737 call it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Http01 => "http-01",
            Way::TlsAlpn01 => "tls-alpn-01",
        }
    }
}
