//! Files that are not served, files with dates that HTTP cannot express, and error pages for
//! missing pages.

use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually, front_threads};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// A document root with these files; the content of each is its path.
fn root(files: &[&str]) -> TempDir {
    let root = TempDir::with_prefix("samovar-refusals-").expect("a folder");
    for file in files {
        put(root.path(), file, file);
    }
    root
}

fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("below the root")).expect("our own folder");
    fs::write(path, text).expect("our own folder");
}

fn check(server: &Server, expected: &[(&str, u16)]) {
    for (path, status) in expected {
        let response = server.get(path);
        assert_eq!(response.status, *status, "{path}: {}", response.text());
    }
}

fn browser(target: &str) -> Request {
    Request::get(target).header("Accept", "text/html")
}

/// `httpdate` panics beyond the year 9999. Such a file once ended the server.
#[test]
fn file_with_any_modification_time_is_served() {
    // tmpfs stores times that other file systems truncate.
    let root = TempDir::new_in("/dev/shm").expect("a folder");
    let year = Duration::from_hours(24 * 365);
    let last = "Fri, 31 Dec 9999 23:59:59 GMT";
    let zero = "Thu, 01 Jan 1970 00:00:00 GMT";
    let server = Server::at(root.path()).start();
    for (name, at, expected) in [
        ("far", UNIX_EPOCH + year * 9_000, last),
        ("farther", UNIX_EPOCH + Duration::from_secs(i64::MAX.unsigned_abs() - 1), last),
        ("epoch", UNIX_EPOCH, zero),
        ("old", UNIX_EPOCH - year * 100, zero),
        ("a moment before", UNIX_EPOCH - Duration::from_nanos(1), zero),
    ] {
        let target = format!("/{}", name.replace(' ', "_"));
        let path = root.path().join(&target[1..]);
        fs::write(&path, name).expect("our own folder");
        let file = File::options().write(true).open(&path).expect("our own file");
        file.set_times(FileTimes::new().set_modified(at)).expect("a time that tmpfs keeps");
        let kept = path.metadata().and_then(|m| m.modified()).expect("a time");
        assert!(kept == at || name == "farther", "{name}: {kept:?}");
        let response = server.get(&target);
        assert_eq!((response.status, response.text().as_str()), (200, name));
        assert_eq!(response.header("last-modified"), Some(expected), "{name}");
        let again = Request::get(&target).header("If-Modified-Since", expected);
        assert_eq!(server.client().request(&again).status, 304, "{name}");
        let tag =
            Request::get(&target).header("If-None-Match", response.header("etag").expect("a tag"));
        assert_eq!(server.client().request(&tag).status, 304, "{name}");
    }
    assert!(SystemTime::now() > UNIX_EPOCH);
}

#[test]
fn source_copy_is_not_served() {
    let names = [
        "x.php.1",
        "x.php.copy",
        "x.php.new",
        "x.php.2024",
        "x.php.zip",
        "x.php.bak2",
        "x.php.save.1",
        "wp-config.php-bak",
        "wp-config.php_old",
        "wp-config%20copy.php.txt",
        "config.inc.old",
        "x.php5.bak",
        "%23index.php%23",
        "x.PHP.OLD",
        "x.php.",
        "x.php%20",
        "x.php::$DATA",
        "x.phtml~",
    ];
    let pages = ["a.php.css", "foo.php.js", "Foo.php.html", "phpinfo.txt", "a.txt", "secret.tpl"];
    let root = root(&pages);
    for name in names {
        let plain = name.replace("%20", " ").replace("%23", "#");
        put(root.path(), &plain, "<?php $password = 1;");
    }
    symlink("x.php.1", root.path().join("plain.txt")).expect("our own folder");
    let server = Server::at(root.path()).start();
    for name in names.into_iter().chain(["plain.txt"]) {
        let response = server.get(&format!("/{name}"));
        assert_eq!(response.status, 404, "{name}");
        assert!(!response.text().contains("password"), "{name}");
    }
    for page in pages {
        assert_eq!(server.get(&format!("/{page}")).text(), page);
    }
    // Settings override the defaults.
    let server = Server::at(root.path())
        .args(["--deny-files", "*.tpl", "--allow-files", "x.php.new", "--deny-files", "/a.*"])
        .start();
    check(
        &server,
        &[("/secret.tpl", 404), ("/a.txt", 404), ("/x.php.new", 200), ("/x.php.1", 404)],
    );
}

#[test]
fn hidden_file_is_not_served_under_any_name() {
    let root = root(&[".env", ".git/config", ".well-known/a.txt", "..data/mounted.txt"]);
    for (target, link) in [
        (".env", "env.txt"),
        (".git", "repository"),
        (".env", "page.php"),
        ("..data/mounted.txt", "mounted.txt"),
    ] {
        symlink(target, root.path().join(link)).expect("our own folder");
    }
    put(root.path(), ".storage/public/upload.txt", "");
    symlink(".storage/public", root.path().join("storage")).expect("our own folder");
    let named = root.path().join(".storage/public").to_string_lossy().into_owned();
    let server = Server::at(root.path()).args(["--link-targets", &named]).start();
    check(
        &server,
        &[
            // An explicitly configured target is served.
            ("/storage/upload.txt", 200),
            ("/.env", 404),
            ("/env.txt", 404),
            ("/repository/config", 404),
            ("/repository/", 404),
            ("/page.php", 404),
            ("/.well-known/a.txt", 200),
            // Kubernetes mounts files in this way.
            ("/mounted.txt", 200),
        ],
    );
}

#[test]
fn project_files_are_not_served() {
    let kept = [
        "composer.json",
        "composer.lock",
        "dump.sql",
        "debug.log",
        "config/a.yaml",
        "package.json",
    ];
    let pages = ["style.css", "vendor/twbs/a.css", "node_modules/a/a.js", "readme.txt"];
    let root = root(&[&kept[..], &pages, &["vendor/autoload.php"]].concat());
    put(root.path(), "index.php", "<?php echo 'index ', $_SERVER['REQUEST_URI'];");
    put(root.path(), "vendor/tool/eval.php", "<?php echo 'evaluated';");
    put(root.path(), "samovar.toml", "workers = 1\n");
    put(root.path(), "settings.txt", "workers = 1\n");
    let start = || Server::at(root.path()).inside(root.path());
    let server = start().start();
    for name in kept.into_iter().chain(["samovar.toml", "vendor/tool/eval.php"]) {
        assert_eq!(server.get(&format!("/{name}")).text(), format!("index /{name}"));
    }
    for page in pages {
        assert_eq!(server.get(&format!("/{page}")).text(), page);
    }
    assert!(!server.stop().contains("project"), "its pages lie beside what it keeps");
    let server = start()
        .args(["--allow-files", "composer.json", "--allow-files", "/vendor/tool/*"])
        .args(["--allow-files", "settings.txt", "--config", "settings.txt"]);
    let server = server.start();
    assert_eq!(server.get("/composer.json").text(), "composer.json");
    assert_eq!(server.get("/vendor/tool/eval.php").text(), "evaluated");
    assert_eq!(server.get("/settings.txt").text(), "index /settings.txt", "the file in use");
    // If there is a public folder, the log names it.
    put(root.path(), "public/index.php", "");
    let server = start().start();
    let public = root.path().join("public");
    server.wait_for_log(&format!(
        "(hint: serve its public folder: `samovar serve {}`)",
        public.display()
    ));
    assert_eq!(server.log().matches("the root looks like a project folder").count(), 1);
}

#[test]
fn link_leaving_root_is_logged() {
    let outside = root(&["a.txt"]);
    let root = root(&["b.txt"]);
    symlink(outside.path(), root.path().join("shared")).expect("our own folder");
    let server = Server::at(root.path()).start();
    let page = server.client().request(&browser("/shared/a.txt"));
    assert_eq!(page.status, 403);
    assert!(page.text().contains("--link-targets"), "{}", page.text());
    server.wait_for_log("link_targets");
    assert!(server.log().contains(&format!("target={}", outside.path().join("a.txt").display())));
    for _ in 0..50 {
        server.get("/shared/a.txt");
    }
    // Each thread of the front logs it once.
    let named = server.log().matches("link_targets").count();
    assert!((1..=front_threads()).contains(&named), "{}", server.log());
    // After the first served page, the response is the status only.
    assert_eq!(server.get("/b.txt").status, 200);
    let page = server.client().request(&browser("/shared/a.txt"));
    assert!(
        page.status == 403 && !page.text().contains("samovar") && !page.text().contains("link")
    );
}

#[test]
fn empty_root_shows_hint_to_local_browser_only() {
    let root = root(&[]);
    let server = Server::at(root.path()).start();
    let host = |name: &str| browser("/").header("Host", name);
    let is_advised = |request: &Request| {
        let response = server.client().request(request);
        assert_eq!(response.status, 403);
        response.text().contains("index.php")
    };
    for name in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080"] {
        assert!(is_advised(&host(name)), "{name}");
    }
    assert!(is_advised(&Request::get("/")));
    // Requests through a proxy may come from any client.
    for name in ["shop.example", "127.0.0.1.shop.example", "10.0.0.1"] {
        assert!(!is_advised(&host(name)), "{name}");
    }
    for header in ["Via", "Forwarded", "X-Forwarded-For", "X-Real-IP"] {
        assert!(!is_advised(&host("localhost").header(header, "a")), "{header}");
    }
    let mut old = server.client();
    old.send(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert!(!old.read(false).text().contains("index.php"));
    let nothing = server.get("/none");
    assert_eq!((nothing.status, nothing.text().contains("samovar serve")), (404, true));
    let root_name = format!("root={}", root.path().display());
    eventually("the log", || server.log().contains(&root_name).then_some(()));
    assert_eq!(server.log().matches("no response for `/`").count(), 1);
    put(root.path(), "index.html", "<p>");
    eventually("the page", || (server.get("/").status == 200).then_some(()));
    let nothing = server.get("/none");
    assert_eq!((nothing.status, nothing.text().contains("samovar")), (404, false));
}
