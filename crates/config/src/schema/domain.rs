//! Names for which certificates are fetched: what may be one, where the server then listens, and where the keys lie.

use std::path::{Path, PathBuf};

use crate::schema::listener::{Listener, Protocol};
use crate::schema::setting::Surroundings;
use crate::schema::settings::Settings;

/// What is wrong, and a hint.
type Wrong = (String, String);

/// More names than a server looks after: authorities allow few orders.
const DOMAINS_MAX: usize = 100;
/// Longest name, and longest part of it.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// Where a server without other names listens.
const LISTEN: &str = "127.0.0.1:8080";
/// Where one with names listens: the authority asks there.
const LISTEN_WITH_DOMAINS: [&str; 2] = [":80?redirect", "https://:443"];
/// Where a server that root starts keeps what outlives it.
const STATE_OF_ROOT: &str = "/var/lib/samovar";

/// Checks the names, and says where the server listens if nobody does.
pub(crate) fn finish(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let mut domains: Vec<String> = Vec::new();
    for text in &settings.acme.domains {
        let name = name(text).map_err(|(what, hint)| (format!("{what}: `{text}`"), hint))?;
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    if domains.len() > DOMAINS_MAX {
        let hint = format!("one server looks after {DOMAINS_MAX} names at most");
        return Err((format!("has {} names", domains.len()), hint));
    }
    settings.acme.domains = domains;
    let has_domains = !settings.acme.domains.is_empty();
    if settings.listen.is_empty() {
        let presets: &[&str] = if has_domains { &LISTEN_WITH_DOMAINS } else { &[LISTEN] };
        settings.listen = presets.iter().filter_map(|text| Listener::read(text)).collect();
    }
    if has_domains && !settings.listen.iter().any(|at| at.protocol == Protocol::Https) {
        return Err((
            "names domains, and nothing in `listen` speaks TLS".to_owned(),
            "leave `listen` out, or add `https://:443` to it".to_owned(),
        ));
    }
    Ok(())
}

/// A name as certificates have it: lower case, without the dot at its end.
fn name(text: &str) -> Result<String, Wrong> {
    let wrong = |what: &str, hint: &str| Err((what.to_owned(), hint.to_owned()));
    if text.contains('*') {
        return wrong(
            "cannot have a wildcard",
            "authorities issue these over the DNS alone (DNS-01), which is not spoken here: name each domain, or \
             fetch the certificate with another program and name its file in `tls.certificates`",
        );
    }
    if !text.is_ascii() {
        return wrong(
            "takes names as the DNS has them",
            "write it in ASCII, each part with letters beyond that as `xn--…`: `idn NAME` says it",
        );
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.parse::<std::net::IpAddr>().is_ok() {
        return wrong("takes names and no addresses", "name the domain that leads to this address");
    }
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return wrong(
            "has what is no name of a host",
            "without scheme, port and path, such as `example.com`",
        );
    }
    Ok(name)
}

/// Id and key go together.
pub(crate) fn finish_external(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.acme.eab_id.is_some() == settings.acme.eab_key.is_some() {
        return Ok(());
    }
    Err((
        "goes with `acme.eab_id`, and one of them is missing".to_owned(),
        "the authority gives you both; set both, or none".to_owned(),
    ))
}

/// Where account and certificates lie if nobody says.
#[allow(clippy::unnecessary_wraps)] // As the table wants it of all.
pub(crate) fn finish_folder(
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Result<(), Wrong> {
    if settings.acme.folder.as_os_str().is_empty() {
        settings.acme.folder = state(around).join("acme");
    }
    Ok(())
}

/// The folder of what outlives a server.
fn state(around: &Surroundings<'_>) -> PathBuf {
    let absolute = |text: Option<&std::ffi::OsStr>| {
        text.map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned)
    };
    // A service manager may name several, with colons between them.
    let managed = around.state_dir.and_then(|text| text.to_str()?.split(':').next());
    if let Some(folder) = absolute(managed.map(std::ffi::OsStr::new)) {
        return folder;
    }
    match absolute(around.home) {
        Some(home) if !around.is_root => home.join(".local/state/samovar"),
        _ => PathBuf::from(STATE_OF_ROOT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, expected) in [
            ("example.com", "example.com"),
            ("WWW.Example.COM", "www.example.com"),
            ("example.com.", "example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("intranet", "intranet"),
            ("1.example", "1.example"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("*.example.com", "wildcard"),
            ("b\u{fc}cher.example", "as the DNS has them"),
            ("192.0.2.1", "no addresses"),
            ("::1", "no addresses"),
            ("https://example.com", "no name of a host"),
            ("example.com:443", "no name of a host"),
            ("example.com/", "no name of a host"),
            ("a..b", "no name of a host"),
            ("-a.b", "no name of a host"),
            ("a_b.c", "no name of a host"),
            ("", "no name of a host"),
            (".", "no name of a host"),
            ("..", "no name of a host"),
        ] {
            let (what, hint) = name(text).expect_err(text);
            assert!(what.contains(expected) && !hint.is_empty(), "{text}: {what}");
        }
        assert!(name(&"a".repeat(64)).is_err());
        assert!(name(&["a"; 130].join(".")).is_err());
    }

    #[test]
    fn where_state_lies() {
        let around = |state_dir, home, is_root| Surroundings {
            cwd: Path::new("/"),
            temp_dir: None,
            state_dir: Option::<&'static str>::map(state_dir, std::ffi::OsStr::new),
            home: Option::<&'static str>::map(home, std::ffi::OsStr::new),
            is_root,
            is_given: false,
        };
        for (around, expected) in [
            (around(Some("/var/lib/a:/b"), Some("/home/u"), false), "/var/lib/a"),
            (around(Some("relative"), Some("/home/u"), false), "/home/u/.local/state/samovar"),
            (around(None, Some("/root"), true), STATE_OF_ROOT),
            (around(None, None, false), STATE_OF_ROOT),
        ] {
            assert_eq!(state(&around), Path::new(expected));
        }
    }
}
