//! Address of the server: `http://HOST[:PORT][/PATH]`, parsed and resolved once.

use std::net::{SocketAddr, ToSocketAddrs};

const SCHEME: &str = "http://";
const DEFAULT_PORT: u16 = 80;

/// The server, and the path in its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Value of the Host header.
    pub authority: String,
    /// Starts with a slash and includes the query.
    pub path: String,
    /// First address of the host.
    pub address: SocketAddr,
}

impl Url {
    /// Parses a URL and resolves its host. IPv4 comes first: `localhost` usually means that.
    ///
    /// # Errors
    ///
    /// It is no URL with `http://`, or its host has no address.
    pub fn parse(text: &str) -> Result<Url, String> {
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| {
            format!("the URL must start with {SCHEME}\nhint: TLS is not supported")
        })?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Url { authority: authority.to_owned(), path, address: look_up(authority)? })
    }
}

fn look_up(authority: &str) -> Result<SocketAddr, String> {
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    let full = if has_port { authority.to_owned() } else { format!("{authority}:{DEFAULT_PORT}") };
    let found: Vec<SocketAddr> = full
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve `{authority}`: {error}"))?
        .collect();
    let chosen = found.iter().find(|address| address.is_ipv4()).or(found.first());
    chosen.copied().ok_or_else(|| format!("`{authority}` has no address"))
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn url_is_split_into_its_parts() {
        for (text, authority, path, address) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", "/", "127.0.0.1:8080"),
            ("http://127.0.0.1:8080/a/b?c=d#e", "127.0.0.1:8080", "/a/b?c=d", "127.0.0.1:8080"),
            ("http://127.0.0.1?n={n}", "127.0.0.1", "/?n={n}", "127.0.0.1:80"),
            ("http://[::1]:81/x", "[::1]:81", "/x", "[::1]:81"),
            ("http://[::1]/x", "[::1]", "/x", "[::1]:80"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.authority.as_str(), url.path.as_str()), (authority, path), "{text}");
            assert_eq!(url.address, address.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn invalid_url_is_rejected() {
        for text in ["", "127.0.0.1:80", "https://127.0.0.1/", "http://", "http://127.0.0.1:x/"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
