//! Certificates that an authority issues: settings → plan, and the interface to the listeners.

use crate::logging::Logs;
use samovar_acme::{External, Keeper, Plan, Proof, Stage, Way};
use samovar_config::{AcmeChallenge, Endpoint, Listener, Protocol, Settings};
use samovar_front::Tls;
use samovar_supervisor::identity::Identity;
use std::sync::Arc;

/// Port on which authorities check HTTP challenges.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// Creates the folder while the server has the rights for it. A failure is reported, and creation
/// is repeated when the folder is needed.
pub(crate) fn prepare(settings: &Settings, identity: Option<&Identity>) {
    if settings.acme.domains.is_empty() {
        return;
    }
    let owner = identity.map(|identity| (identity.uid, identity.gid));
    if let Err(error) = samovar_acme::prepare_folder(&settings.acme.folder, owner) {
        tracing::warn!(
            folder = %settings.acme.folder.display(),
            %error,
            "cannot create the folder of certificates (hint: `acme.folder` selects another one)"
        );
    }
}

/// Creates the keeper of the certificates in the settings; it orders nothing yet.
pub(crate) fn keeper(settings: &Settings, tls: &Arc<Tls>, logs: &Logs) -> Keeper {
    Keeper::new(plan(settings), OnTls { tls: Arc::clone(tls), logs: logs.clone() })
}

/// Converts the settings to a plan.
pub(crate) fn plan(settings: &Settings) -> Plan {
    let acme = &settings.acme;
    let external = acme.eab_id.clone().zip(acme.eab_key.as_ref());
    Plan {
        domains: acme.domains.clone(),
        directory: acme.directory.clone(),
        roots: acme.ca.clone(),
        email: acme.email.clone(),
        agrees: acme.agree,
        external: external.map(|(id, key)| External { id, key: key.expose().to_owned() }),
        folder: acme.folder.clone(),
        ways: ways(&settings.listen, acme.challenge),
    }
}

/// Returns the challenge types that the listeners support, most likely ones first: listeners on the
/// port that authorities use, then those that a proxy may forward to.
fn ways(listen: &[Listener], challenge: AcmeChallenge) -> Vec<Way> {
    let way = |listener: &Listener| {
        let (way, port) = match listener.protocol {
            Protocol::Http => (Way::Http01, HTTP_PORT),
            Protocol::Https => (Way::TlsAlpn01, HTTPS_PORT),
            Protocol::FastCgi => return None,
        };
        let is_there = matches!(&listener.place, Endpoint::Tcp(at) if at.port == port);
        Some((!is_there, way))
    };
    let mut found: Vec<(bool, Way)> = listen.iter().filter_map(way).collect();
    found.sort_by_key(|(is_elsewhere, way)| (*is_elsewhere, *way == Way::TlsAlpn01));
    let mut ways: Vec<Way> = Vec::new();
    for (_, way) in found {
        let is_meant = match challenge {
            AcmeChallenge::Auto => true,
            AcmeChallenge::Http01 => way == Way::Http01,
            AcmeChallenge::TlsAlpn01 => way == Way::TlsAlpn01,
        };
        if is_meant && !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

/// TLS handshakes and HTTP requests of this server, as used for challenges.
struct OnTls {
    tls: Arc<Tls>,
    logs: Logs,
}

impl Stage for OnTls {
    fn look_after(&self, domains: &[String]) {
        self.tls.look_after(domains.to_vec());
    }

    fn install(&self, domain: &str, pem: &[u8]) -> Result<(), String> {
        self.tls.install_issued(domain, pem)
    }

    fn show(&self, proof: &Proof) -> Result<(), String> {
        match proof.clone() {
            Proof::Token { token, response } => {
                self.tls.show_token(token, response);
                Ok(())
            }
            Proof::Handshake { domain, certificate, key } => {
                self.tls.show_handshake(domain, certificate, key)
            }
        }
    }

    fn hide(&self, proof: &Proof) {
        match proof {
            Proof::Token { token, .. } => self.tls.hide_token(token),
            Proof::Handshake { domain, .. } => self.tls.hide_handshake(domain),
        }
    }

    fn say(&self, text: &str) {
        self.logs.say(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::Sources;
    use samovar_config::names::by_flag;

    #[test]
    fn challenges_match_the_listeners() {
        for (listen, challenge, expected) in [
            (":80?redirect,https://:443", "auto", &[Way::Http01, Way::TlsAlpn01][..]),
            ("127.0.0.1:8080,https://:443", "auto", &[Way::TlsAlpn01, Way::Http01]),
            ("https://:8443,:8080", "auto", &[Way::Http01, Way::TlsAlpn01]),
            ("https://:443", "auto", &[Way::TlsAlpn01]),
            ("https://:443,fcgi://:9000", "http-01", &[]),
            (":80,https://:443", "http-01", &[Way::Http01]),
            (":80,https://:443", "tls-alpn-01", &[Way::TlsAlpn01]),
            ("unix:/a,https://:1", "auto", &[Way::Http01, Way::TlsAlpn01]),
        ] {
            let sources = Sources::new(env!("CARGO_MANIFEST_DIR"))
                .flag(by_flag("listen"), listen)
                .flag(by_flag("domain"), "a.example")
                .flag(by_flag("acme-challenge"), challenge);
            let settings = sources.resolve().expect("settings");
            assert_eq!(plan(&settings).ways, expected, "{listen} {challenge}");
        }
    }
}
