//! `[[location]]`: compared with nginx where both have the same meaning, and features that only
//! Samovar has.

mod variables;

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Oracle, Server, Start, binary};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const INDEX: &str = "<?php echo 'app ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['SCRIPT_NAME'], ' \
                     ', $_SERVER['PATH_INFO'] ?? '', ' ', $_SERVER['DOCUMENT_ROOT'] === __DIR__ ? \
                     '' : 'root?';";
const TOOL: &str = "<?php echo 'tool ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['SCRIPT_FILENAME'] \
                    === __FILE__ ? 'own' : $_SERVER['SCRIPT_FILENAME'];";

/// A site, and a tool in another folder.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Site {
        let site = Site { folder: tempfile::tempdir().expect("a folder") };
        for (name, text) in [
            ("site/index.php", INDEX),
            ("site/app.html", "the page"),
            ("site/a.css", "css"),
            ("site/secret/a.txt", "secret"),
            ("site/secret/run.php", "<?php echo 'ran';"),
            ("site/uploads/a.txt", "upload"),
            ("site/uploads/evil.php", "<?php echo 'ran';"),
            ("site/uploads/dir/index.php", "<?php echo 'ran';"),
            ("tool/index.php", TOOL),
            ("tool/js/a.js", "js"),
            ("errors/404.html", "our own 404"),
        ] {
            site.write(name, text);
        }
        site
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("our own folder");
        std::fs::write(file, text).expect("our own file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self, locations: &str) -> Start {
        let locations = locations.replace("FOLDER", &self.folder.path().display().to_string());
        Server::at(self.path("site")).workers(2).config(&locations)
    }
}

const LOCATIONS: &str = r#"
[[location]]
path = "/secret/*"
deny = true

[[location]]
path = "/uploads/*"
scripts = false

[[location]]
path = "/tools/db/*"
alias = "FOLDER/tool"

[[location]]
path = "/old/*"
redirect = "/new/*"

[[location]]
path = "*.css"
headers = { Cache-Control = "max-age=3600" }

[[location]]
path = "/assets/*"
fallback = "none"
"#;

const OF_NGINX: &str = r"
location ^~ /secret/ { deny all; }
location = /secret { deny all; }
location ~ ^/uploads/.*\.php(/|$) { deny all; }
location ^~ /assets/ { try_files $uri =404; }
location ^~ /old/ { rewrite ^/old/(.*)$ /new/$1 permanent; }
location ^~ /tools/db/ {
    alias FOLDER/tool/;
    location ~ ^/tools/db/(.+\.php)$ {
        alias FOLDER/tool/$1;
        include /etc/nginx/fastcgi_params;
        fastcgi_param SCRIPT_FILENAME $request_filename;
        fastcgi_pass FPM;
    }
}
location ~ \.css$ { add_header Cache-Control max-age=3600; }
";

/// Status, body of a 200 response, `Location` without host, and `Cache-Control`.
fn essence(response: &Response) -> (u16, String, String, String) {
    let body = if response.status == 200 { response.text() } else { String::new() };
    let location = response.header("location").unwrap_or_default();
    let location = location.strip_prefix("http://localhost").unwrap_or(location);
    let location = location.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit()).to_owned();
    let cache = response.header("cache-control").unwrap_or_default().to_owned();
    (response.status, body, location, cache)
}

/// The alias's scripts are requested by name: nginx has no `index` for them that reaches its inner
/// location.
#[test]
fn locations_match_nginx() {
    let site = Site::new();
    let server = site.server(LOCATIONS).start();
    let folder = site.folder.path().display().to_string();
    let of_nginx = OF_NGINX.replace("FOLDER", &folder);
    let oracle = Oracle::located(&site.path("site"), &of_nginx);
    for target in [
        "/",
        "/a/b?c=d",
        "/a.css",
        "/secret",
        "/secret/",
        "/secret/a.txt",
        "/secret/none",
        "/secret/run.php",
        "/secret/run.php/info",
        "/%73ecret/a.txt",
        "//secret//a.txt",
        "/secret%2fa.txt",
        "/x/../secret/a.txt",
        "/x/%2e%2e/secret/a.txt",
        "/secret/../a.css",
        "/secret/a.txt;x",
        "/secret/a.txt%00",
        "/secretive",
        "/uploads/a.txt",
        "/uploads/evil.php",
        "/uploads/evil.php/x",
        "/uploads/none.php",
        "/uploads/dir/",
        "/uploads/%65vil.php",
        "/uploads/x/../evil.php",
        "/assets/none.js",
        "/old/a/b",
        "/old/a%20b?c=d",
        "/old/",
        "/tools/db/index.php",
        "/tools/db/js/a.js",
        "/tools/db/none",
        "/tools/db/js",
        "/tools/dbx",
        "/tools/db/../../a.css",
    ] {
        let (ours, theirs) = (essence(&server.get(target)), essence(&oracle.get(target)));
        assert_eq!(ours, theirs, "{target}");
    }
}

/// nginx permits these spellings, but a file system may treat them as the same name.
#[test]
fn denied_location_is_stricter_than_nginx() {
    let site = Site::new();
    let server = site.server(LOCATIONS).start();
    for target in [
        "/SECRET/a.txt",
        "/secret./a.txt",
        "/secret%20/a.txt",
        "/Secret/Run.php",
        "/UPLOADS/evil.php",
        "/uploads./evil.php",
    ] {
        assert_eq!(server.get(target).status, 403, "{target}");
    }
    std::os::unix::fs::symlink("secret/a.txt", site.path("site/open.txt")).expect("a link");
    std::os::unix::fs::symlink("uploads/evil.php", site.path("site/open.php")).expect("a link");
    assert_eq!(server.get("/open.txt").status, 403);
    assert_eq!(server.get("/open.php").status, 403);
}

/// An application uses the text after its script's name as the path. In nginx, `internal` has this
/// purpose.
#[test]
fn denied_path_after_front_controller_is_denied() {
    let site = Site::new();
    let server = site.server(LOCATIONS).start();
    for (target, status) in [
        ("/index.php/secret/a.txt", 403),
        ("/index.php//Secret/../secret/users", 403),
        ("/index.php/%73ecret", 403),
        ("/index.php/uploads/evil.php", 403),
        ("/tools/db/index.php/secret", 403),
        ("/index.php/uploads/a.txt", 200),
        ("/index.php/secretive", 200),
        ("/index.php/old/a", 200),
    ] {
        let response = server.get(target);
        assert_eq!(response.status, status, "{target}: {}", response.text());
        assert!(status == 200 || !response.text().contains("app "), "{target}");
    }
}

/// Below an alias, between two aliases, and out of the root to a listed target: the rules of the
/// link's target apply.
#[test]
fn symlink_does_not_bypass_denied_location() {
    let site = Site::new();
    for (name, text) in [
        ("tool/private/a.txt", "private"),
        ("tool/uploads/evil.php", "<?php echo 'ran';"),
        ("other/a.txt", "other"),
        ("storage/closed/a.txt", "closed"),
        ("storage/open/a.txt", "open"),
        ("storage/hidden/a.txt", "hidden"),
        ("site/data/a.txt", "data"),
        ("site/data/run.php", "<?php echo 'ran';"),
    ] {
        site.write(name, text);
    }
    for (to, at) in [
        ("private/a.txt", "tool/in.txt"),
        ("private", "tool/in"),
        ("uploads/evil.php", "tool/in.php"),
        ("js/a.js", "tool/fine.js"),
        ("../tool/private/a.txt", "other/across.txt"),
        ("../site/secret/a.txt", "tool/root.txt"),
        ("../storage", "site/storage"),
        ("../closed/a.txt", "storage/open/link.txt"),
        ("../storage/closed", "site/shortcut"),
        ("../storage/closed/a.txt", "site/short.txt"),
        ("../storage/hidden", "site/hid"),
        ("data/a.txt", "site/data.txt"),
        ("data/run.php", "site/data.php"),
        ("data/a.txt", "site/allowed.txt"),
    ] {
        std::os::unix::fs::symlink(to, site.path(at)).expect("a link");
    }
    let base = site.folder.path().display().to_string();
    let config = format!(
        "link_targets = [\"{base}\"]\ndeny_files = [\"/data/*\", \
         \"storage/hidden/*\"]\nallow_files = [\"/allowed.txt\"]\n{}",
        r#"
[[location]]
path = ["/secret/*", "/tool/private/*", "/storage/closed/*"]
deny = true
[[location]]
path = "/tool/uploads/*"
scripts = false
[[location]]
path = "/tool/*"
alias = "FOLDER/tool"
[[location]]
path = "/other/*"
alias = "FOLDER/other"
"#
    );
    let server = site.server(&config).start();
    for target in [
        "/tool/private/a.txt",
        "/tool/in.txt",
        "/tool/in/a.txt",
        "/tool/in.php",
        "/tool/in.php/x.png",
        "/other/across.txt",
        "/tool/root.txt",
        "/storage/closed/a.txt",
        "/storage/open/link.txt",
        "/shortcut/a.txt",
        "/short.txt",
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 403, "{target}: {}", response.text());
    }
    for (target, text) in [
        ("/tool/js/a.js", "js"),
        ("/tool/fine.js", "js"),
        ("/other/a.txt", "other"),
        ("/storage/open/a.txt", "open"),
        ("/allowed.txt", "data"),
    ] {
        assert_eq!(server.get(target).text(), text, "{target}");
    }
    // Files listed in `deny_files` are absent under each of their names.
    for target in [
        "/data/a.txt",
        "/data.txt",
        "/data.php",
        "/data/run.php",
        "/storage/hidden/a.txt",
        "/hid/a.txt",
    ] {
        assert!(server.get(target).text().starts_with("app "), "{target}");
    }
}

#[test]
fn alias_serves_other_folder() {
    let site = Site::new();
    let server = site.server(LOCATIONS).start();
    let shown = server.get("/tools/db/");
    assert_eq!(shown.text(), "tool /tools/db/index.php own");
    assert_eq!(server.get("/tools/db").header("location"), Some("/tools/db/"));
    std::os::unix::fs::symlink("/etc/hostname", site.path("tool/out.txt")).expect("a link");
    assert_eq!(server.get("/tools/db/out.txt").status, 403);
    assert_eq!(server.get("/tools/db/%2e%2e/site/index.php").status, 200);
    assert!(server.get("/tools/db/%2e%2e/site/index.php").text().starts_with("app "));
}

const PAGES: &str = r#"
[[location]]
host = "old.example"
redirect = "https://new.example/*"
path = "/*"
status = 308

[[location]]
path = "/spa/*"
fallback = "/app.html"

[[location]]
path = "*.html"
headers = { Cache-Control = "no-cache" }

[[location]]
path = "/api/*"
fallback = "none"
error_pages = {}

[[location]]
headers = { X-Frame-Options = "DENY", X-Powered-By = "", Cache-Control = "max-age=9" }
error_pages = { 404 = "FOLDER/errors/404.html" }

[[location]]
path = "/closed/*"
deny = true
"#;

fn ask(server: &Server, host: &str, target: &str) -> Response {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut client: Client = server.client();
    client.send(request.as_bytes());
    client.read(false)
}

#[test]
fn location_hosts_fallback_pages_and_headers_apply() {
    let site = Site::new();
    let server = site.server(PAGES).start();
    for host in ["old.example", "OLD.example:8080", "old.example."] {
        let moved = ask(&server, host, "/a/b?c");
        assert_eq!(moved.status, 308, "{host}");
        assert_eq!(moved.header("location"), Some("https://new.example/a/b?c"));
    }
    // The cached decision for one host does not apply to another.
    assert_eq!(ask(&server, "other.example", "/a/b?c").status, 200);
    assert_eq!(ask(&server, "old.example", "/a/b?c").status, 308);
    let page = server.get("/spa/any/where");
    assert_eq!((page.status, page.text().as_str()), (200, "the page"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    let app = server.get("/");
    assert_eq!(app.header("x-powered-by"), None);
    assert_eq!(app.header("cache-control"), Some("max-age=9"));
    let missing = server.get("/api/none");
    assert_eq!((missing.status, missing.text().as_str()), (404, "our own 404"));
    assert_eq!(missing.header("content-type"), Some("text/html"));
    assert_eq!(missing.header("x-frame-options"), Some("DENY"));
    assert_eq!(missing.header("cache-control"), None, "an error is not kept");
    let head = server.client().request(&Request::new("HEAD", "/api/none"));
    assert_eq!(head.header("content-length"), Some("11"));
    assert_eq!(server.get("/closed/a").status, 403);
}

#[test]
fn reload_applies_changed_locations() {
    let site = Site::new();
    let server = site.server("").start();
    let file = server.folder().join("samovar.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("our own file");
    assert_eq!(server.get("/a.css").status, 200);
    write("[[location]]\npath = \"*.css\"\ndeny = true\n");
    server.reload().expect("it reloads");
    assert_eq!(server.get("/a.css").status, 403);
    write("[[location]]\npath = \"css\\\\.[a-z]+/\"\ndeny = true\n");
    let said = server.reload().expect_err("it refuses");
    assert!(said.contains("samovar.toml:2: `path` of a `[[location]]` is not allowed"), "{said}");
    assert_eq!(server.get("/a.css").status, 403, "the old rules hold");
}

#[test]
fn routes_command_explains_decision() {
    let site = Site::new();
    let config = site.path("samovar.toml");
    let folder = site.folder.path().display().to_string();
    let text = format!("root = \"site\"\n{}", LOCATIONS.replace("FOLDER", &folder));
    std::fs::write(&config, text).expect("our own file");
    let routes = |url: &str, extra: &[&str]| {
        let mut command = Command::new(binary());
        command.args(["routes", url, "--config"]).arg(&config).args(extra);
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text, _) = routes("https://a.example/uploads/%65vil.php?x", &[]);
    assert_eq!(code, Some(0));
    let file = config.display();
    assert_eq!(
        text,
        format!(
            "host     a.example\npath     /uploads/%65vil.php\n         normalized to \
             /uploads/evil.php\nmatch    {file}:7\nrule     {file}:7: no PHP scripts\nresponse \
             403, rejected: PHP scripts disabled by the location in line 7\n"
        )
    );
    let (_, text, _) = routes("/tools/db/js/a.js", &["--json"]);
    assert!(text.contains("\"tables\":[11]") && text.contains("/tool/js/a.js"), "{text}");
    let (code, _, said) = routes("no-path", &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("hint: pass /a/b"), "{said}");
}

#[test]
fn invalid_location_is_refused_at_start() {
    let site = Site::new();
    for (table, said) in [
        ("path = \"/a/*\"", "the table has no settings for these paths"),
        ("path = \"a/b\"\ndeny = true", "a path begins with `/`"),
        ("path = \"/a?b\"\ndeny = true", "queries are not compared"),
        ("path = \"/%61\"\ndeny = true", "paths are compared decoded"),
        ("path = []\ndeny = true", "the list is empty"),
        ("host = \"a:80\"\ndeny = true", "it must be a name without scheme and port"),
        ("path = \"/a/*\"\nalias = \"/no/such\"", "there is no such folder"),
        ("path = \"/a*\"\nalias = \"/\"", "`path` does not name a folder"),
        ("path = \"/a\"\nredirect = \"//b\"", "`redirect` takes a path such as"),
        ("path = \"/a/*\"\nredirect = \"/a/b\"", "it redirects to itself"),
        ("path = \"/a\"\nredirect = \"/b/*\"", "not every `path` has one `*`"),
        ("path = \"/a\"\nredirect = \"/b\"\nstatus = 200", "`status` takes 301"),
        ("path = \"/a\"\ndeny = true\nstatus = 301", "there is no `redirect`"),
        ("path = \"/a\"\nredirect = \"/b\"\nstatus = 410", "it is not the status of a redirect"),
        ("path = \"/a\"\nstatus = 410\nalias = \"/\"", "the other keys would have no effect"),
        ("variables = { HTTP_HOST = \"a\" }", "are reserved for client data"),
        ("variables = { SCRIPT_FILENAME = \"/a\" }", "the server sets one of them itself"),
        ("body_bytes_max = \"many\"", "`body_bytes_max` takes a number of bytes"),
        ("path = \"/a\"\ndeny = true\nscripts = false", "the other keys would have no effect"),
        ("headers = { Content-Length = \"1\" }", "the server sets one of them itself"),
        ("headers = { A = \"b\\r\\nc: d\" }", "a value is longer"),
        ("error_pages = { 404 = \"/no/such\" }", "there is no such file"),
        ("error_pages = { 200 = \"/no/such\" }", "a status is a number from 400"),
        ("fallback = \"app.html\"", "it is not the path of a file"),
        ("index = [\"a/b\"]", "a file name has no `/`"),
        ("pfad = \"/a\"\ndeny = true", "unknown key `location.pfad`"),
    ] {
        let (code, log) = site.server(&format!("[[location]]\n{table}")).refuse();
        assert_eq!(code, Some(2), "{table}: {log}");
        assert!(log.contains(said) && log.contains("hint: "), "{table}: {log}");
    }
    let (_, log) = site.server("[location]\npath = \"/a\"").refuse();
    assert!(log.contains("hint: begin each of them with a line `[[location]]`"), "{log}");
}

#[test]
fn root_given_by_symlink_keeps_location_rules() {
    let site = Site::new();
    let link = site.path("current");
    std::os::unix::fs::symlink(site.path("site"), &link).expect("a link");
    let server = Server::at(Path::new(&link)).workers(1);
    let server = server.config("[[location]]\npath = \"/secret/*\"\ndeny = true").start();
    std::os::unix::fs::symlink("secret/a.txt", site.path("site/open.txt")).expect("a link");
    assert_eq!(server.get("/open.txt").status, 403);
    assert_eq!(server.get("/a.css").text(), "css");
}
