//! Files that a script sends in place of its body: `X-Accel-Redirect` and `X-Sendfile`.
//!
//! The values of these headers may come from a client. Files are therefore opened only below the
//! folders of the settings, and no symlink is followed inside a folder. The path of the folder
//! itself may contain a symlink, which a deployment switches. Scripts can name the folder by that
//! path, by the target at boot, or by the current target.

use super::send::{Asked, Opened, failure, media_type, send};
use crate::response::body::ResponseBody;
use crate::response::error_page::Failure;
use crate::runtime::disk::{Held, may_hang};
use crate::shared::Shared;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use samovar_config::SendFolder;
use samovar_log::Throttle;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Names a file by its path in the site, percent-encoded.
const BY_PATH: HeaderName = HeaderName::from_static("x-accel-redirect");
/// Names a file by its path on disk.
const BY_FILE: HeaderName = HeaderName::from_static("x-sendfile");

/// Sends the file that the script names, if any. `is_told`: the request came from a web server that
/// handles these headers itself if they name no folder of the settings.
pub(crate) async fn instead(
    shared: &Shared,
    folders: &BTreeMap<String, SendFolder>,
    parts: &Parts,
    is_told: bool,
    response: Response<ResponseBody>,
) -> Result<Response<ResponseBody>, Failure> {
    let headers = response.headers();
    let Some(named) = headers.get(&BY_PATH).or_else(|| headers.get(&BY_FILE)).cloned() else {
        return Ok(response);
    };
    Box::pin(send_named(shared, folders, (parts, is_told), named, response)).await
}

/// Sends the file named by `named`. Its folder may be on a file system that hangs.
async fn send_named(
    shared: &Shared,
    folders: &BTreeMap<String, SendFolder>,
    (parts, is_told): (&Parts, bool),
    named: HeaderValue,
    mut response: Response<ResponseBody>,
) -> Result<Response<ResponseBody>, Failure> {
    let is_path = response.headers().contains_key(&BY_PATH);
    let found = match place(folders, named.as_bytes(), is_path) {
        None if !is_path => place_now(shared, folders, &named).await?,
        found => found,
    };
    if found.is_none() && is_told {
        return Ok(response);
    }
    if response.status() != StatusCode::OK {
        // Do not disclose the paths of files. Frameworks also set the header on a 304.
        response.headers_mut().remove(&BY_PATH);
        response.headers_mut().remove(&BY_FILE);
        return Ok(response);
    }
    let Some((folder, below)) = found.filter(|(_, below)| is_plain(below)) else {
        refused(
            &shared.common.warnings.sendfile,
            named.as_bytes(),
            "not below a folder of `sendfile`",
        );
        return Err(Failure::Forbidden);
    };
    let place = folder.join(&below);
    let opening = {
        let below = below.clone();
        move || {
            let file = open_below(&folder, &below)?;
            let metadata = file.metadata()?;
            Ok((file, metadata, may_hang(&folder)))
        }
    };
    let (file, metadata, is_far) = match shared.disk.ask(place, opening).await {
        Ok(opened) => opened,
        Err(error) if is_elsewhere(&error) => {
            refused(
                &shared.common.warnings.sendfile,
                named.as_bytes(),
                "symbolic link in the path",
            );
            return Err(Failure::Forbidden);
        }
        Err(error) => return Err(failure(&error)),
    };
    let file = Held::new(file, Some(&shared.disk).filter(|_| is_far));
    if !metadata.is_file() {
        return Err(Failure::NotFound);
    }
    let kind = response.headers().get(header::CONTENT_TYPE).cloned();
    let kind = kind.unwrap_or_else(|| media_type(&below));
    // The response to a POST may also send a file; it is treated like a GET.
    let method = if parts.method == Method::HEAD { &Method::HEAD } else { &Method::GET };
    let asked = Asked { method, headers: &parts.headers };
    let opened = Opened { file, metadata, coding: None };
    let sent = send(&shared.disk, opened, &kind, asked)?;
    Ok(joined(response, sent))
}

/// Merges the file's head over the script's. The script's media type, file name and caching headers
/// are kept.
fn joined(
    of_script: Response<ResponseBody>,
    mut of_file: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let (mut head, body) = of_script.into_parts();
    of_file.body_mut().replace(&body);
    let of_its_body = [header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::CONTENT_RANGE];
    for name in of_its_body.into_iter().chain([BY_PATH, BY_FILE]) {
        head.headers.remove(name);
    }
    for (name, value) in of_file.headers_mut().drain() {
        if let Some(name) = name {
            head.headers.insert(name, value);
        }
    }
    *of_file.headers_mut() = head.headers;
    of_file
}

/// Returns the folder that contains the file, and the path below it. `None`: the named path is in
/// no folder.
fn place(
    folders: &BTreeMap<String, SendFolder>,
    named: &[u8],
    is_path: bool,
) -> Option<(PathBuf, PathBuf)> {
    if is_path {
        // A query, which nginx also removes. It is not part of the file name.
        let path = named.split(|byte| *byte == b'?').next().unwrap_or(named);
        let path = crate::route::normal(path)?;
        // The longest of nested paths.
        let fits = folders.iter().rev().find(|(prefix, _)| path.starts_with(prefix.as_bytes()));
        let (prefix, folder) = fits?;
        let below = PathBuf::from(OsStr::from_bytes(&path[prefix.len()..]));
        return Some((folder.named.clone(), below));
    }
    let file = Path::new(OsStr::from_bytes(named));
    let below = |base: &Path| Some((base.to_owned(), file.strip_prefix(base).ok()?.to_owned()));
    let known = folders.values().flat_map(|folder| [&folder.named, &folder.found]);
    known.into_iter().find_map(|base| below(base))
}

/// As [`place`], for a file named by the current target of a folder.
async fn place_now(
    shared: &Shared,
    folders: &BTreeMap<String, SendFolder>,
    named: &HeaderValue,
) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    let file = PathBuf::from(OsStr::from_bytes(named.as_bytes()));
    let known: Vec<_> = folders.values().map(|folder| folder.named.clone()).collect();
    let Some(first) = known.first().cloned() else { return Ok(None) };
    let found = shared.disk.ask(first, move || {
        let mut now = known.iter().filter_map(|folder| folder.canonicalize().ok());
        Ok(now.find_map(|base| {
            let below = file.strip_prefix(&base).ok()?.to_owned();
            Some((base, below))
        }))
    });
    found.await.map_err(|error| failure(&error))
}

/// Whether a path below a folder names an entry in it.
fn is_plain(below: &Path) -> bool {
    let mut parts = below.components().peekable();
    let is_something = parts.peek().is_some();
    let has_nul = below.as_os_str().as_bytes().contains(&0);
    is_something && !has_nul && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Opens a file below a folder without following symlinks. Kernels before 5.6 and some sandboxes
/// cannot do this in one call. The path is then checked for symlinks before it is opened.
fn open_below(folder: &Path, below: &Path) -> io::Result<File> {
    let as_folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let at = openat(CWD, folder, as_folder, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = match openat2(&at, below, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => {
            let path = folder.canonicalize()?.join(below);
            if path.canonicalize()? != path {
                return Err(Errno::LOOP.into());
            }
            openat(CWD, path, flags, Mode::empty())
        }
        other => other,
    };
    Ok(File::from(file?))
}

fn is_elsewhere(error: &io::Error) -> bool {
    let codes = [Errno::LOOP, Errno::XDEV].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

fn refused(throttle: &Throttle, named: &[u8], reason: &str) {
    if let Some(suppressed) = throttle.pass() {
        tracing::warn!(
            file = %named.escape_ascii(),
            suppressed,
            "a script requested a file that must not be sent: {reason}: 403 (hint: to allow the \
             file, add its folder to `sendfile`)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> BTreeMap<String, SendFolder> {
        let pairs = [("/p/", "/srv/p"), ("/p/deep/", "/srv/other"), ("/q/", "/srv/q")];
        pairs
            .map(|(path, folder)| {
                let (named, found) = (folder.into(), format!("{folder}-1").into());
                (path.to_owned(), SendFolder { named, found })
            })
            .into()
    }

    #[test]
    fn named_files_resolve_only_below_sendfile_folders() {
        for (named, is_path, expected) in [
            ("/p/a.zip", true, Some("/srv/p + a.zip")),
            ("/p/a%20b", true, Some("/srv/p + a b")),
            ("/p/deep/a", true, Some("/srv/other + a")),
            ("/p//x/../a", true, Some("/srv/p + a")),
            ("/p/a.zip?b=/../c", true, Some("/srv/p + a.zip")),
            ("/p/a%3Fb", true, Some("/srv/p + a?b")),
            ("/p/?a", true, None),
            ("/srv/p/a?b", false, Some("/srv/p + a?b")),
            ("/p/", true, None),
            ("/p", true, None),
            ("/px/a", true, None),
            ("/p/../q/a", true, Some("/srv/q + a")),
            ("/p/../../etc/passwd", true, None),
            ("/p/%2e%2e/%2e%2e/etc/passwd", true, None),
            ("/p/..%2f..%2fetc/passwd", true, None),
            ("/p/a%00", true, None),
            ("p/a", true, None),
            ("", true, None),
            ("/srv/p/a", false, Some("/srv/p + a")),
            ("/srv/p/a%20b", false, Some("/srv/p + a%20b")),
            ("/srv/p-1/a", false, Some("/srv/p-1 + a")),
            ("/srv/p-1/../q/a", false, None),
            ("/srv/p-2/a", false, None),
            ("/srv/p", false, None),
            ("/srv/p/", false, None),
            ("/srv/p/../q/a", false, None),
            ("/srv/p/../../etc/passwd", false, None),
            ("/srv/px/a", false, None),
            ("/etc/passwd", false, None),
            ("srv/p/a", false, None),
            ("/p/a", false, None),
        ] {
            let folders = folders();
            let found = place(&folders, named.as_bytes(), is_path);
            let found = found.filter(|(_, below)| is_plain(below));
            let found = found.map(|(f, below)| format!("{} + {}", f.display(), below.display()));
            assert_eq!(found.as_deref(), expected, "{named}");
        }
    }

    #[test]
    fn symlinks_below_a_folder_are_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path().canonicalize().expect("it is there");
        std::fs::create_dir(root.join("in")).expect("our own folder");
        std::fs::write(root.join("in/a"), "a").expect("our own file");
        std::fs::write(root.join("out"), "out").expect("our own file");
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(to, root.join(at)).expect("our own link");
        };
        link("../out", "in/link");
        link("a", "in/near");
        link("..", "in/up");
        let open = |below: &str| open_below(&root.join("in"), Path::new(below));
        assert!(open("a").is_ok());
        for below in ["link", "near", "up/out", "up/in/a"] {
            let error = open(below).expect_err("it is refused");
            assert!(is_elsewhere(&error), "{below}: {error}");
        }
    }
}
