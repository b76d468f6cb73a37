//! Servers that may get load: those of this machine or a private network that serve no visitors.
//! Others need `--yes-load` with their name.

use anyhow::{Result, bail};
use samovar_load::Url;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Refuses a server that needs a permission and has none. `listen` are the addresses of the server
/// whose history and recordings are used.
pub(super) fn check(url: &Url, permitted: Option<&str>, listen: &[String]) -> Result<()> {
    let host = host(&url.authority);
    if let Some(permitted) = permitted {
        if permitted.eq_ignore_ascii_case(host) {
            return Ok(());
        }
        bail!(
            "--yes-load `{}` is not the host of --against\nhint: write --yes-load {host}",
            samovar_log::printable(permitted)
        );
    }
    let ip = url.address.ip();
    if !is_private(ip) {
        bail!(
            "`{host}` is {ip}, a public address: load on it could be an attack on a stranger\n\
             hint: if the server is yours and serves no visitors, add --yes-load {host}"
        );
    }
    if listen.iter().any(|one| is_same(one, url.address, is_local)) {
        bail!(
            "`{}` serves the visitors whose history is read: they would get errors\nhint: start a \
             second server on another port; --yes-load {host} loads this one",
            url.authority
        );
    }
    Ok(())
}

/// The name without port and brackets.
fn host(authority: &str) -> &str {
    let end = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let name = &authority[..end.unwrap_or(authority.len())];
    name.trim_start_matches('[').trim_end_matches(']')
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
        }
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(mapped) => is_private(IpAddr::V4(mapped)),
            None => {
                ip.is_loopback()
                    || ip.is_unique_local()
                    || ip.is_unicast_link_local()
                    || ip.is_unspecified()
            }
        },
    }
}

/// Whether a listening address accepts connections to `server`.
fn is_same(listen: &str, server: SocketAddr, is_local: impl Fn(IpAddr) -> bool) -> bool {
    let address = listen.rsplit_once("//").map_or(listen, |(_, rest)| rest);
    let Some((name, port)) = address.rsplit_once(':') else { return false };
    if port.trim_end_matches('/').parse() != Ok(server.port()) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() => ip == server.ip(),
        // All addresses of this machine, or a name of it.
        _ => is_local(server.ip()),
    }
}

/// Whether an address is one of this machine: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(address: &str, permitted: Option<&str>, listen: &[&str]) -> Result<()> {
        let listen: Vec<_> = listen.iter().map(|one| (*one).to_owned()).collect();
        let url = Url::parse(&format!("http://{address}")).expect("an address without a name");
        check(&url, permitted, &listen)
    }

    #[test]
    fn private_servers_are_allowed_and_public_ones_need_permission() {
        for address in
            ["127.0.0.1:9000", "127.9.9.9", "10.1.2.3", "192.168.0.1", "[::1]:9000", "[fd00::1]"]
        {
            assert!(allowed(address, None, &[]).is_ok(), "{address}");
        }
        for address in ["192.0.2.7", "8.8.8.8:80", "[2001:db8::1]:80", "[::ffff:8.8.8.8]"] {
            let error = allowed(address, None, &[]).expect_err("public").to_string();
            assert!(error.contains("hint: ") && error.contains("--yes-load"), "{error}");
        }
        assert!(allowed("192.0.2.7:80", Some("192.0.2.7"), &[]).is_ok());
        assert!(allowed("[2001:db8::1]:80", Some("2001:db8::1"), &[]).is_ok());
        // A permission for another host is a mistyped one.
        assert!(allowed("127.0.0.1:80", Some("192.0.2.7"), &[]).is_err());
    }

    #[test]
    fn server_of_the_visitors_needs_permission() {
        for listen in ["127.0.0.1:8080", "http://127.0.0.1:8080", "0.0.0.0:8080", "[::]:8080"] {
            assert!(allowed("127.0.0.1:8080", None, &[listen]).is_err(), "{listen}");
            assert!(allowed("127.0.0.1:9000", None, &[listen]).is_ok(), "{listen}");
            assert!(allowed("127.0.0.1:8080", Some("127.0.0.1"), &[listen]).is_ok(), "{listen}");
        }
        assert!(allowed("127.0.0.1:8080", None, &["10.0.0.1:8080", "/run/web.sock"]).is_ok());
    }
}
