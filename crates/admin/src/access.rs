//! Access control of the admin listener.
//!
//! A token is required unless the settings turn it off: PHP reaches loopback, and a page may fetch
//! any URL for its visitors. A browser reaches loopback too, on behalf of any page it displays: a
//! host name that resolves to 127.0.0.1 would make this listener part of that page's origin (DNS
//! rebinding). So `Host` must be an address, `localhost`, or a name from the settings.
//!
//! Scrapers send the token as `Bearer`. A browser asks its user for a name and a password, and
//! sends them as `Basic`: the token is the password, the name is ignored.

use crate::response::{self, AdminResponse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::net::IpAddr;

/// Access rules of the listener.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Token that must be sent as `Authorization: Bearer …` or as the password of `Basic`; `None`:
    /// no token is required.
    pub token: Option<String>,
    /// Host names accepted in `Host`, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// Reason why access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// `Host` is a name that is not allowed.
    Host,
    /// The token is missing or wrong.
    Token,
}

impl Denied {
    pub(crate) fn respond(self) -> AdminResponse {
        let mut response = response::text(self.status(), format!("{}\n", self.advice()));
        if self == Denied::Token {
            let asked = HeaderValue::from_static("Basic realm=\"samovar\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, asked);
        }
        response
    }

    fn status(self) -> StatusCode {
        match self {
            Denied::Host => StatusCode::MISDIRECTED_REQUEST,
            Denied::Token => StatusCode::UNAUTHORIZED,
        }
    }

    /// Returns advice for the client, as the body of the response.
    fn advice(self) -> &'static str {
        match self {
            Denied::Host => "host name not allowed: add it to `admin_hosts`, or use the IP address",
            Denied::Token => {
                "send the token as `Authorization: Bearer` or as the password; it is in \
                 `admin_token` or in the file `admin_token_file`"
            }
        }
    }
}

impl Access {
    /// Checks a request. The caller decides whether the path needs the token: a load balancer's
    /// health check does not.
    pub(crate) fn check(&self, headers: &HeaderMap, needs_token: bool) -> Result<(), Denied> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
        if !self.knows(host) {
            return Err(Denied::Host);
        }
        match &self.token {
            Some(token) if needs_token && !has_token(headers, token) => Err(Denied::Token),
            _ => Ok(()),
        }
    }

    fn knows(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        is_address
            || name.is_empty()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let said = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    if let Some(said) = said.strip_prefix(b"Bearer ") {
        return is_same(said, token.as_bytes());
    }
    let pair = said.strip_prefix(b"Basic ").and_then(|pair| STANDARD.decode(pair).ok());
    let password = pair.as_deref().and_then(|pair| pair.splitn(2, |byte| *byte == b':').nth(1));
    password.is_some_and(|password| is_same(password, token.as_bytes()))
}

/// Compares in constant time: the position of a difference does not change the duration.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |found, (a, b)| found | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::{Access, Denied};
    use http::{HeaderMap, header};

    fn headers(host: &str, authorization: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        headers
    }

    #[test]
    fn host_header_with_unknown_name_is_rejected() {
        let access = Access { token: None, hosts: vec!["ops.example".into()] };
        for (host, expected) in [
            ("127.0.0.1:9090", Ok(())),
            ("[::1]:9090", Ok(())),
            ("[::1]", Ok(())),
            ("localhost:9090", Ok(())),
            ("OPS.example", Ok(())),
            ("", Ok(())),
            ("evil.example:9090", Err(Denied::Host)),
            ("localhost.evil.example", Err(Denied::Host)),
        ] {
            assert_eq!(access.check(&headers(host, ""), true), expected, "{host}");
        }
    }

    #[test]
    fn request_without_configured_token_is_rejected() {
        let access = Access { token: Some("secret".into()), hosts: vec![] };
        for (said, expected) in [
            ("Bearer secret", Ok(())),
            ("Bearer secre", Err(Denied::Token)),
            ("Bearer secrets", Err(Denied::Token)),
            ("Basic secret", Err(Denied::Token)),
            ("Basic YWRtaW46c2VjcmV0", Ok(())),
            ("Basic OnNlY3JldA==", Ok(())),
            ("Basic YWRtaW46c2VjcmV0cw==", Err(Denied::Token)),
            ("Basic c2VjcmV0", Err(Denied::Token)),
            ("", Err(Denied::Token)),
        ] {
            assert_eq!(access.check(&headers("127.0.0.1", said), true), expected, "{said}");
        }
        assert_eq!(access.check(&headers("127.0.0.1", ""), false), Ok(()));
    }
}
