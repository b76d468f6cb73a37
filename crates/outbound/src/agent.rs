//! HTTP clients for requests that the server sends: without proxies or redirects, with a timeout
//! for each step.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

/// Paths of the system's trusted certificates: Debian, Red Hat, Alpine.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The file has no certificates, so no peer can be trusted.
#[derive(Debug, thiserror::Error)]
#[error("no trusted certificates in `{0}`\nhint: install ca-certificates")]
pub struct NoRoots(pub PathBuf);

/// Returns a client for `http://` addresses. `step` is the timeout for connecting, sending and each
/// part of the response.
#[must_use]
pub fn plain(step: Duration) -> Agent {
    terms(step).build().new_agent()
}

/// Returns a client for `https://` addresses only. It trusts the certificates in the file `roots`,
/// or those of the machine if `None`.
pub fn secure(step: Duration, roots: Option<&Path>) -> Result<Agent, NoRoots> {
    Ok(terms(step).https_only(true).tls_config(tls(roots)?).build().new_agent())
}

/// Sets a timeout for each step, but none for the whole request: with one, ureq would resolve names
/// on threads of its own.
fn terms(step: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("samovar/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(step))
        .timeout_send_request(Some(step))
        .timeout_send_body(Some(step))
        .timeout_recv_response(Some(step))
        .timeout_recv_body(Some(step))
}

fn tls(roots: Option<&Path>) -> Result<TlsConfig, NoRoots> {
    let system = || SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = roots.or_else(system).unwrap_or(Path::new(SYSTEM_ROOTS[0]));
    let text = std::fs::read(path).unwrap_or_default();
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(NoRoots(path.to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

#[cfg(test)]
mod tests {
    use super::secure;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn secure_agent_without_certificates_is_an_error() {
        for roots in ["/dev/null", "/no/such/file"] {
            let agent = secure(Duration::from_secs(1), Some(Path::new(roots)));
            let text = agent.expect_err(roots).to_string();
            assert!(text.contains(roots) && text.contains("hint: "), "{text}");
        }
    }
}
