//! How responses are compressed for the client.

/// Which responses are compressed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Codings, the preferred one first; empty: responses are not compressed.
    pub codings: Vec<Coding>,
    /// Media types to compress, in lower case; empty: the types that compress well.
    pub types: Vec<String>,
    /// Minimum size of a compressed response, in bytes; at least 1.
    pub bytes_min: u64,
    /// Whether compressed variants of files (`FILE.br`) are served.
    pub precompressed: bool,
}

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// All supported codings, those with the smallest results first.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// Returns the coding's name in `Accept-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// Returns the extension of files compressed with this coding.
    pub fn extension(self) -> &'static str {
        match self {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }

    /// Returns the coding of that name.
    pub(crate) fn named(name: &str) -> Option<Coding> {
        Coding::ALL.into_iter().find(|coding| coding.name() == name)
    }
}
