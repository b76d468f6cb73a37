//! Decides by name which files are private.
//!
//! - PHP source that would not run. A name that contains a PHP extension is source (`x.php.1`,
//!   `x.php-bak`, `config.inc.old`). The exception is a name whose last extension is a web format
//!   (`a.php.css`, or `Foo.php.html` of a coverage report).
//! - Files of any name that begin with PHP's opening tag: Drupal's `x.module`, a copy
//!   `config.txt`. Routes are cached, so the file is not read for each request.
//! - Keys and password databases.
//! - Project files, if the root looks like the folder of a project. In that case the project's
//!   public folder should have been the root, or the project has no public folder.
//! - The server's own files, by their paths.
//!
//! All of them are treated as absent, so that clients cannot detect them.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Extensions of files that are not source, even if a PHP extension is in the middle of their name.
/// Plain text and archives are not included, because copies of source have such names.
const WEB_FORMATS: &[&[u8]] = &[
    b"css", b"js", b"mjs", b"map", b"json", b"html", b"htm", b"xhtml", b"xml", b"svg", b"png",
    b"jpg", b"jpeg", b"gif", b"webp", b"avif", b"ico", b"bmp", b"woff", b"woff2", b"ttf", b"otf",
    b"eot", b"pdf", b"mp3", b"mp4", b"m4a", b"ogg", b"wav", b"webm", b"wasm",
];

/// Files that indicate a project's folder, below it.
const PROJECT_MARKS: &[&str] =
    &["composer.json", "samovar.toml", ".git", "vendor/autoload.php", "artisan", "bin/console"];

/// Folders in which projects keep their public files.
const PUBLIC_FOLDERS: &[&str] =
    &["public", "web", "htdocs", "public_html", "docroot", "www", "html"];

/// Project files that no page requests. Stylesheets, scripts and images are served from any folder,
/// including `vendor/` and `node_modules/`.
const PROJECT_FILES: &[&str] = &[
    "composer.*",
    "samovar.*",
    "auth.json",
    "credentials",
    "credentials.json",
    "credentials.csv",
    "credentials.txt",
    "credentials.xml",
    "secrets.json",
    "client_secret*.json",
    "service-account*.json",
    "*-firebase-adminsdk*.json",
    "sftp.json",
    "sftp-config.json",
    "filezilla.xml",
    "sitemanager.xml",
    "recentservers.xml",
    "npmrc",
    "yarnrc",
    "netrc",
    "pgpass",
    "my.cnf",
    "web.config",
    "gemfile*",
    "pipfile*",
    "requirements.txt",
    "cargo.lock",
    "go.mod",
    "go.sum",
    "pnpm-lock.*",
    "bun.lock*",
    "bower.json",
    "vagrantfile",
    "procfile",
    "jenkinsfile",
    "rakefile",
    "symfony.lock",
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "phpunit.*",
    "artisan",
    "makefile",
    "dockerfile*",
    "*.sql",
    "*.sql.*",
    "*.dump",
    "*.mdb",
    "*.sqlite*",
    "*.db",
    "*.log",
    "*.log.*",
    "*.yaml",
    "*.yml",
    "*.toml",
    "*.ini",
    "*.conf",
    "*.neon",
    "*.dist",
    "*.env",
    "*.env.*",
    "*.pem",
    "*.key",
    "*.csr",
    "*.rdp",
    "*.tfstate*",
    "*.tfvars*",
    "*.sh",
    "*.twig",
    "*.latte",
    "*.xtmpl",
    "*.po",
    "*.make",
    "*.engine",
    "*.install",
    "*.module",
    "*.profile",
    "*.theme",
    "*.bak",
    "*.old",
    "*.orig",
    "*.save",
    "*.swp",
    "*.swo",
    "*.tmp",
    "*.rej",
    "*.patch",
    "*.diff",
    "*~",
    "#*#",
];

/// Maximum number of bytes of a file that are examined for PHP source.
const HEAD_BYTES: usize = 256;

/// Keys, password databases and logs that contain secrets. No page requests them, in any folder.
const SECRET_FILES: &[&str] = &[
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.p12",
    "*.pfx",
    "*.pkcs12",
    "*.jks",
    "*.keystore",
    "*.kdb",
    "*.kdbx",
    "*.ppk",
    "*.ovpn",
    "error_log",
    "error_log.*",
    "php_errorlog",
    "htpasswd*",
    "*.htpasswd",
    "_netrc",
];

/// A project's folder of third-party code: its scripts are included, never called directly. Old
/// versions of a well-known test tool contain a script that runs any code it receives.
const VENDOR: &[u8] = b"/vendor/";

/// A file name, or a path below the root if it contains a slash, with `*` and `?`.
/// Case-insensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern(Vec<u8>);

impl Pattern {
    fn new(text: &str) -> Pattern {
        let is_path = text.contains('/') && !text.starts_with('/');
        let text = text.to_ascii_lowercase();
        Pattern(if is_path { format!("/{text}").into() } else { text.into() })
    }

    /// `path` must be in lower case.
    fn matches(&self, path: &[u8]) -> bool {
        if self.0.contains(&b'/') { glob(&self.0, path) } else { glob(&self.0, last(path)) }
    }
}

/// Matches `text` against a pattern in which `*` matches any bytes and `?` one byte.
pub(super) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Position to continue from when the last star matches one more byte.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((after, taken)) = star else { return false };
                star = Some((after, taken + 1));
                (p, t) = (after, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Rules for the private files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Private {
    denied: Vec<Pattern>,
    /// Literal folders at the beginning of denied patterns, with their original case.
    denied_folders: Vec<Vec<u8>>,
    allowed: Vec<Pattern>,
    own: Vec<PathBuf>,
    is_project: bool,
    has_vendor: bool,
}

impl Private {
    /// Creates the rules for the folder `root`, with names that are denied or allowed in addition,
    /// and the server's own files.
    pub fn new(root: &Path, denied: &[String], allowed: &[String], own: &[PathBuf]) -> Private {
        let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
        Private {
            denied: patterns(denied),
            denied_folders: denied.iter().filter_map(|text| folder_of(text)).collect(),
            allowed: patterns(allowed),
            own: own.iter().map(|path| resolve(path)).collect(),
            is_project: is_project(root),
            has_vendor: root.join("vendor/autoload.php").is_file(),
        }
    }

    /// Whether a file is private. `path` is the requested path, decoded, and `file` the file that
    /// it resolves to.
    pub(crate) fn hides_file(&self, path: &[u8], file: &Path) -> bool {
        if self.own.iter().any(|own| own == file) {
            return true;
        }
        let path = path.to_ascii_lowercase();
        if self.allowed.iter().any(|allowed| allowed.matches(&path)) {
            return false;
        }
        let original = file;
        let file = file.as_os_str().as_bytes().to_ascii_lowercase();
        [&path, &file].into_iter().any(|path| {
            is_source(last(path))
                || is_secret_file(last(path))
                || self.denied.iter().any(|denied| denied.matches(path))
                || (self.is_project && is_project_file(last(path)))
        }) || begins_as_source(original)
    }

    /// Folders, as paths below the root, in which the settings deny some files.
    pub(crate) fn denied_folders(&self) -> impl Iterator<Item = &[u8]> {
        self.denied_folders.iter().map(Vec::as_slice)
    }

    /// Whether the settings deny any file by its name.
    pub(crate) fn denies_any(&self) -> bool {
        !self.denied.is_empty()
    }

    /// Whether the settings allow `path` by its name.
    pub(crate) fn allows(&self, path: &[u8]) -> bool {
        let path = path.to_ascii_lowercase();
        self.allowed.iter().any(|pattern| pattern.matches(&path))
    }

    /// Whether the settings deny `path` by its name.
    pub(crate) fn denies(&self, path: &[u8]) -> bool {
        if self.denied.is_empty() {
            return false;
        }
        let path = path.to_ascii_lowercase();
        let is_among = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(&path));
        is_among(&self.denied) && !is_among(&self.allowed)
    }

    /// Whether the script `name`, with leading slash, must not be called.
    pub(crate) fn hides_script(&self, name: &[u8]) -> bool {
        let is_vendors = self.has_vendor && name.starts_with(VENDOR);
        if !is_vendors && self.denied.is_empty() {
            return false;
        }
        let name = name.to_ascii_lowercase();
        let is_denied = || self.denied.iter().any(|denied| denied.matches(&name));
        (is_vendors || is_denied()) && !self.allowed.iter().any(|allowed| allowed.matches(&name))
    }
}

/// Whether `root` looks like the folder of a project and not like its public folder.
pub fn is_project(root: &Path) -> bool {
    PROJECT_MARKS.iter().any(|mark| root.join(mark).exists())
}

/// Returns the public folder of a project, if there is one.
pub fn public_folder(root: &Path) -> Option<PathBuf> {
    let folders = PUBLIC_FOLDERS.iter().map(|name| root.join(name));
    folders.into_iter().find(|folder| folder.join("index.php").is_file())
}

/// Resolves a path whose file may not exist yet.
fn resolve(path: &Path) -> PathBuf {
    let parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(parent).unwrap_or_else(|| path.to_owned())
}

/// Returns the folders before the first wildcard of a pattern, with their original case.
pub(super) fn literal_folder(pattern: &[u8]) -> Option<&[u8]> {
    let is_any = |byte: &u8| matches!(byte, b'*' | b'?');
    let end = pattern.iter().position(is_any).unwrap_or(pattern.len());
    let slash = memchr::memrchr(b'/', &pattern[..end]).filter(|at| *at > 0)?;
    pattern.starts_with(b"/").then_some(&pattern[..slash])
}

/// Returns the literal folder of a pattern: `/data` for `data/*.txt`.
fn folder_of(pattern: &str) -> Option<Vec<u8>> {
    let path = format!("/{}", pattern.trim_start_matches('/'));
    literal_folder(path.as_bytes()).map(<[u8]>::to_vec)
}

fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or(path)
}

fn is_project_file(name: &[u8]) -> bool {
    PROJECT_FILES.iter().any(|pattern| glob(pattern.as_bytes(), name))
}

fn is_secret_file(name: &[u8]) -> bool {
    SECRET_FILES.iter().any(|pattern| glob(pattern.as_bytes(), name))
}

/// Whether a file is PHP source by its first bytes. A file that cannot be read cannot be sent.
fn begins_as_source(file: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let Ok(opened) = openat(CWD, file, flags, Mode::empty()) else { return false };
    let mut head = [0; HEAD_BYTES];
    rustix::io::pread(&opened, &mut head, 0).is_ok_and(|read| is_source_text(&head[..read]))
}

/// Whether a text begins with an opening tag of PHP, after a byte order mark, blank lines, or the
/// line `#!` of a program.
fn is_source_text(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let text = match memchr::memchr(b'\n', text) {
        Some(end) if text.starts_with(b"#!") => &text[end..],
        _ => text,
    };
    let text = text.trim_ascii_start();
    text.starts_with(b"<?=") || text.get(..5).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<?php"))
}

/// Whether a file is PHP source by its name, in lower case.
fn is_source(name: &[u8]) -> bool {
    let Some(dot) = memchr::memrchr(b'.', name) else { return false };
    let is_web = WEB_FORMATS.contains(&&name[dot + 1..]);
    !is_web && memchr::memchr_iter(b'.', name).any(|dot| is_php(&name[dot + 1..]))
}

/// Whether `rest` begins with a PHP extension.
fn is_php(rest: &[u8]) -> bool {
    let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let extension = &rest[..end];
    extension.starts_with(b"php") || [&b"phtml"[..], b"pht", b"phar", b"inc"].contains(&extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn php_source_is_recognized_by_name() {
        let is = |name: &str| is_source(name.to_ascii_lowercase().as_bytes());
        for name in [
            "x.php",
            "x.PHP",
            "x.php5",
            "x.phtml",
            "x.pht",
            "x.phar",
            "x.phps",
            "x.phpt",
            "x.inc",
            "x.php~",
            "x.php.bak",
            "x.php.bak2",
            "x.php.save.1",
            "x.php.1",
            "x.php.copy",
            "x.php.new",
            "x.php.2024",
            "x.php.zip",
            "x.php.tar.gz",
            "x.php.txt",
            "x.php.swp",
            "x.php5.bak",
            "x.php.dist",
            "x.php.min",
            "config.inc.old",
            "config.inc.php.orig",
            "wp-config.php-bak",
            "wp-config.php_old",
            "wp-config.php_",
            "wp-config.php(1)",
            "wp-config copy.php.txt",
            "#index.php#",
            ".index.php.swp",
            "index.php::$DATA",
            "index.php.",
            "index.php ",
            "index.php...",
            "index.php%00",
            "index.php.css~",
            "index.php.css.bak",
            "a.b.php.c.d",
        ] {
            assert!(is(name), "{name}");
        }
        for name in [
            "x",
            "php",
            "php.css",
            "x.css",
            "a.php.css",
            "foo.php.js",
            "foo.php.min.js",
            "foo.php.js.map",
            "x.php.html",
            "Foo.php.html",
            "x.inc.svg",
            "thumb.php.png",
            "phpinfo.txt",
            "x.include",
            "x.incoming.zip",
            "xphp",
            "x.xphp",
            "index.html",
            "a.pharmacy",
        ] {
            assert!(!is(name), "{name}");
        }
    }

    #[test]
    fn pattern_matches_names_and_paths() {
        for (pattern, path, matches) in [
            ("*.twig", "/a/b.twig", true),
            ("*.twig", "/a/b.twig.css", false),
            ("*.TWIG", "/a/b.twig", true),
            ("b?", "/a/bc", true),
            ("b?", "/a/b", false),
            ("/a/*", "/a/b/c", true),
            ("/a/*", "/b/a/c", false),
            ("a/*.txt", "/a/b.txt", true),
            ("*", "/a", true),
            ("", "/a", false),
            ("*a*b*", "/xxaxxbxx", true),
            ("*a*b*", "/xxbxxaxx", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(path.as_bytes()), matches, "{pattern} {path}");
        }
    }

    #[test]
    fn project_files_are_hidden_and_web_files_are_not() {
        let project = Private { is_project: true, has_vendor: true, ..Private::default() };
        let folder = Private::default();
        let hides = |of: &Private, path: &str| {
            of.hides_file(path.as_bytes(), Path::new(&format!("/site{path}")))
        };
        for path in [
            "/composer.json",
            "/composer.lock",
            "/samovar.toml",
            "/package.json",
            "/dump.SQL",
            "/backup/dump.sql.gz",
            "/wp-content/debug.log",
            "/config/services.yaml",
            "/docker-compose.yml",
            "/phpunit.xml.dist",
            "/prod.env",
            "/data/app.sqlite3",
            "/templates/a.html.twig",
            "/php.ini",
            "/deploy.sh",
            "/vendor/a/composer.json",
            "/auth.json",
            "/modules/a/a.module",
            "/a.install",
            "/a.theme",
            "/a.profile",
            "/a.engine",
            "/npmrc",
            "/terraform.tfstate.backup",
            "/web.config",
            "/index.html~",
            "/config.json.orig",
        ] {
            assert!(hides(&project, path), "{path}");
            assert!(!hides(&folder, path), "{path}");
        }
        for path in [
            "/style.css",
            "/app.js",
            "/vendor/twbs/bootstrap.min.css",
            "/node_modules/a/a.js",
            "/manifest.json",
            "/robots.txt",
            "/readme.md",
            "/image.svg",
            "/wp-content/uploads/a.zip",
            "/site.webmanifest",
            "/sitemap.xml",
        ] {
            assert!(!hides(&project, path), "{path}");
        }
        assert!(project.hides_script(b"/vendor/a/run.php"));
        assert!(!project.hides_script(b"/wp-content/plugins/a/vendor/run.php"));
        assert!(!folder.hides_script(b"/vendor/a/run.php"));
    }

    #[test]
    fn keys_and_error_logs_are_hidden_in_any_folder() {
        let hides = |path: &str| {
            Private::default().hides_file(path.as_bytes(), Path::new(&format!("/site{path}")))
        };
        for path in [
            "/id_rsa",
            "/keys/ID_ED25519",
            "/a.p12",
            "/a.PFX",
            "/a.kdbx",
            "/office.ovpn",
            "/wp-admin/error_log",
            "/error_log.1",
        ] {
            assert!(hides(path), "{path}");
        }
        for path in ["/id_rsa.pub", "/auth.json", "/a.module", "/errors.txt", "/p12"] {
            assert!(!hides(path), "{path}");
        }
    }

    #[test]
    fn source_is_recognized_by_its_first_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        for (text, expected) in [
            ("<?php echo 1;", true),
            ("<?PHP\n", true),
            ("\u{feff}\n <?php", true),
            ("#!/usr/bin/env php\n<?php", true),
            ("<?= $x ?>", true),
            ("<?xml version='1.0'?>", false),
            ("<h1><?php echo 1;", false),
            ("# See <?php", false),
            ("#!/bin/sh\necho '<?php'", false),
            ("<?ph", false),
            ("", false),
        ] {
            let file = folder.path().join("a.txt");
            std::fs::write(&file, text).expect("a file");
            assert_eq!(Private::default().hides_file(b"/a.txt", &file), expected, "{text}");
            let private = Private::new(folder.path(), &[], &["a.txt".to_owned()], &[]);
            assert!(!private.hides_file(b"/a.txt", &file), "allowed: {text}");
        }
    }

    #[test]
    fn settings_override_rules_except_for_own_files() {
        let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let denied = texts(&["*.tpl", "/data/*"]);
        let allowed = texts(&["composer.json", "/data/open.txt", "/source/*"]);
        let mut private =
            Private::new(Path::new("/nowhere"), &denied, &allowed, &["/site/a.css".into()]);
        private.is_project = true;
        for (path, is_hidden) in [
            ("/a.tpl", true),
            ("/data/x.txt", true),
            ("/data/open.txt", false),
            ("/composer.json", false),
            ("/composer.lock", true),
            ("/source/x.php.txt", false),
            ("/a.css", true),
            ("/b.css", false),
        ] {
            let file = PathBuf::from(format!("/site{path}"));
            assert_eq!(private.hides_file(path.as_bytes(), &file), is_hidden, "{path}");
        }
        assert!(private.hides_script(b"/data/x.php"));
        assert!(!private.hides_script(b"/x.php"));
        // The name of the target of a symlink counts, too.
        assert!(private.hides_file(b"/plain.txt", Path::new("/site/b.php.1")));
    }
}
