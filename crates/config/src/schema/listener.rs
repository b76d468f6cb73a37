//! One entry of `listen`: the address, the protocol, and the role. A pure notation.
//!
//! The formats are `SCHEME://HOST:PORT?OPTIONS`, `HOST:PORT?OPTIONS` and `unix:PATH?OPTIONS`. A new
//! protocol is a variant of [`Protocol`] and a row of [`SCHEMES`]. A new role is a variant of
//! [`Role`] and a word of [`option`].

use crate::schema::address::Listen;
use crate::schema::notation;
use std::fmt;
use std::path::PathBuf;

/// The kernel's limit for the path of a socket, without the final NUL byte.
const PATH_BYTES_MAX: usize = 107;
/// Maximum permissions of a socket's file.
const MODE_MAX: u32 = 0o777;

/// An address with its protocol and role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Address that clients connect to.
    pub place: Endpoint,
    /// Protocol of the connections.
    pub protocol: Protocol,
    /// Service for the clients.
    pub role: Role,
    /// Each connection begins with a PROXY protocol header, as a line or a block.
    pub has_proxy_header: bool,
    /// Permissions of a socket's file; `None`: access for its owner and group.
    pub mode: Option<u32>,
}

/// Address that clients connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP address.
    Tcp(Listen),
    /// A socket in the file system; the path is absolute.
    Unix(PathBuf),
}

/// Protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 and HTTP/2 without TLS.
    Http,
    /// HTTP/1.1 and HTTP/2 over TLS.
    Https,
    /// FastCGI, from a web server in front.
    FastCgi,
}

impl Protocol {
    /// Returns the prefix of an address or of a socket's path.
    pub fn scheme(self, is_unix: bool) -> &'static str {
        match (self, is_unix) {
            (Protocol::Http, false) => "http://",
            (Protocol::Https, false) => "https://",
            (Protocol::FastCgi, false) => "fcgi://",
            (Protocol::Http, true) => "unix:",
            (Protocol::Https, true) => "https+unix:",
            (Protocol::FastCgi, true) => "fcgi-unix:",
        }
    }
}

/// Service that a listener provides to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The site itself.
    Site,
    /// A redirect to the same page over HTTPS, at that port if one is given.
    Redirect(Option<u16>),
}

/// Prefixes with their protocol, and whether a socket path follows.
const SCHEMES: [(&str, Protocol, bool); 6] = [
    ("http://", Protocol::Http, false),
    ("https://", Protocol::Https, false),
    ("fcgi://", Protocol::FastCgi, false),
    ("unix:", Protocol::Http, true),
    ("https+unix:", Protocol::Https, true),
    ("fcgi-unix:", Protocol::FastCgi, true),
];

impl Listener {
    /// Reads one entry; `None` if it is not valid.
    pub(crate) fn read(text: &str) -> Option<Listener> {
        let (address, options) = match text.split_once('?') {
            Some((address, options)) => (address, Some(options)),
            None => (text, None),
        };
        let found = SCHEMES
            .iter()
            .find_map(|(scheme, protocol, is_unix)| {
                Some((address.strip_prefix(scheme)?, *protocol, *is_unix))
            })
            .unwrap_or((address, Protocol::Http, false));
        let (address, protocol, is_unix) = found;
        let place =
            if is_unix { unix(address)? } else { Endpoint::Tcp(notation::listen(address)?) };
        let mut listener =
            Listener { place, protocol, role: Role::Site, has_proxy_header: false, mode: None };
        for word in options.into_iter().flat_map(|options| options.split('&')) {
            option(&mut listener, word)?;
        }
        let is_plain = listener.role == Role::Site && !listener.has_proxy_header;
        let is_sound = match protocol {
            Protocol::Http => true,
            Protocol::Https => listener.role == Role::Site,
            Protocol::FastCgi => is_plain,
        };
        is_sound.then_some(listener)
    }

    /// Whether the listener uses TLS.
    pub fn is_tls(&self) -> bool {
        self.protocol == Protocol::Https
    }
}

fn unix(path: &str) -> Option<Endpoint> {
    let is_sound = path.starts_with('/') && path.len() <= PATH_BYTES_MAX && !path.contains('\0');
    is_sound.then(|| Endpoint::Unix(path.into()))
}

fn option(listener: &mut Listener, word: &str) -> Option<()> {
    match word.split_once('=') {
        None if word == "proxy" => listener.has_proxy_header = true,
        None if word == "redirect" => listener.role = Role::Redirect(None),
        Some(("redirect", digits)) => listener.role = Role::Redirect(Some(port(digits)?)),
        Some(("mode", digits)) if matches!(listener.place, Endpoint::Unix(_)) => {
            let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= MODE_MAX)?;
            listener.mode = Some(mode);
        }
        _ => return None,
    }
    Some(())
}

fn port(digits: &str) -> Option<u16> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_plain && *port != 0)
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, self.protocol) {
            (Endpoint::Tcp(at), Protocol::Http) => write!(f, "{at}"),
            (Endpoint::Tcp(at), protocol) => write!(f, "{}{at}", protocol.scheme(false)),
            (Endpoint::Unix(path), protocol) => {
                write!(f, "{}{}", protocol.scheme(true), path.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, Role, bool, Option<u32>)>) {
        let found =
            Listener::read(text).map(|l| (l.to_string(), l.role, l.has_proxy_header, l.mode));
        let expected = expected.map(|(shown, role, proxy, mode)| (shown.into(), role, proxy, mode));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn valid_entry_is_read() {
        use Role::{Redirect, Site};
        check("127.0.0.1:80", Some(("127.0.0.1:80", Site, false, None)));
        check(":80", Some(("0.0.0.0:80", Site, false, None)));
        check("http://[::]:80", Some(("[::]:80", Site, false, None)));
        check("https://:443", Some(("https://0.0.0.0:443", Site, false, None)));
        check("https://a.example:443?proxy", Some(("https://a.example:443", Site, true, None)));
        check("http://:80?redirect", Some(("0.0.0.0:80", Redirect(None), false, None)));
        check(":80?redirect&proxy", Some(("0.0.0.0:80", Redirect(None), true, None)));
        check(":80?redirect=8443", Some(("0.0.0.0:80", Redirect(Some(8443)), false, None)));
        check("unix:/run/s.sock", Some(("unix:/run/s.sock", Site, false, None)));
        check("unix:/run/s.sock?mode=0666", Some(("unix:/run/s.sock", Site, false, Some(0o666))));
        check("fcgi://:9000", Some(("fcgi://0.0.0.0:9000", Site, false, None)));
        check("fcgi-unix:/s?mode=660", Some(("fcgi-unix:/s", Site, false, Some(0o660))));
        check("https+unix:/s?proxy", Some(("https+unix:/s", Site, true, None)));
    }

    #[test]
    fn invalid_entry_is_refused() {
        let long = format!("unix:/{}", "x".repeat(PATH_BYTES_MAX));
        for text in [
            "",
            "https://",
            "https://a",
            "ftp://a:1",
            "unix:",
            "unix:run/s",
            "unix:/a\0b",
            ":80?",
            ":80?proxy&",
            ":80?mode=0666",
            ":80?PROXY",
            ":80?redirect=",
            ":80?redirect=0",
            ":80?redirect=+443",
            ":80?redirect=65536",
            "unix:/s?mode=999",
            "unix:/s?mode=1000",
            "https://:443?redirect",
            "fcgi://:9000?redirect",
            "fcgi://:9000?proxy",
            "fcgi-unix:s",
            "fcgi+unix:/s",
            &long,
        ] {
            check(text, None);
        }
    }
}
