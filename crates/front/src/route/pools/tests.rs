//! Tests of the pool selected for a request.

use super::*;
use samovar_config::Pool;

/// The default pool has the root `/srv/shop`. Each pool is given by name, paths, hosts and front
/// controller.
fn pools(all: &[(&str, &[&str], &[&str], &str)]) -> Pools {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.php"), "").unwrap();
    let mut settings = Settings::defaults(folder.path()).unwrap();
    settings.root = "/srv/shop".into();
    let plain = settings.clone();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    settings.pools = (all.iter().enumerate())
        .map(|(at, (name, paths, hosts, controller))| {
            let file = Path::new(controller);
            let mut settings = plain.clone();
            settings.root = file.parent().unwrap().into();
            settings.front_controller = Some(file.into());
            let (paths, hosts) = (texts(paths), texts(hosts));
            Pool { name: (*name).to_owned(), line: at, paths, hosts, settings, queue: None }
        })
        .collect();
    Pools::new(&settings, b"/index.php")
}

fn check(pools: &Pools, cases: &[(&str, &str, usize)]) {
    for (host, path, expected) in cases {
        assert_eq!(pools.pick(host.as_bytes(), path.as_bytes()), *expected, "{host} {path}");
    }
}

#[test]
fn path_in_other_spellings_selects_the_same_pool() {
    let pools = pools(&[("api", &["/api/*"], &[], "/srv/api/index.php")]);
    check(
        &pools,
        &[
            ("", "/", 0),
            ("", "/api", 1),
            ("", "/api/", 1),
            ("", "/api/x", 1),
            ("", "/apix", 0),
            ("", "/%61pi/x", 1),
            ("", "/%61%70%69%2fx", 1),
            ("", "/api%2Fx", 1),
            ("", "//api/x", 1),
            ("", "/./api//x", 1),
            ("", "/shop/../api/x", 1),
            ("", "/api/../shop", 0),
            ("", "/api/%2e%2e/shop", 0),
            ("", "/api/x/../../shop", 0),
            ("", "/API/x", 0),
            ("", "/%2561pi/x", 0),
            ("", "/api/../..", 0),
            ("", "/api/%", 0),
            ("", "api/x", 0),
            ("", "", 0),
            // The pool has another root, so this is the shop's script.
            ("", "/index.php/api/x", 0),
        ],
    );
}

#[test]
fn first_matching_pool_is_selected() {
    let pools = pools(&[
        ("export", &["/api/export/*", "*/export"], &[], "/srv/api/index.php"),
        ("api", &["/api/*"], &["api.example", "*.api.example"], "/srv/api/index.php"),
        ("blog", &[], &["blog.example", "[::1]"], "/srv/blog/index.php"),
    ]);
    check(
        &pools,
        &[
            ("api.example", "/api/export/1", 1),
            ("", "/api/export", 1),
            ("api.example", "/api/x", 2),
            ("V2.API.example.", "/api/x", 2),
            ("evil-api.example", "/api/x", 0),
            ("blog.example", "/api/x", 3),
            ("BLOG.example.", "/", 3),
            ("[::1]", "/", 3),
            ("::1", "/", 0),
            ("", "/", 0),
            ("blog.example.evil", "/", 0),
        ],
    );
}

#[test]
fn rewritten_script_name_selects_pool() {
    let pools = pools(&[("export", &["/export/*"], &[], "/srv/shop/export.php")]);
    for (path, script, expected) in [
        ("/export/1", "/index.php", 1),
        ("/nice-name", "/export.php", 1),
        ("/nice-name", "/export.php/1", 1),
        ("/nice-name", "/index.php", 0),
    ] {
        let found = pools.pick_told(b"", path.as_bytes(), script.as_bytes());
        assert_eq!(found, expected, "{path} {script}");
    }
}

#[test]
fn pool_with_shared_root_owns_controller_and_path_info() {
    let pools = pools(&[
        ("api", &["/api/*"], &[], "/srv/shop/api.php"),
        ("export", &["/export/*"], &[], "/srv/shop/index.php"),
    ]);
    check(
        &pools,
        &[
            ("", "/api.php", 1),
            ("", "/api.php/x", 1),
            ("", "/%61pi.php", 1),
            ("", "/api.phpx", 0),
            ("", "/index.php/api/x", 1),
            ("", "/index.php//api/x", 1),
            ("", "/index.php/export/x", 2),
            ("", "/index.php", 0),
            ("", "/index.php/shop", 0),
            ("", "/index.phpx/api/x", 0),
            ("", "/API/x", 1),
            ("", "/api./x", 1),
            ("", "/Api.PHP", 1),
            ("", "/INDEX.php/Export/x", 2),
            ("", "/shop/api/x", 0),
        ],
    );
}
