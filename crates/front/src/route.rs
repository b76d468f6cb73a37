//! route: request path → what answers it. A pure function over a small view of the file system.
//!
//! The rules are those of this nginx configuration, which PHP applications are written for:
//!
//! ```text
//! index index.php index.html;
//! location / { try_files $uri $uri/ /index.php$is_args$args; }
//! location ~ [^/]\.php(/|$) { fastcgi_split_path_info ^(.+?\.php)(/.*)$; … }
//! ```
//!
//! and differ where nginx would leak or fail:
//! * A path with a hidden component (`.env`, `.git`; not `/.well-known/`) and PHP source that would not run
//!   (`.phtml`, `.inc`, `x.php~`) are treated as absent: they fall to the front controller.
//! * A `.php` path that is no file falls to the front controller too, where nginx says 404.
//! * What a symlink outside the root leads to is forbidden, unless it leads below a listed target.
//! * With a front controller that was named explicitly, directories are absent: all that is no file is its.

use samovar_ring::Lane;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many `.php/` places of a path are tried as the script's end.
const SPLITS_MAX: usize = 8;
/// How long a resolved document root is believed: a deploy that switches the symlink is seen after it.
const ROOT_TTL: Duration = Duration::from_secs(1);

/// What answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// This file, by its canonical path.
    Static(PathBuf),
    /// A PHP script.
    Script(Script),
    /// The same path with a slash behind it, percent-encoded, without query.
    Redirect(String),
    /// It is there, and not for you.
    Forbidden,
    /// There is nothing.
    NotFound,
    /// The path is none; the reason is for the log.
    BadRequest(&'static str),
}

/// A script and how it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// `SCRIPT_FILENAME`, absolute.
    pub filename: Vec<u8>,
    /// `SCRIPT_NAME`: below the root, with leading slash.
    pub name: Vec<u8>,
    /// `PATH_INFO`, empty for none.
    pub path_info: Vec<u8>,
    /// Which workers run it.
    pub lane: Lane,
}

/// What a path below the root is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or something that is neither file nor directory.
    Absent,
    /// A regular file, by its canonical path.
    File(PathBuf),
    /// A directory.
    Directory,
    /// It lies outside the root.
    Outside,
}

/// The view of the file system that routing needs.
pub trait Files {
    /// What `below`, a decoded path with leading slash, is.
    fn look(&self, below: &[u8]) -> Found;
}

/// The site: where it lies and what runs it.
#[derive(Debug)]
pub struct Site {
    /// `DOCUMENT_ROOT`, absolute, as given.
    pub root: PathBuf,
    /// The front controller's `SCRIPT_NAME`.
    pub controller: Vec<u8>,
    /// The front controller was named, so directories do not count.
    pub is_explicit: bool,
    /// Whether files other than scripts are served.
    pub static_files: bool,
}

impl Site {
    /// What answers `path`, the target's path as it came, percent-encoded.
    pub fn route(&self, files: &impl Files, path: &[u8]) -> Route {
        let path = match normalise(path) {
            Ok(path) => path,
            Err(reason) => return Route::BadRequest(reason),
        };
        self.script_in(files, &path)
            .or_else(|| self.try_files(files, &path))
            .unwrap_or_else(|| self.fall_back(files))
    }

    /// The first prefix of `path` that is an existing script.
    fn script_in(&self, files: &impl Files, path: &[u8]) -> Option<Route> {
        script_ends(path).take(SPLITS_MAX).find_map(|end| {
            let (name, path_info) = path.split_at(end);
            if is_hidden(name) {
                return None;
            }
            match files.look(name) {
                Found::File(_) => Some(self.script(name, path_info)),
                Found::Outside => Some(Route::Forbidden),
                Found::Absent | Found::Directory => None,
            }
        })
    }

    fn try_files(&self, files: &impl Files, path: &[u8]) -> Option<Route> {
        if is_hidden(path) {
            return None;
        }
        let directory = path.strip_suffix(b"/");
        match files.look(directory.filter(|d| !d.is_empty()).unwrap_or(path)) {
            Found::Outside => Some(Route::Forbidden),
            Found::File(file) if directory.is_none() => self.static_file(path, file),
            Found::Absent | Found::File(_) => None,
            Found::Directory if self.is_explicit => None,
            Found::Directory if directory.is_none() => Some(Route::Redirect(with_slash(path))),
            Found::Directory => Some(self.index_of(files, path)),
        }
    }

    fn static_file(&self, path: &[u8], file: PathBuf) -> Option<Route> {
        let is_served =
            self.static_files && !is_source(path) && !is_source(file.as_os_str().as_bytes());
        is_served.then_some(Route::Static(file))
    }

    /// `directory` ends with a slash.
    fn index_of(&self, files: &impl Files, directory: &[u8]) -> Route {
        let script = [directory, b"index.php"].concat();
        if let Found::File(_) = files.look(&script) {
            return self.script(&script, b"");
        }
        let page = [directory, b"index.html"].concat();
        match files.look(&page) {
            Found::File(file) => self.static_file(&page, file).unwrap_or(Route::Forbidden),
            _ => Route::Forbidden,
        }
    }

    fn fall_back(&self, files: &impl Files) -> Route {
        match files.look(&self.controller) {
            Found::File(_) => self.script(&self.controller, b""),
            Found::Outside => Route::Forbidden,
            Found::Absent | Found::Directory => Route::NotFound,
        }
    }

    fn script(&self, name: &[u8], path_info: &[u8]) -> Route {
        let root = self.root.as_os_str().as_bytes();
        Route::Script(Script {
            filename: [root.strip_suffix(b"/").unwrap_or(root), name].concat(),
            name: name.to_vec(),
            path_info: path_info.to_vec(),
            lane: if name == self.controller { Lane::App } else { Lane::Script },
        })
    }
}

/// Decodes percent escapes once, merges slashes, resolves `.` and `..`. The result starts with a slash.
fn normalise(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let decoded = decode(path)?;
    if decoded.first() != Some(&b'/') {
        return Err("the path has no leading slash");
    }
    let mut out = Vec::with_capacity(decoded.len());
    let mut segments = decoded[1..].split(|b| *b == b'/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"" | b"." => {}
            b".." => {
                let up = out.iter().rposition(|b| *b == b'/').ok_or("the path leaves the root")?;
                out.truncate(up);
            }
            name => {
                out.push(b'/');
                out.extend_from_slice(name);
                if is_last {
                    return Ok(out);
                }
            }
        }
    }
    out.push(b'/');
    Ok(out)
}

fn decode(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.iter();
    while let Some(&byte) = rest.next() {
        let byte = if byte == b'%' {
            let digits =
                (rest.next().copied().and_then(digit), rest.next().copied().and_then(digit));
            let (Some(high), Some(low)) = digits else { return Err("a broken percent escape") };
            high << 4 | low
        } else {
            byte
        };
        if byte == 0 {
            return Err("a NUL byte in the path");
        }
        out.push(byte);
    }
    Ok(out)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|d| d as u8)
}

/// The places where a script's name may end: behind each `.php` that ends a non-empty component.
fn script_ends(path: &[u8]) -> impl Iterator<Item = usize> + '_ {
    const EXTENSION: &[u8] = b".php";
    memchr::memmem::find_iter(path, EXTENSION).filter_map(move |at| {
        let end = at + EXTENSION.len();
        let is_named = at > 0 && path[at - 1] != b'/';
        let is_end = matches!(path.get(end), None | Some(b'/'));
        (is_named && is_end).then_some(end)
    })
}

/// Whether a component starts with a dot; RFC 8615's `/.well-known/` is public.
fn is_hidden(path: &[u8]) -> bool {
    let public = path.strip_prefix(b"/.well-known").filter(|r| r.is_empty() || r[0] == b'/');
    let path = public.unwrap_or(path);
    memchr::memmem::find(path, b"/.").is_some()
}

/// Whether a file is PHP source by its name: what runs elsewhere, and what editors leave behind.
fn is_source(path: &[u8]) -> bool {
    const BACKUPS: [&[u8]; 9] =
        [b"bak", b"old", b"orig", b"save", b"swp", b"swo", b"tmp", b"dist", b"txt"];
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path).to_ascii_lowercase();
    let name = name.strip_suffix(b"~").unwrap_or(&name);
    let mut extensions = name.rsplit(|b| *b == b'.');
    let last = extensions.next().unwrap_or_default();
    let second = extensions.next();
    match second {
        None => false,
        Some(_) if is_php_extension(last) => true,
        Some(second) => BACKUPS.contains(&last) && is_php_extension(second),
    }
}

fn is_php_extension(extension: &[u8]) -> bool {
    extension.starts_with(b"php") || [&b"phtml"[..], b"pht", b"phar", b"inc"].contains(&extension)
}

fn with_slash(path: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(path.len() + 1);
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    out.push('/');
    out
}

/// The real file system.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    link_targets: Vec<PathBuf>,
    resolved: RefCell<Option<(Instant, PathBuf)>>,
}

impl Disk {
    /// The files below `root`; symlinks may lead below `link_targets` too.
    pub fn new(root: PathBuf, link_targets: &[PathBuf]) -> Disk {
        let link_targets = link_targets.iter().filter_map(|t| t.canonicalize().ok()).collect();
        Disk { root, link_targets, resolved: RefCell::default() }
    }

    fn is_inside(&self, path: &Path) -> bool {
        let mut resolved = self.resolved.borrow_mut();
        if resolved.as_ref().is_none_or(|(at, _)| at.elapsed() > ROOT_TTL) {
            *resolved = self.root.canonicalize().ok().map(|root| (Instant::now(), root));
        }
        resolved.as_ref().is_some_and(|(_, root)| path.starts_with(root))
            || self.link_targets.iter().any(|target| path.starts_with(target))
    }
}

impl Files for Disk {
    fn look(&self, below: &[u8]) -> Found {
        let root = self.root.as_os_str().as_bytes();
        let path = PathBuf::from(OsStr::from_bytes(&[root, below].concat()).to_owned());
        // One system call for what is not there, which is what most pretty URLs are.
        let Ok(metadata) = path.metadata() else { return Found::Absent };
        if !metadata.is_file() && !metadata.is_dir() {
            return Found::Absent;
        }
        let Ok(canonical) = path.canonicalize() else { return Found::Absent };
        if !self.is_inside(&canonical) {
            return Found::Outside;
        }
        if metadata.is_dir() { Found::Directory } else { Found::File(canonical) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// A tree: names with a trailing slash are directories, `!` in front means outside.
    struct Tree(HashMap<Vec<u8>, Found>);

    impl Tree {
        fn new(names: &[&str]) -> Tree {
            let mut tree = HashMap::from([(b"/".to_vec(), Found::Directory)]);
            for name in names {
                let (found, name) = match name.strip_prefix('!') {
                    Some(name) => (Found::Outside, name),
                    None if name.ends_with('/') => (Found::Directory, name.trim_end_matches('/')),
                    None => (Found::File(PathBuf::from(format!("/site{name}"))), *name),
                };
                tree.insert(name.as_bytes().to_vec(), found);
            }
            Tree(tree)
        }
    }

    impl Files for Tree {
        fn look(&self, below: &[u8]) -> Found {
            self.0.get(below).cloned().unwrap_or(Found::Absent)
        }
    }

    fn site() -> Site {
        Site {
            root: "/site".into(),
            controller: b"/index.php".to_vec(),
            is_explicit: false,
            static_files: true,
        }
    }

    const TREE: &[&str] = &[
        "/index.php",
        "/info.php",
        "/style.css",
        "/.env",
        "/.git/",
        "/.git/config",
        "/.well-known/",
        "/.well-known/acme",
        "/dir/",
        "/dir/index.php",
        "/pages/",
        "/pages/index.html",
        "/empty/",
        "/a.php.css",
        "/lib.inc",
        "/old.php~",
        "/old.php.bak",
        "/x.phtml",
        "/up.PHP",
        "/d.php/",
        "/d.php/in.css",
        "/d.php/run.php",
        "!/out",
        "!/out.php",
        "/sp ace/",
        "/.hidden.php",
        "/r%",
    ];

    /// A route in short: `static /x`, `script NAME PATH_INFO lane`, `301 …` or a word.
    fn short(route: &Route) -> String {
        match route {
            Route::Static(path) => format!("static {}", path.display()),
            Route::Script(s) => {
                let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
                assert_eq!(s.filename, [b"/site", &s.name[..]].concat());
                format!("script {} {} {:?}", text(&s.name), text(&s.path_info), s.lane)
            }
            Route::Redirect(to) => format!("301 {to}"),
            other => format!("{other:?}"),
        }
    }

    fn check(site: &Site, files: &Tree, cases: &[(&str, &str)]) {
        for (path, expected) in cases {
            let route = short(&site.route(files, path.as_bytes()));
            assert!(route.starts_with(expected), "{path}: {route}, expected {expected}");
        }
    }

    #[test]
    fn the_routes_of_try_files() {
        let app = "script /index.php  App";
        check(
            &site(),
            &Tree::new(TREE),
            &[
                ("/", app),
                ("/index.php", app),
                ("/index.php/a/b", "script /index.php /a/b App"),
                ("/index.php/a%20b", "script /index.php /a b App"),
                ("/index.php/.x", "script /index.php /.x App"),
                ("/info.php", "script /info.php  Script"),
                ("/info.php/x.php/y", "script /info.php /x.php/y Script"),
                ("/info.php/", "script /info.php / Script"),
                ("/info.phpx", app),
                ("/products/1", app),
                ("/missing.php", app),
                ("/missing.php/x", app),
                ("/style.css", "static /site/style.css"),
                ("/style.css/", app),
                ("/%73tyle.css", "static /site/style.css"),
                ("//style.css", "static /site/style.css"),
                ("/dir/../style.css", "static /site/style.css"),
                ("/dir/./../style.css", "static /site/style.css"),
                ("/%2e%2e/style.css", "BadRequest"),
                ("/..", "BadRequest"),
                ("/dir/../../x", "BadRequest"),
                ("/%00", "BadRequest"),
                ("/%", "BadRequest"),
                ("/%4", "BadRequest"),
                ("/%zz", "BadRequest"),
                ("", "BadRequest"),
                ("relative", "BadRequest"),
                ("/dir", "301 /dir/"),
                ("//dir", "301 /dir/"),
                ("/sp%20ace", "301 /sp%20ace/"),
                ("/dir/", "script /dir/index.php  Script"),
                ("/dir/.", "script /dir/index.php  Script"),
                ("/dir/x/..", "script /dir/index.php  Script"),
                ("/pages/", "static /site/pages/index.html"),
                ("/empty/", "Forbidden"),
                ("/r%25", "static /site/r%"),
            ],
        );
    }

    #[test]
    fn what_is_never_served() {
        let app = "script /index.php  App";
        check(
            &site(),
            &Tree::new(TREE),
            &[
                ("/.env", app),
                ("/.git", app),
                ("/.git/config", app),
                ("/%2egit/config", app),
                ("/.hidden.php", app),
                ("/.well-known/acme", "static /site/.well-known/acme"),
                ("/.well-knownx", app),
                ("/lib.inc", app),
                ("/old.php~", app),
                ("/old.php.bak", app),
                ("/x.phtml", app),
                ("/up.PHP", app),
                ("/a.php.css", "static /site/a.php.css"),
                ("/d.php/in.css", "static /site/d.php/in.css"),
                ("/d.php/run.php/x", "script /d.php/run.php /x Script"),
                ("/d.php", "301 /d.php/"),
                ("/out", "Forbidden"),
                ("/out.php", "Forbidden"),
            ],
        );
    }

    #[test]
    fn a_named_controller_takes_all_that_is_no_file() {
        let site = Site { controller: b"/app.php".to_vec(), is_explicit: true, ..site() };
        let app = "script /app.php  App";
        let tree = ["/app.php", "/dir/", "/dir/index.php", "/index.php", "/style.css"];
        check(
            &site,
            &Tree::new(&tree),
            &[
                ("/", app),
                ("/dir", app),
                ("/dir/", app),
                ("/dir/index.php", "script /dir/index.php  Script"),
                ("/index.php", "script /index.php  Script"),
                ("/style.css", "static /site/style.css"),
            ],
        );
    }

    #[test]
    fn without_controller_what_is_not_there_is_404() {
        check(
            &site(),
            &Tree::new(&["/a.txt", "/x.php"]),
            &[
                ("/", "Forbidden"),
                ("/b", "NotFound"),
                ("/b.php", "NotFound"),
                ("/a.txt", "static"),
                ("/x.php", "script"),
            ],
        );
    }

    #[test]
    fn static_files_can_be_off() {
        let site = Site { static_files: false, ..site() };
        check(
            &site,
            &Tree::new(TREE),
            &[("/style.css", "script /index.php"), ("/pages/", "Forbidden")],
        );
    }

    proptest! {
        #[test]
        fn a_normal_path_stays_below_the_root(path in "(/|[.]{1,2}|%2[eEfF]|%5c|a|%00|%zz){0,12}") {
            if let Ok(path) = normalise(path.as_bytes()) {
                prop_assert_eq!(path[0], b'/');
                prop_assert!(!path.contains(&0));
                let mut segments = path.split(|b| *b == b'/');
                prop_assert!(segments.all(|s| s != b"." && s != b".."));
                prop_assert!(memchr::memmem::find(&path, b"//").is_none());
            }
        }
    }
}
