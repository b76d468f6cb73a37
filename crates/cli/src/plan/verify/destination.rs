//! Servers that may get load: those of this machine or a private network that serve no visitors.
//! Others need `--yes-load` with their name.
//!
//! Each running Samovar of this machine counts as one with visitors, except the one that
//! `--against-control` names.

use super::servers::{Running, is_same_file};
use anyhow::{Result, bail};
use samovar_load::Url;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Address at which a large provider has the metadata of a machine, with its keys.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Servers of this machine.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    /// The server whose history and recordings are used, and those with the same history.
    pub(super) planned: Vec<Running>,
    /// All others that can be found.
    pub(super) others: Vec<Running>,
    /// Control socket of the server that gets the load.
    pub(super) second: Option<&'a Path>,
}

/// Refuses a server that needs a permission and has none.
pub(super) fn check(url: &Url, permitted: Option<&str>, known: &Known) -> Result<()> {
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
    let ip = url.address.ip().to_canonical();
    if is_link_local(ip) {
        bail!(
            "`{host}` is {ip}, a link-local address: machines of a cloud have their metadata \
             there\nhint: if it is your own server without visitors, add --yes-load {host}"
        );
    }
    if !is_private(ip) {
        bail!(
            "`{host}` is {ip}, a public address: load on it could be an attack on a stranger\n\
             hint: if the server is yours and serves no visitors, add --yes-load {host}"
        );
    }
    let is_target =
        |one: &Running| one.listen.iter().any(|listen| is_same(listen, url.address, is_local));
    if known.planned.iter().any(is_target) {
        bail!(
            "`{}` serves the visitors whose history is read: they would get errors\nhint: start a \
             second server on another port; --yes-load {host} loads this one",
            url.authority
        );
    }
    let is_second =
        |one: &Running| known.second.is_some_and(|second| is_same_file(second, &one.control));
    if let Some(other) = known.others.iter().find(|one| is_target(one) && !is_second(one)) {
        bail!(
            "`{}` is a running Samovar, which may serve visitors: they would get errors\nhint: if \
             it serves none, add --against-control {}",
            url.authority,
            samovar_log::printable(&other.control.display().to_string())
        );
    }
    Ok(())
}

/// Returns a remark about a server that does not listen at the measured address.
pub(super) fn elsewhere(second: &Running, url: &Url) -> Option<String> {
    let is_there = second.listen.iter().any(|listen| is_same(listen, url.address, is_local));
    (!is_there).then(|| {
        format!(
            "--against-control names a server that listens at {}, not at {}: CPU is that of this \
             server",
            second.listen.join(", "),
            url.authority
        )
    })
}

/// The name without port and brackets.
fn host(authority: &str) -> &str {
    let end = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
    let name = &authority[..end.unwrap_or(authority.len())];
    name.trim_start_matches('[').trim_end_matches(']')
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip == METADATA,
    }
}

/// Whether a canonical address is one of this machine or a private network.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unspecified(),
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
    let server = server.ip().to_canonical();
    match name.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        // Connections to the unspecified address reach this machine.
        Ok(ip) if server.is_unspecified() => is_local(ip),
        Ok(ip) if !ip.is_unspecified() => ip == server,
        // All addresses of this machine, or a name of it.
        _ => is_local(server),
    }
}

/// Whether an address is one of this machine: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(address: &str, permitted: Option<&str>, known: &Known) -> Result<()> {
        let url = Url::parse(&format!("http://{address}")).expect("an address without a name");
        check(&url, permitted, known)
    }

    fn running(listen: &[&str]) -> Running {
        let listen = listen.iter().map(|one| (*one).to_owned()).collect();
        Running { control: "/run/second.sock".into(), listen, ..Running::default() }
    }

    #[test]
    fn private_servers_are_allowed_and_public_ones_need_permission() {
        let none = Known::default();
        for address in [
            "127.0.0.1:9000",
            "127.9.9.9",
            "10.1.2.3",
            "192.168.0.1",
            "0.0.0.0:1",
            "[::1]:9000",
            "[fd00::1]",
            "[::ffff:10.0.0.1]:1",
        ] {
            assert!(allowed(address, None, &none).is_ok(), "{address}");
        }
        for address in [
            "192.0.2.7",
            "8.8.8.8:80",
            "[2001:db8::1]:80",
            "[::ffff:8.8.8.8]",
            "169.254.169.254",
            "[::ffff:169.254.169.254]",
            "[fe80::1]:80",
            "[fd00:ec2::254]",
        ] {
            let error = allowed(address, None, &none).expect_err("public").to_string();
            assert!(error.contains("hint: ") && error.contains("--yes-load"), "{error}");
        }
        assert!(allowed("192.0.2.7:80", Some("192.0.2.7"), &none).is_ok());
        assert!(allowed("169.254.0.7:80", Some("169.254.0.7"), &none).is_ok());
        assert!(allowed("[2001:db8::1]:80", Some("2001:db8::1"), &none).is_ok());
        // A permission for another host is a mistyped one.
        assert!(allowed("127.0.0.1:80", Some("192.0.2.7"), &none).is_err());
    }

    #[test]
    fn server_of_the_visitors_needs_permission() {
        let second = Some(Path::new("/run/second.sock"));
        for listen in [
            "127.0.0.1:8080",
            "http://127.0.0.1:8080",
            "0.0.0.0:8080",
            "[::]:8080",
            "[::ffff:127.0.0.1]:8080",
            "localhost:8080",
            ":8080",
        ] {
            let listen = || vec![running(&[listen])];
            let planned = Known { planned: listen(), ..Known::default() };
            let other = Known { others: listen(), ..Known::default() };
            for address in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"] {
                let with_port = |port| format!("{address}:{port}");
                assert!(allowed(&with_port(8080), None, &planned).is_err(), "{address}");
                assert!(allowed(&with_port(9000), None, &planned).is_ok(), "{address}");
                let host = host(address);
                assert!(allowed(&with_port(8080), Some(host), &planned).is_ok(), "{address}");
                let error = allowed(&with_port(8080), None, &other).expect_err(address).to_string();
                assert!(error.ends_with("--against-control /run/second.sock"), "{error}");
                // The socket names the second server, but never the planned one.
                let named = Known { others: listen(), second, ..Known::default() };
                assert!(allowed(&with_port(8080), None, &named).is_ok(), "{address}");
                let named = Known { planned: listen(), second, ..Known::default() };
                assert!(allowed(&with_port(8080), None, &named).is_err(), "{address}");
            }
        }
        let url = Url::parse("http://127.0.0.1:8080").expect("an address");
        assert_eq!(elsewhere(&running(&["0.0.0.0:8080"]), &url), None);
        let note = elsewhere(&running(&["127.0.0.1:81"]), &url).expect("another port");
        assert!(note.contains("127.0.0.1:81, not at 127.0.0.1:8080"), "{note}");
        let far = vec![running(&["10.0.0.1:8080", "/run/web.sock"])];
        let far = Known { planned: far, ..Known::default() };
        assert!(allowed("127.0.0.1:8080", None, &far).is_ok());
    }
}
