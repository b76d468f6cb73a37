//! parse: which script a web server asks for: its parameters put right as php-fpm does with `cgi.fix_pathinfo`.
//!
//! A path of which no file is known is cut at its last slashes until there is one; what was cut off is `PATH_INFO`.
//! What was there before goes on as `ORIG_…`. Apache's `mod_proxy_fcgi` writes a URL where the script's name belongs.

use super::told::{Named, Told};
use crate::shared::Shared;
use bytes::Bytes;

/// What Apache puts before a script's name: with host and port, up to the next slash.
const APACHE: [&[u8]; 2] = [b"proxy:fcgi://", b"proxy:balancer://"];
/// How many times a path is cut.
const CUTS_MAX: usize = 32;

/// Does it, by what was known a moment ago or by what a disk says, and notes what was found.
pub(super) async fn put_right(told: &mut Told, shared: &Shared) {
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

/// Notes what they name.
fn name(told: &mut Told) {
    let of = |name| value(told, name).unwrap_or_default();
    told.script = Named {
        filename: of("SCRIPT_FILENAME"),
        name: of("SCRIPT_NAME"),
        path_info: of("PATH_INFO"),
    };
}

/// The same, where every path of even length is a file: for fuzzing.
pub(super) fn put_right_blindly(told: &mut Told) {
    put_right_by(told, |path| path.len().is_multiple_of(2));
    name(told);
}

fn value(told: &Told, name: &str) -> Option<Bytes> {
    told.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
}

/// The path whose file is looked for.
fn asked(told: &Told) -> Option<Bytes> {
    let filename = value(told, "SCRIPT_FILENAME");
    let bare = filename.as_ref().and_then(without_host);
    let translated = value(told, "PATH_TRANSLATED");
    // Apache's `Action`: the script's name is that of the handler.
    if bare.is_none() && translated.is_some() && value(told, "REDIRECT_URL").is_some() {
        return translated;
    }
    bare.or(filename).or(translated)
}

/// What may be its file: the path, and what stands before its last slashes.
fn cuts(asked: &Bytes) -> impl Iterator<Item = Bytes> {
    let whole = (!asked.ends_with(b"/")).then(|| asked.clone());
    let slashes = memchr::memrchr_iter(b'/', asked).take(CUTS_MAX);
    whole.into_iter().chain(slashes.map(|at| asked.slice(..at)))
}

fn put_right_by(told: &mut Told, is_file: impl Fn(&[u8]) -> bool) {
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
        // By Apache's `Action`.
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

/// What of the parameters' names was cut off, and what they have said of it.
struct Cut {
    rest: Bytes,
    path_info: Option<Bytes>,
    name: Option<Bytes>,
    is_apache: bool,
}

/// Which part of the site's path is the script's name, and which is behind it.
fn split(told: &mut Told, cut: &Cut) {
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

fn keep_first(told: &mut Told, name: &str, first: &'static str) {
    let old =
        told.variables.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    if let Some(old) = old {
        told.set(first, old);
    }
}

/// The path of Apache's URL, without a query.
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

    /// `NAME=value` before and after; `/w/a.php` is the only file.
    fn check(params: &[(&'static str, &'static str)], expected: &[(&str, &str)]) {
        let mut told = Told::default();
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
    fn as_nginx_tells_it() {
        let whole =
            [("SCRIPT_FILENAME", "/w/a.php"), ("SCRIPT_NAME", "/a.php"), ("PATH_INFO", "/x")];
        check(&whole, &whole);
        check(
            &[("SCRIPT_FILENAME", "/w/b.php"), ("SCRIPT_NAME", "/b.php")],
            &[("ORIG_SCRIPT_FILENAME", "/w/b.php"), ("SCRIPT_NAME", "/b.php")],
        );
    }

    #[test]
    fn a_path_behind_the_script_is_split_off() {
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
    fn as_apache_tells_it() {
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
