//! parse: finds the script that a web server requests, and corrects its parameters as php-fpm does
//! with `cgi.fix_pathinfo`.
//!
//! A path without a file is cut at its last slash, repeatedly, until a file is found. The part that
//! was cut off is `PATH_INFO`. Original values are kept as `ORIG_…`. Apache's `mod_proxy_fcgi`
//! sends a URL in place of the script's name.

use super::fastcgi_params::{FastcgiParams, Named};
use crate::shared::Shared;
use bytes::Bytes;

/// Prefixes of a script's name from Apache. Host and port follow, up to the next slash.
const APACHE: [&[u8]; 2] = [b"proxy:fcgi://", b"proxy:balancer://"];
/// Maximum number of cuts of a path.
const CUTS_MAX: usize = 32;

/// Corrects the parameters, using recent lookups or the disk, and stores the script.
pub(super) async fn put_right(told: &mut FastcgiParams, shared: &Shared) {
    if let Some(asked) = asked(told) {
        let now_ms = shared.clock.real_ms();
        if !asked.ends_with(b"/") && shared.known.has(&asked, now_ms) {
            put_right_by(told, |path| *path == asked);
        } else {
            let disk = shared.disk_of(&asked);
            match Box::pin(shared.known.first(disk, cuts(&asked).collect(), now_ms)).await {
                Ok(found) => put_right_by(told, |path| found.as_deref() == Some(path)),
                Err(_) => told.is_unfound = true,
            }
        }
    }
    name(told);
}

/// Stores the script that the parameters name.
fn name(told: &mut FastcgiParams) {
    let of = |name| value(told, name).unwrap_or_default();
    told.script = Named {
        filename: of("SCRIPT_FILENAME"),
        name: of("SCRIPT_NAME"),
        path_info: of("PATH_INFO"),
    };
}

/// As [`put_right`], but treats every path of even length as a file. For fuzzing.
pub(super) fn put_right_blindly(told: &mut FastcgiParams) {
    put_right_by(told, |path| path.len().is_multiple_of(2));
    name(told);
}

fn value(told: &FastcgiParams, name: &str) -> Option<Bytes> {
    told.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
}

/// Returns the path whose file must be found.
fn asked(told: &FastcgiParams) -> Option<Bytes> {
    let filename = value(told, "SCRIPT_FILENAME");
    let bare = filename.as_ref().and_then(without_host);
    let translated = value(told, "PATH_TRANSLATED");
    // With Apache's `Action`, the script's name is that of the handler.
    if bare.is_none() && translated.is_some() && value(told, "REDIRECT_URL").is_some() {
        return translated;
    }
    bare.or(filename).or(translated)
}

/// Candidates for the file: the path, and its parts before each of the last slashes.
fn cuts(asked: &Bytes) -> impl Iterator<Item = Bytes> {
    let whole = (!asked.ends_with(b"/")).then(|| asked.clone());
    let slashes = memchr::memrchr_iter(b'/', asked).take(CUTS_MAX);
    whole.into_iter().chain(slashes.map(|at| asked.slice(..at)))
}

fn put_right_by(told: &mut FastcgiParams, is_file: impl Fn(&[u8]) -> bool) {
    let Some(asked) = asked(told) else { return };
    let mut filename = value(told, "SCRIPT_FILENAME");
    let translated = value(told, "PATH_TRANSLATED");
    let mut is_apache = false;
    if let Some(bare) = filename.as_ref().and_then(without_host) {
        is_apache = true;
        told.set("SCRIPT_FILENAME", bare.clone());
        filename = Some(bare);
    }
    let redirected = value(told, "REDIRECT_URL");
    let mut name = value(told, "SCRIPT_NAME");
    let first_name = name.clone();
    if filename.as_ref().or(translated.as_ref()) != Some(&asked) {
        // The case of Apache's `Action`.
        name.clone_from(&redirected);
    }
    let path_info = value(told, "PATH_INFO");
    if !asked.ends_with(b"/") && is_file(&asked) {
        if filename.as_ref() != Some(&asked) {
            keep_first(told, "SCRIPT_FILENAME", "ORIG_SCRIPT_FILENAME");
            told.set("SCRIPT_FILENAME", asked);
        }
        if redirected.is_some() {
            for (now, first) in
                [("PATH_INFO", "ORIG_PATH_INFO"), ("PATH_TRANSLATED", "ORIG_PATH_TRANSLATED")]
            {
                if let Some(old) = told.remove(now) {
                    told.set(first, old);
                }
            }
        }
        if name != first_name {
            keep_first(told, "SCRIPT_NAME", "ORIG_SCRIPT_NAME");
            told.set("SCRIPT_NAME", name.unwrap_or_default());
        }
        return;
    }
    let shorter = cuts(&asked).filter(|path| path.len() < asked.len());
    let Some(end) = shorter.map(|path| path.len()).find(|end| is_file(&asked[..*end])) else {
        keep_first(told, "SCRIPT_FILENAME", "ORIG_SCRIPT_FILENAME");
        told.remove("SCRIPT_FILENAME");
        return;
    };
    let rest = asked.slice(end..);
    split(told, &Cut { rest, path_info, name, is_apache });
    if filename.as_ref() != Some(&asked.slice(..end)) {
        keep_first(told, "SCRIPT_FILENAME", "ORIG_SCRIPT_FILENAME");
        told.set("SCRIPT_FILENAME", asked.slice(..end));
    }
    if let Some(root) = value(told, "DOCUMENT_ROOT") {
        keep_first(told, "PATH_TRANSLATED", "ORIG_PATH_TRANSLATED");
        let root = root.strip_suffix(b"/").unwrap_or(&root);
        let below = value(told, "PATH_INFO").unwrap_or_default();
        told.set("PATH_TRANSLATED", [root, &below].concat());
    }
}

/// The part cut off from the file name, and the related parameters.
struct Cut {
    rest: Bytes,
    path_info: Option<Bytes>,
    name: Option<Bytes>,
    is_apache: bool,
}

/// Splits the site's path into the script's name and the part after it.
fn split(told: &mut FastcgiParams, cut: &Cut) {
    let Cut { rest, path_info, name, is_apache } = cut;
    let found = if *is_apache {
        Some(rest.clone())
    } else {
        let longer = path_info.as_ref().filter(|info| info.len() > rest.len());
        longer.map(|info| info.slice(info.len() - rest.len()..))
    };
    let is_same =
        if *is_apache { *path_info == found } else { path_info.is_none() && found.is_none() };
    if is_same {
        return;
    }
    match (path_info, name) {
        (Some(info), _) => {
            told.set("ORIG_PATH_INFO", info.clone());
            let shorter =
                info.slice(..info.len() - found.as_ref().map_or(0, Bytes::len).min(info.len()));
            if name.as_ref() != Some(&shorter) {
                keep_first(told, "SCRIPT_NAME", "ORIG_SCRIPT_NAME");
                told.set("SCRIPT_NAME", shorter);
            }
        }
        (None, Some(name)) if *is_apache && name.len() > rest.len() && name.ends_with(rest) => {
            told.set("ORIG_SCRIPT_NAME", name.clone());
            told.set("SCRIPT_NAME", name.slice(..name.len() - rest.len()));
        }
        (None, _) => {}
    }
    match found {
        Some(found) => told.set("PATH_INFO", found),
        None => drop(told.remove("PATH_INFO")),
    }
}

fn keep_first(told: &mut FastcgiParams, name: &str, first: &'static str) {
    let old =
        told.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    if let Some(old) = old {
        told.set(first, old);
    }
}

/// Returns the path of Apache's URL, without a query.
fn without_host(name: &Bytes) -> Option<Bytes> {
    let is_of = |prefix: &&&[u8]| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let start = APACHE.iter().find(is_of)?.len();
    let at = start + memchr::memchr(b'/', &name[start..])?;
    let path = name.slice(at..);
    let end = memchr::memchr(b'?', &path).unwrap_or(path.len());
    Some(path.slice(..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares `NAME=value` pairs before and after. `/w/a.php` is the only file.
    fn check(params: &[(&'static str, &'static str)], expected: &[(&str, &str)]) {
        let mut told = FastcgiParams::default();
        for (name, value) in params {
            told.set(name, *value);
        }
        put_right_by(&mut told, |path| path == b"/w/a.php");
        let mut found: Vec<_> = told
            .variables
            .iter()
            .map(|(name, value)| (str::from_utf8(name).unwrap(), str::from_utf8(value).unwrap()))
            .collect();
        found.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{params:?}");
    }

    #[test]
    fn nginx_parameters_name_the_script() {
        let whole =
            [("SCRIPT_FILENAME", "/w/a.php"), ("SCRIPT_NAME", "/a.php"), ("PATH_INFO", "/x")];
        check(&whole, &whole);
        check(
            &[("SCRIPT_FILENAME", "/w/b.php"), ("SCRIPT_NAME", "/b.php")],
            &[("ORIG_SCRIPT_FILENAME", "/w/b.php"), ("SCRIPT_NAME", "/b.php")],
        );
    }

    #[test]
    fn path_after_script_becomes_path_info() {
        check(
            &[
                ("DOCUMENT_ROOT", "/w"),
                ("SCRIPT_FILENAME", "/w/a.php/x/y"),
                ("SCRIPT_NAME", "/a.php/x/y"),
                ("PATH_INFO", "/a.php/x/y"),
            ],
            &[
                ("DOCUMENT_ROOT", "/w"),
                ("ORIG_PATH_INFO", "/a.php/x/y"),
                ("ORIG_SCRIPT_FILENAME", "/w/a.php/x/y"),
                ("ORIG_SCRIPT_NAME", "/a.php/x/y"),
                ("PATH_INFO", "/x/y"),
                ("PATH_TRANSLATED", "/w/x/y"),
                ("SCRIPT_FILENAME", "/w/a.php"),
                ("SCRIPT_NAME", "/a.php"),
            ],
        );
    }

    #[test]
    fn apache_parameters_name_the_script() {
        check(
            &[
                ("SCRIPT_FILENAME", "proxy:fcgi://127.0.0.1:9000/w/a.php?q"),
                ("SCRIPT_NAME", "/a.php"),
            ],
            &[("SCRIPT_FILENAME", "/w/a.php"), ("SCRIPT_NAME", "/a.php")],
        );
        check(
            &[("SCRIPT_FILENAME", "proxy:fcgi://localhost/w/a.php/x"), ("SCRIPT_NAME", "/a.php/x")],
            &[
                ("ORIG_SCRIPT_FILENAME", "/w/a.php/x"),
                ("ORIG_SCRIPT_NAME", "/a.php/x"),
                ("PATH_INFO", "/x"),
                ("SCRIPT_FILENAME", "/w/a.php"),
                ("SCRIPT_NAME", "/a.php"),
            ],
        );
        check(
            &[
                ("SCRIPT_FILENAME", "/usr/lib/cgi-bin/php"),
                ("PATH_TRANSLATED", "/w/a.php"),
                ("REDIRECT_URL", "/a.php"),
                ("SCRIPT_NAME", "/cgi-bin/php"),
                ("PATH_INFO", "/a.php"),
            ],
            &[
                ("ORIG_PATH_INFO", "/a.php"),
                ("ORIG_PATH_TRANSLATED", "/w/a.php"),
                ("ORIG_SCRIPT_FILENAME", "/usr/lib/cgi-bin/php"),
                ("ORIG_SCRIPT_NAME", "/cgi-bin/php"),
                ("REDIRECT_URL", "/a.php"),
                ("SCRIPT_FILENAME", "/w/a.php"),
                ("SCRIPT_NAME", "/a.php"),
            ],
        );
    }
}
