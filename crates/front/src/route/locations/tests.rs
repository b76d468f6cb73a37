//! Tests of the settings that tables specify for a path, and of the resulting routes.

use super::*;
use crate::route::explain::Explained;
use crate::route::files::{Files, Found};
use crate::route::path_settings::TermsOfPaths;
use crate::route::private::Private;
use crate::route::site::{Elsewhere, Route, Site, Why};
use proptest::prelude::*;
use samovar_config::Location;
use std::collections::HashMap;
use std::path::Path;

/// A tree of canonical files by folder and name; names of folders end with a slash.
#[derive(Default)]
struct Tree(HashMap<(usize, Vec<u8>), Found>);

impl Tree {
    fn new(names: &[&str]) -> Tree {
        let mut tree = Tree(HashMap::from([((0, b"/".to_vec()), Found::Directory)]));
        for name in names {
            let (folder, name) = match name.split_once(':') {
                Some((_, name)) => (1, name),
                None => (0, *name),
            };
            let (name, leads) = name.split_once(" -> ").unwrap_or((name, name));
            let base = if folder == 0 { "/site" } else { "/tool" };
            let found = if name.ends_with('/') {
                Found::Directory
            } else {
                Found::File(PathBuf::from(format!("{base}{leads}")))
            };
            tree.0.insert((folder, name.trim_end_matches('/').into()), found);
        }
        tree
    }
}

impl Files for Tree {
    fn look(&self, folder: usize, below: &[u8]) -> Found {
        self.0.get(&(folder, below.to_vec())).cloned().unwrap_or(Found::Absent)
    }

    fn name_of(&self, file: &Path) -> Option<Vec<u8>> {
        let below = file.strip_prefix("/site").ok()?;
        Some(format!("/{}", below.display()).into())
    }

    fn part_below(&self, _: usize, _: &[u8], _: &Path) -> Option<Vec<u8>> {
        None
    }

    fn places(&self, folder: usize, below: &[u8], file: &Path) -> Vec<(usize, Vec<u8>)> {
        let base = if folder == 0 { "/site" } else { "/tool" };
        let under =
            |base: &str| Some(format!("/{}", file.strip_prefix(base).ok()?.display()).into_bytes());
        if under(base).as_deref() == Some(below) {
            return Vec::new();
        }
        let folders = ["/site", "/tool"].into_iter().enumerate();
        folders.filter_map(|(at, base)| Some((at, under(base)?))).collect()
    }
}

const TREE: &[&str] = &[
    "/index.php",
    "/app.html",
    "/a.css",
    "/link.php -> /uploads/evil.php",
    "/link.txt -> /secret/a.txt",
    "/uploads/",
    "/uploads/a.png",
    "/uploads/evil.php",
    "/uploads/dir/",
    "/uploads/dir/index.php",
    "/uploads/pages/",
    "/uploads/pages/index.php",
    "/uploads/pages/index.html",
    "/uploads/public/",
    "/uploads/public/run.php",
    "/secret/",
    "/secret/a.txt",
    "/secret/open/",
    "/secret/open/b.txt",
    "/docs/",
    "/docs/start.html",
    "tool:/",
    "tool:/index.php",
    "tool:/js/",
    "tool:/js/a.js",
];

fn on(paths: &[&str]) -> Location {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    Location { paths, ..Location::default() }
}

fn site(tables: Vec<Location>) -> Site {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = Settings::defaults(folder.path()).expect("defaults");
    settings.locations = tables;
    for (number, table) in settings.locations.iter_mut().enumerate() {
        table.line = number + 1;
    }
    let (locations, folders) = Locations::new(&settings).expect("no error pages");
    let elsewhere = |path| Elsewhere { path, private: Private::default() };
    Site {
        root: "/site".into(),
        controller: b"/index.php".to_vec(),
        is_explicit: false,
        static_files: true,
        private: Private::default(),
        terms: TermsOfPaths::default(),
        locations,
        folders: folders.into_iter().map(elsewhere).collect(),
    }
}

fn check(site: &Site, host: &str, cases: &[(&str, &str)]) {
    let tree = Tree::new(TREE);
    for (path, expected) in cases {
        let routed = site.route(&tree, host.as_bytes(), path.as_bytes());
        let found = match routed.route {
            Route::Static(file) => format!("static {}", file.display()),
            Route::Script(script) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("script {} {}", text(&script.filename), text(&script.name))
            }
            Route::Redirect(to) => format!("301 {to}"),
            Route::Moved(to, status) => format!("{status} {to}"),
            Route::Forbidden(why) => format!("{why:?}"),
            other => format!("{other:?}"),
        };
        assert_eq!(&found, expected, "{path}");
    }
}

const APP: &str = "script /site/index.php /index.php";

fn refusing() -> Site {
    site(vec![
        Location { deny: Some(false), ..on(&["/secret/open/*"]) },
        Location { deny: Some(true), ..on(&["/secret/*", "*.bak"]) },
        Location { scripts: Some(true), ..on(&["/uploads/public/*"]) },
        Location { scripts: Some(false), ..on(&["/uploads/*"]) },
    ])
}

#[test]
fn denied_paths_and_scripts_are_refused() {
    check(
        &refusing(),
        "",
        &[
            ("/secret", "Denied(2)"),
            ("/secret/", "Denied(2)"),
            ("/secret/a.txt", "Denied(2)"),
            ("/secret/nothing", "Denied(2)"),
            ("/secret/open/b.txt", "static /site/secret/open/b.txt"),
            ("/a/x.bak", "Denied(2)"),
            ("/secretive", APP),
            ("/uploads/a.png", "static /site/uploads/a.png"),
            ("/uploads/none.png", APP),
            ("/uploads/evil.php", "NoScripts(4)"),
            ("/uploads/none.php", "NoScripts(4)"),
            ("/uploads/evil.php/a.png", "NoScripts(4)"),
            ("/uploads/dir/", "NoScripts(4)"),
            ("/uploads/pages/", "static /site/uploads/pages/index.html"),
            (
                "/uploads/public/run.php",
                "script /site/uploads/public/run.php /uploads/public/run.php",
            ),
            // The part after a script's name is routed by its application.
            ("/index.php/secret/users", "Denied(2)"),
            ("/index.php//SECRET./users", "Denied(2)"),
            ("/index.php/secret/open/b", APP),
            ("/index.php/uploads/evil.php", "NoScripts(4)"),
            ("/index.php/uploads/a.png", APP),
            ("/index.php/products/1", APP),
            ("/uploads/public/run.php/secret", "Denied(2)"),
            // The target of a link has a name of its own.
            ("/link.php", "NoScripts(4)"),
            ("/link.txt", "Denied(2)"),
            ("/index.php", APP),
        ],
    );
}

#[test]
fn denied_path_in_other_spellings_is_refused() {
    let denied = ["Denied(2)", "BadRequest"];
    for path in [
        "/%73ecret/a.txt",
        "/secret%2fa.txt",
        "//secret/a.txt",
        "/secret//a.txt",
        "/./secret/./a.txt",
        "/x/../secret/a.txt",
        "/x/%2e%2e/secret/a.txt",
        "/x/%2E./secret/a.txt",
        "/SECRET/a.txt",
        "/Secret/A.TXT",
        "/secret./a.txt",
        "/secret%20/a.txt",
        "/secret.%20./a.txt",
        "/secret/a.txt%00.png",
        "/secret/a.txt%00",
        "/secret%2f..%2fsecret/a.txt",
        "/secret/a.txt;b",
        "/secret/;/a.txt",
        "/secret/open/../a.txt",
        "/secret/OPEN/b.txt",
        "/secret/open./b.txt",
        "/x.BAK",
        "/x.bak.",
        "/x.bak%20",
    ] {
        let routed = refusing().route(&Tree::new(TREE), b"", path.as_bytes());
        let found = match routed.route {
            Route::Forbidden(why) => format!("{why:?}"),
            Route::BadRequest(_) => "BadRequest".to_owned(),
            other => format!("{other:?}"),
        };
        assert!(denied.contains(&found.as_str()), "{path}: {found}");
    }
}

proptest! {
    /// Every spelling of a path below a denied folder is denied.
    #[test]
    fn random_spelling_of_denied_path_is_refused(
        before in prop::sample::select(
            vec!["/", "//", "/./", "/x/../", "/%2e/", "/x/%2e%2E/", "/%2F"]
        ),
        name in prop::sample::select(
            vec!["secret", "%73ecret", "sec%72et", "SECRET", "secret.", "secret%20"]
        ),
        between in prop::sample::select(vec!["/", "//", "/./", "%2f", "/%2e%2f", "/a/../"]),
        file in "(a\\.txt|evil\\.php|[a-z]{0,3}|%00|;[a-z]?|\\.\\.?){1,2}",
    ) {
        let path = format!("{before}{name}{between}{file}");
        let Ok(normal) = super::super::path::normalise(path.as_bytes()) else { return Ok(()) };
        let is_below = fold(&normal).starts_with(b"/secret/") || fold(&normal) == b"/secret";
        let route = refusing().route(&Tree::new(TREE), b"", path.as_bytes()).route;
        if is_below && !normal.starts_with(b"/secret/open") {
            prop_assert_eq!(route, Route::Forbidden(Why::Denied(2)), "{}", path);
        }
    }
}

#[test]
fn redirect_replaces_star_and_encodes_it() {
    let moved = |path, to: &str, status| Location {
        redirect: Some(Redirect { to: to.to_owned(), status }),
        ..on(&[path])
    };
    let www = Location {
        hosts: vec!["example.com".into()],
        ..moved("/*", "https://www.example.com/*", 308)
    };
    let site = site(vec![
        www,
        moved("/old/*", "/new/*", 301),
        moved("/raw*", "/*", 302),
        moved("*.htm", "/pages/*.html", 301),
        moved("/gone", "/?from=gone", 303),
        moved("/find/*", "/search?q=*&all=1", 302),
        moved("/part/*", "/page#*", 302),
    ]);
    check(
        &site,
        "other.example",
        &[
            ("/old/a%20b", "301 /new/a%20b"),
            ("/old/a%0d%0ab", "301 /new/a%0D%0Ab"),
            ("/old", "301 /new/"),
            ("/raw/evil.example", "302 /evil.example"),
            ("/raw/%5cevil.example", "302 /%5Cevil.example"),
            ("/rawx", "302 /x"),
            ("/some/a.htm", "301 /pages/a.html"),
            ("/gone", "303 /?from=gone"),
            ("/find/a/b", "302 /search?q=a/b&all=1"),
            ("/find/a&admin=1;b+c%23d%3f", "302 /search?q=a%26admin%3D1%3Bb%2Bc%23d%3F&all=1"),
            ("/part/a&b", "302 /page#a&b"),
            ("/OLD/a", APP),
        ],
    );
    for host in ["example.com", "EXAMPLE.com", "example.com."] {
        check(&site, host, &[("/old/a", "308 https://www.example.com/old/a")]);
    }
    check(&site, "example.com.evil.example", &[("/x", APP)]);
}

#[test]
fn alias_serves_files_of_another_folder() {
    let tool = Location { alias: Some("/tool".into()), ..on(&["/tools/db/*"]) };
    let site = site(vec![tool]);
    check(
        &site,
        "",
        &[
            ("/tools/db", "301 /tools/db/"),
            ("/tools/db/", "script /tool/index.php /tools/db/index.php"),
            ("/tools/db/index.php", "script /tool/index.php /tools/db/index.php"),
            ("/tools/db/js/a.js", "static /tool/js/a.js"),
            ("/tools/db/js/", "NoIndex"),
            ("/tools/db/none", "Absent"),
            ("/tools/db/../x", APP),
            ("/tools/dbx", APP),
            ("/tools/db/js/../../../uploads/a.png", "static /site/uploads/a.png"),
        ],
    );
}

#[test]
fn missing_files_use_fallback_and_folders_use_index() {
    let site = site(vec![
        Location { fallback: Some(Fallback::Nothing), ..on(&["/assets/*"]) },
        Location { fallback: Some(Fallback::Path("/app.html".into())), ..on(&["/spa/*"]) },
        Location { index: Some(vec!["start.html".into()]), ..on(&["/docs/*"]) },
    ]);
    check(
        &site,
        "",
        &[
            ("/assets/none.js", "Absent"),
            ("/spa/any/where", "static /site/app.html"),
            ("/spa", "static /site/app.html"),
            ("/a.css", "static /site/a.css"),
            ("/docs/", "static /site/docs/start.html"),
            ("/any", APP),
        ],
    );
}

#[test]
fn headers_match_name_of_sent_file() {
    let with = |path, value: &str| Location {
        headers: vec![("cache-control".into(), value.into()), ("x-a".into(), value.into())],
        ..on(&[path])
    };
    let site = site(vec![
        with("*.css", "of-css"),
        with("*.html", "of-html"),
        Location { fallback: Some(Fallback::Path("/app.html".into())), ..on(&["/spa/*"]) },
        with("/*", ""),
    ]);
    for (path, status, expected) in [
        ("/a.css", 200, (Some("of-css"), Some("of-css"))),
        ("/a.css", 304, (Some("of-css"), Some("of-css"))),
        ("/a.css", 404, (Some("own"), Some("of-css"))),
        ("/spa/x", 200, (Some("of-html"), Some("of-html"))),
        ("/uploads/pages/", 200, (None, None)),
        ("/x", 200, (None, None)),
    ] {
        let expected = match path {
            "/uploads/pages/" => (None, None),
            _ => expected,
        };
        let routed = site.route(&Tree::new(TREE), b"", path.as_bytes());
        let mut headers = http::HeaderMap::new();
        headers.insert("cache-control", HeaderValue::from_static("own"));
        let effects = routed.effects.expect("something holds");
        effects.apply(http::StatusCode::from_u16(status).expect("a status"), &mut headers);
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!((text("cache-control"), text("x-a")), expected, "{path} {status}");
    }
}

#[test]
fn explanation_lists_tables_rules_and_response() {
    let site = refusing();
    let of = |path| Explained::new(&site, &Tree::new(TREE), "a.example", path);
    let said = of("/SECRET%2fa.txt");
    assert_eq!(said.path.as_deref(), Some("/SECRET/a.txt"));
    assert_eq!((said.tables, said.status), (vec![2], Some(403)));
    assert_eq!(said.rules, [(2, "access denied".to_owned())]);
    assert_eq!(said.response, "rejected: access denied by the location in line 2");
    let said = of("/secret/open/b.txt");
    assert_eq!((said.tables, said.status), (vec![1, 2], None));
    assert_eq!(said.response, "the file /site/secret/open/b.txt");
    assert_eq!(of("/%zz").path, None);
}

#[test]
fn location_status_is_sent_for_its_paths() {
    let site = site(vec![
        Location { status: Some(410), ..on(&["/gone/*", "/uploads/*"]) },
        Location { deny: Some(true), ..on(&["/gone/secret"]) },
        Location {
            redirect: Some(Redirect { to: "/new".to_owned(), status: 301 }),
            ..on(&["/gone/moved"])
        },
    ]);
    check(
        &site,
        "",
        &[
            ("/gone", "Status(410, 1)"),
            ("/gone/any", "Status(410, 1)"),
            ("/uploads/a.png", "Status(410, 1)"),
            ("/uploads/evil.php/x", "Status(410, 1)"),
            ("/gone/secret", "Denied(2)"),
            ("/gone/moved", "301 /new"),
            ("/gonex", APP),
        ],
    );
    let said = Explained::new(&site, &Tree::new(TREE), "", "/gone/any");
    assert_eq!((said.tables, said.status), (vec![1], Some(410)));
    assert_eq!(said.rules, [(1, "response with status 410".to_owned())]);
}

/// The first table that sets a variable takes effect, matched by the path or the script's name.
#[test]
fn script_variables_and_body_limit_use_first_table() {
    let told = |paths: &[&str], pairs: &[(&str, &str)], body_bytes_max| Location {
        variables: pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        body_bytes_max,
        ..on(paths)
    };
    let site = site(vec![
        told(&["/shop/*"], &[("CODE", "shop"), ("A", "1")], Some(5)),
        Location {
            hosts: vec!["b.example".to_owned()],
            ..told(&[], &[("CODE", "b"), ("B", "2")], None)
        },
        told(&["*.php"], &[("CODE", "all")], Some(7)),
    ]);
    for (host, path, expected, bytes_max) in [
        ("", "/", "CODE=all", 7),
        ("", "/any", "CODE=all", 7),
        ("", "/shop/a", "CODE=shop A=1", 5),
        ("b.example", "/shop/a", "CODE=shop A=1 B=2", 5),
        ("b.example", "/", "CODE=b B=2", 7),
    ] {
        let routed = site.route(&Tree::new(TREE), host.as_bytes(), path.as_bytes());
        let Route::Script(script) = routed.route else { panic!("{path}: a script") };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = script.variables().map(|(n, v)| format!("{}={}", text(n), text(v)));
        assert_eq!(pairs.collect::<Vec<_>>().join(" "), expected, "{host}{path}");
        assert_eq!(script.body_bytes_max, Some(bytes_max), "{host}{path}");
    }
    let said = Explained::new(&site, &Tree::new(TREE), "b.example", "/");
    assert_eq!(said.tables, [2, 3]);
    let rules: Vec<_> = said.rules.iter().map(|(line, rule)| (*line, rule.as_str())).collect();
    let expected =
        [(2, "PHP variable CODE=b"), (2, "PHP variable B=2"), (3, "request bodies up to 7 bytes")];
    assert_eq!(rules, expected);
}

/// With `path = "*.php"` and `deny = true`, clients cannot request any script by name, but the
/// application works.
#[test]
fn front_controller_runs_although_its_name_is_denied() {
    for pattern in ["*.php", "/index.php/*"] {
        let site = site(vec![Location { deny: Some(true), ..on(&[pattern]) }]);
        check(
            &site,
            "",
            &[
                ("/", APP),
                ("/any", APP),
                ("/index.php", "Denied(1)"),
                ("/index.php/any", "Denied(1)"),
            ],
        );
    }
}

#[test]
fn script_is_passed_to_first_matching_fastcgi_pass() {
    let by = |port: u16| vec![Upstream::Tcp(([127, 0, 0, 1], port).into())];
    let site = site(vec![
        Location { index: Some(vec!["none.php".to_owned()]), ..on(&["/docs/*"]) },
        Location { fastcgi_pass: by(1), ..on(&["/uploads/dir/*"]) },
        Location { fastcgi_pass: by(2), hosts: vec!["old.example".to_owned()], ..on(&["/*"]) },
        Location { fastcgi_pass: by(3), ..on(&["/uploads/*"]) },
        Location {
            fastcgi_pass: by(4),
            hosts: vec!["by-name.example".to_owned()],
            ..on(&["*.php"])
        },
    ]);
    let tree = Tree::new(TREE);
    for (host, path, expected) in [
        ("", "/", None),
        ("old.example", "/", Some(2)),
        ("old.example", "/none/of/them", Some(2)),
        ("", "/uploads/dir/index.php/a", Some(1)),
        ("old.example", "/uploads/%64ir/index.php", Some(1)),
        ("", "/uploads/public/run.php", Some(3)),
        ("", "/docs/missing", None),
        // The name of the script counts, too, as after nginx's `try_files`.
        ("by-name.example", "/", Some(4)),
        ("by-name.example", "/any/page", Some(4)),
        ("by-name.example", "/index.php/a", Some(4)),
        ("by-name.example", "/uploads/dir/", Some(1)),
    ] {
        let Route::Script(script) = site.route(&tree, host.as_bytes(), path.as_bytes()).route
        else {
            panic!("{path}: a script");
        };
        let found = script.pass.as_ref().map(|pass| match &pass.upstreams[..] {
            [Upstream::Tcp(address)] => address.port(),
            others => panic!("{others:?}"),
        });
        assert_eq!(found, expected, "{host}{path}");
    }
}
