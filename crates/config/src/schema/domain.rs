//! Domain names for automatic certificates: the allowed names, the listeners that follow from them,
//! and the folder of the keys.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schema::listener::{Listener, Protocol};
use crate::schema::setting::Surroundings;
use crate::schema::settings::Settings;

/// A description of the mistake, and a hint.
type Wrong = (String, String);

/// Maximum number of names per server: authorities limit the number of orders.
const DOMAINS_MAX: usize = 100;
/// Maximum length of a name, and of one of its labels.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// Default listener of a server without domain names.
const LISTEN: &str = "127.0.0.1:8080";
/// Default listeners of a server with domain names: the authority connects to these ports.
const LISTEN_WITH_DOMAINS: [&str; 2] = [":80?redirect", "https://:443"];
/// Allowed leases of jobs.
const LEASES: RangeInclusive<Duration> = Duration::from_secs(2)..=Duration::from_hours(1);
/// Folder for persistent data of a server started by root.
const STATE_OF_ROOT: &str = "/var/lib/samovar";

/// Checks the names, and sets the default of `listen`.
pub(crate) fn finish(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let mut domains: Vec<String> = Vec::new();
    for text in &settings.acme.domains {
        let name = name(text).map_err(|(wrong, hint)| (format!("{wrong}: `{text}`"), hint))?;
        if !domains.contains(&name) {
            domains.push(name);
        }
    }
    if domains.len() > DOMAINS_MAX {
        let hint = format!("use several servers, each with at most {DOMAINS_MAX} names");
        return Err((format!("has too many names: {}", domains.len()), hint));
    }
    settings.acme.domains = domains;
    let has_domains = !settings.acme.domains.is_empty();
    if settings.listen.is_empty() {
        let presets: &[&str] = if has_domains { &LISTEN_WITH_DOMAINS } else { &[LISTEN] };
        settings.listen = presets.iter().filter_map(|text| Listener::read(text)).collect();
    }
    if has_domains && !settings.listen.iter().any(|at| at.protocol == Protocol::Https) {
        return Err((
            "names domains, but no address in `listen` uses TLS".to_owned(),
            "remove `listen`, or add `https://:443` to it".to_owned(),
        ));
    }
    Ok(())
}

/// Normalizes a name as in certificates: lower case, without a trailing dot.
fn name(text: &str) -> Result<String, Wrong> {
    let wrong = |what: &str, hint: &str| Err((what.to_owned(), hint.to_owned()));
    if text.contains('*') {
        return wrong(
            "cannot have a wildcard",
            "name each domain, or obtain the certificate with another program and name its file in \
             `tls.certificates`: wildcards need DNS-01, which is not supported",
        );
    }
    if !text.is_ascii() {
        return wrong(
            "takes names in ASCII, as in the DNS",
            "write parts with other letters as `xn--…`: `idn NAME` converts them",
        );
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.parse::<std::net::IpAddr>().is_ok() {
        return wrong(
            "takes names, not addresses",
            "name the domain that resolves to this address",
        );
    }
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return wrong(
            "has an invalid host name",
            "write it without scheme, port and path, such as `example.com`",
        );
    }
    Ok(name)
}

/// The id and the key must be set together.
pub(crate) fn finish_external(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.acme.eab_id.is_some() == settings.acme.eab_key.is_some() {
        return Ok(());
    }
    Err((
        "must be set together with `acme.eab_id`".to_owned(),
        "set both, as issued by the authority, or none".to_owned(),
    ))
}

/// Sets the default folder for the account and the certificates.
#[allow(clippy::unnecessary_wraps)] // The table requires this signature.
pub(crate) fn finish_folder(
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Result<(), Wrong> {
    if settings.acme.folder.as_os_str().is_empty() {
        settings.acme.folder = state(around).join("acme");
    }
    Ok(())
}

/// Sets the default file for the store of jobs.
#[allow(clippy::unnecessary_wraps)] // The table requires this signature.
pub(crate) fn finish_jobs(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.jobs.store.as_os_str().is_empty() {
        settings.jobs.store = state(around).join("jobs.sqlite");
    }
    Ok(())
}

/// Checks the lease of jobs.
pub(crate) fn finish_lease(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if LEASES.contains(&settings.jobs.lease) {
        return Ok(());
    }
    let wrong = format!("`jobs.lease` is {:?}", settings.jobs.lease);
    Err((wrong, "use a time from 2s to 1h".to_owned()))
}

/// Sets the default file for the generated token of the admin listener.
#[allow(clippy::unnecessary_wraps)] // The table requires this signature.
pub(crate) fn finish_token_file(
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Result<(), Wrong> {
    if settings.admin_token_file.as_os_str().is_empty() {
        settings.admin_token_file = state(around).join("admin-token");
    }
    Ok(())
}

/// Returns the folder for data that is kept when the server ends.
fn state(around: &Surroundings<'_>) -> PathBuf {
    let absolute = |text: Option<&std::ffi::OsStr>| {
        text.map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned)
    };
    // A service manager may pass several folders, separated by colons.
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
    fn name_accepts_only_host_names() {
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
            ("b\u{fc}cher.example", "as in the DNS"),
            ("192.0.2.1", "not addresses"),
            ("::1", "not addresses"),
            ("https://example.com", "invalid host name"),
            ("example.com:443", "invalid host name"),
            ("example.com/", "invalid host name"),
            ("a..b", "invalid host name"),
            ("-a.b", "invalid host name"),
            ("a_b.c", "invalid host name"),
            ("", "invalid host name"),
            (".", "invalid host name"),
            ("..", "invalid host name"),
        ] {
            let (what, hint) = name(text).expect_err(text);
            assert!(what.contains(expected) && !hint.is_empty(), "{text}: {what}");
        }
        assert!(name(&"a".repeat(64)).is_err());
        assert!(name(&["a"; 130].join(".")).is_err());
    }

    #[test]
    fn state_folder_depends_on_environment() {
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
