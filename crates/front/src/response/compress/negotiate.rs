//! Reads `Accept-Encoding` (RFC 9110, 12.5.3). Pure functions.

use http::{HeaderMap, header};
use samovar_config::Coding;

/// Maximum number of list entries that are read.
const ENTRIES_MAX: usize = 32;
/// Highest quality value, in thousandths.
const QUALITY_MAX: u16 = 1000;

/// Quality value of each coding, in thousandths. Zero: not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// In the order of [`Coding::ALL`].
    qualities: [u16; Coding::ALL.len()],
    identity: u16,
}

impl Accepted {
    pub(crate) fn of(headers: &HeaderMap) -> Accepted {
        let mut named = [None; Coding::ALL.len()];
        let (mut identity, mut others) = (None, None);
        let values = headers.get_all(header::ACCEPT_ENCODING).iter();
        let entries = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
        for entry in entries.take(ENTRIES_MAX) {
            let (name, weight) = entry.split_once(';').unwrap_or((entry, ""));
            let Some(quality) = quality(weight) else { continue };
            let name = name.trim();
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if let Some(at) = Coding::ALL.iter().position(|coding| is(coding.name())) {
                named[at] = Some(quality);
            } else if is("x-gzip") {
                named[Coding::ALL.len() - 1] = Some(quality);
            } else if is("identity") {
                identity = Some(quality);
            } else if is("*") {
                others = Some(quality);
            }
        }
        // Codings that are not listed are not accepted. The exception is `identity`, which is the
        // last resort.
        let qualities = named.map(|quality| quality.or(others).unwrap_or(0));
        Accepted { qualities, identity: identity.unwrap_or(0) }
    }

    /// Returns the best of `codings`, which are in the server's order of preference. `None`: send
    /// the response uncompressed.
    pub(crate) fn best(self, codings: &[Coding]) -> Option<Coding> {
        let best = codings.iter().copied().rev().max_by_key(|coding| self.quality(*coding))?;
        let quality = self.quality(best);
        (quality > 0 && quality >= self.identity).then_some(best)
    }

    fn quality(self, coding: Coding) -> u16 {
        let at = Coding::ALL.iter().position(|known| *known == coding);
        at.map_or(0, |at| self.qualities[at])
    }
}

/// Reads `q=0.5`, or an empty weight. `None`: invalid.
fn quality(weight: &str) -> Option<u16> {
    let weight = weight.trim();
    if weight.is_empty() {
        return Some(QUALITY_MAX);
    }
    let value = weight.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim();
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    if part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{part:0<3}").parse::<u16>().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(QUALITY_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Coding::{Brotli, Gzip, Zstd};
    use http::HeaderValue;

    #[test]
    fn best_common_coding_is_selected() {
        let ours = [Zstd, Brotli, Gzip];
        for (accept, expected) in [
            ("gzip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("GZIP", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Zstd)),
            ("gzip, deflate, br", Some(Brotli)),
            ("gzip;q=1, br;q=0.9", Some(Gzip)),
            ("gzip; q=0.5 , br;q=0.51", Some(Brotli)),
            ("br;q=0.001", Some(Brotli)),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("*", Some(Zstd)),
            ("*;q=0.5, zstd;q=0", Some(Brotli)),
            ("*;q=0", None),
            ("identity", None),
            ("identity;q=0, gzip;q=0.1", Some(Gzip)),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity, gzip", Some(Gzip)),
            ("deflate", None),
            ("", None),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=-1", None),
            ("gzip;level=9", None),
            ("gzip;q=", None),
            (";;,,q=1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accept));
            assert_eq!(Accepted::of(&headers).best(&ours), expected, "{accept}");
        }
        assert_eq!(Accepted::of(&HeaderMap::new()).best(&ours), None);
    }
}
