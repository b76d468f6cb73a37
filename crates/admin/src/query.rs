//! The query of an address (after `?`), and links with a query.
//!
//! Names from outside are passed in queries, not in paths: a route can be called `..`, which a
//! browser would resolve as the parent folder.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Maximum bytes of a decoded value: the longest name, encoded.
const VALUE_BYTES_MAX: usize = 4 * 1024;

/// The query of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn new(text: &str) -> Query {
        Query(text.to_owned())
    }

    /// Returns the first value with this name, decoded.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        // Forms encode a space as `+`.
        let value = value.get(..VALUE_BYTES_MAX).unwrap_or(value).replace('+', " ");
        percent_decode_str(&value).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    }

    /// Returns whether there is a value with this name, in any encoding.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.split('&').any(|pair| pair.split_once('=').is_some_and(|(key, _)| key == name))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Returns a link such as `/route?name=%2Fa`.
pub(crate) fn link(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut link = path.to_owned();
    for (at, (name, value)) in pairs.iter().enumerate() {
        link.push(if at == 0 { '?' } else { '&' });
        link.push_str(name);
        link.push('=');
        link.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    link
}

#[cfg(test)]
mod tests {
    use super::{Query, link};

    #[test]
    fn link_parameters_are_decoded_by_query() {
        for name in ["/a b/{n}", "a&b=c?d#e", "javascript:alert(1)", "..", "ä\u{1f}\n", "+", ""] {
            let made = link("/route", &[("name", name), ("by", "x")]);
            let (path, query) = made.split_once('?').unwrap();
            assert_eq!(path, "/route");
            assert!(query.bytes().all(|b| b.is_ascii_alphanumeric() || b"%&=".contains(&b)));
            assert_eq!(Query::new(query).get("name").as_deref(), Some(name));
        }
        assert_eq!(Query::new("name=a+b&name=c").get("name").as_deref(), Some("a b"));
        assert_eq!(Query::new("name=%ff&x").get("name"), None);
        assert_eq!(Query::new("").get("name"), None);
    }
}
