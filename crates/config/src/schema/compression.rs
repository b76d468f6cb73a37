//! How answers can be packed for the client.

/// Which answers are packed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The best first; none: no answer is.
    pub codings: Vec<Coding>,
    /// Lower case; none: those that are worth it.
    pub types: Vec<String>,
    /// Bytes; at least 1.
    pub bytes_min: u64,
    /// Whether packed files are looked for beside files.
    pub precompressed: bool,
}

/// A coding of RFC 9110, 8.4.1.
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
    /// Those that are known, the smallest results first.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// Its name in `Accept-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// The extension of files that are packed so.
    pub fn extension(self) -> &'static str {
        match self {
            Coding::Zstd => ".zst",
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }

    /// The coding of that name.
    pub(crate) fn named(name: &str) -> Option<Coding> {
        Coding::ALL.into_iter().find(|coding| coding.name() == name)
    }
}
