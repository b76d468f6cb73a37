//! Tests of the routes of paths, with a given tree of files.

use super::*;
use std::collections::HashMap;
use std::path::Path;

/// A tree: names with a trailing slash are directories; a leading `!` means outside the root.
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
    fn look(&self, _: usize, below: &[u8]) -> Found {
        self.0.get(below).cloned().unwrap_or(Found::Absent)
    }

    fn name_of(&self, _: &Path) -> Option<Vec<u8>> {
        None
    }

    fn places(&self, _: usize, _: &[u8], _: &Path) -> Vec<(usize, Vec<u8>)> {
        Vec::new()
    }

    fn part_below(&self, _: usize, _: &[u8], _: &Path) -> Option<Vec<u8>> {
        None
    }
}

fn site() -> Site {
    Site::sample()
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

/// A route in short form: `static /x`, `script NAME PATH_INFO lane`, `301 …` or a word.
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
        let route = short(&site.route(files, b"", path.as_bytes()).route);
        assert!(route.starts_with(expected), "{path}: {route}, expected {expected}");
    }
}

#[test]
fn routes_follow_try_files() {
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
fn hidden_and_source_files_are_not_served() {
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
fn explicit_controller_handles_paths_without_file() {
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
fn missing_file_without_controller_is_404() {
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
fn disabled_static_files_are_not_served() {
    let site = Site { static_files: false, ..site() };
    check(
        &site,
        &Tree::new(TREE),
        &[("/style.css", "script /index.php"), ("/pages/", "Forbidden")],
    );
}
