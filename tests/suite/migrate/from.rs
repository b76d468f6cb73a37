//! `samovar migrate from`: samples of configuration, hostile files, and one application that nginx
//! with php-fpm and the converted settings serve in the same way.

use super::{migrate, text};
use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Certificate, Oracle, Server, binary, family, workspace};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

fn sample(name: &str) -> String {
    let file = workspace().join("tests/suite/migrate/samples").join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Name of this user or of its group.
fn own(flag: &str) -> String {
    let output = Command::new("id").arg(flag).output().expect("id runs");
    text(&output.stdout).trim().to_owned()
}

/// A folder with an application and copies of samples.
fn folder_with(samples: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for below in ["public", "second", "files", "share/tool", "uploads", "bin"] {
        fs::create_dir_all(path.join(below)).expect("our own folder");
    }
    for file in [
        "public/index.php",
        "public/worker.php",
        "public/frankenphp-worker.php",
        "public/404.html",
        "public/50x.html",
        "second/app.php",
        "share/tool/index.php",
        "bin/console",
    ] {
        fs::write(path.join(file), "<?php echo 1;").expect("our own file");
    }
    let (user, group) = (own("-un"), own("-gn"));
    for (name, file) in samples {
        let text = sample(name).replace("FOLDER", &path.display().to_string());
        let text = text.replace("USER", &user).replace("GROUP", &group);
        let target = path.join(file);
        fs::create_dir_all(target.parent().expect("a folder")).expect("our own folder");
        fs::write(target, text).expect("our own file");
    }
    folder
}

/// Runs `samovar check` with the written file, at another address.
fn check(folder: &Path) {
    let mut command = Command::new(binary());
    command.args(["check", "--allow-root", "--listen", "127.0.0.1:0"]).current_dir(folder);
    command.env_clear().env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.output().expect("the binary runs");
    let settings = fs::read_to_string(folder.join("samovar.toml")).unwrap_or_default();
    assert!(
        output.status.success(),
        "{}{}\n{settings}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// Converts samples, checks the result, and compares parts of it.
fn converted(samples: &[(&str, &str)], settings: &[&str], notes: &[&str]) {
    let folder = folder_with(samples);
    let path = folder.path();
    let has_tls = samples.iter().any(|(name, _)| name.starts_with("symfony.nginx"));
    if has_tls {
        Certificate::own(path, "site", "DNS:shop.example");
    }
    let mut args = vec!["from"];
    args.extend(samples.iter().map(|(_, file)| *file));
    args.extend(["--output", "samovar.toml"]);
    let output = migrate(path, &args);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let toml = fs::read_to_string(path.join("samovar.toml")).expect("the written file");
    let lines: Vec<&str> = toml.lines().filter(|line| !line.starts_with('#')).collect();
    let plain = lines.join("\n");
    let here = path.display().to_string();
    for part in settings {
        let part = part.replace("FOLDER", &here);
        let text = if part.contains('#') { &toml } else { &plain };
        assert!(text.contains(&part), "{part} is not in\n{toml}\n{stderr}");
    }
    for part in notes {
        assert!(stderr.contains(part), "{part} is not in\n{stderr}\n{toml}");
    }
    assert!(!stderr.contains("to be changed"), "{stderr}\n{toml}");
    assert!(!stderr.contains("not accepted"), "{stderr}\n{toml}");
    let long = toml.lines().find(|line| line.chars().count() > 160 && line.starts_with('#'));
    assert_eq!(long, None);
    check(path);
}

#[test]
fn migrate_from_nginx_and_pool_of_symfony_writes_all_settings() {
    let samples = [("symfony.nginx.conf", "shop.conf"), ("symfony.pool.conf", "pool.conf")];
    converted(
        &samples,
        &[
            "# shop.conf:13: root FOLDER/public;\nroot = \"FOLDER/public\"",
            "\"https://:443\", \"https://[::]:443\", \":80?redirect\", \"[::]:80?redirect\"",
            "# pool.conf:13: pm.min_spare_servers = 2\nmin = 2\n",
            "max = 12\n",
            "[limits]\n# shop.conf:20: client_max_body_size 32m;\nbody_bytes_max = \"32M\"\n",
            "requests_max = 1000\n",
            "open_files = 4096\n",
            "memory_limit = \"256M\"\n",
            "date.timezone = \"Europe/Berlin\"\n",
            "expose_php = false\n",
            "idle = \"30s\"\n",
            "response = \"2m\"\n",
            "request = \"1m\"\n",
            "slow_request = \"3s\"\n",
            "slow_log = \"FOLDER/slow.log\"\n",
            "certificates = [\"FOLDER/site.pem\"]",
            "keys = [\"FOLDER/site.key\"]",
            "min_version = \"1.2\"",
            "path = \"*.php\"\ndeny = true\n",
            "path = \"/index.php/*\"\n",
            "Strict-Transport-Security = \"max-age=31536000\"",
            "variables = { APP_ENV = \"prod\" }",
            "APP_SECRET_FILE = \"/run/secrets/app\"",
        ],
        &["pool.conf:16: differs: pm.status_path"],
    );
}

#[test]
fn migrate_from_nginx_of_wordpress_lists_lines_without_counterpart() {
    converted(
        &[("wordpress.nginx.conf", "nginx.conf")],
        &[
            "listen = [\":8080\"]",
            "codings = [\"gzip\"]",
            "bytes_min = \"512\"",
            "path = \"/favicon.ico\"\naccess_log = false\n",
            "path = [\"/*/uploads/*\", \"/uploads/*\", \"/*/files/*\", \"/files/*\"]\n\
             scripts = false\n",
            "headers = { Cache-Control = \"max-age=315360000\" }",
            "path = \"/feed/atom/*\"\nredirect = \"/feed/*\"\n",
            "index = [\"index.php\"]",
            "path = \"*.php\"\nfallback = \"none\"\n",
        ],
        &[
            "nginx.conf:20: no counterpart: limit_req_zone",
            "limits.client_share",
            "nginx.conf:22: no counterpart: map",
            "no conditions",
        ],
    );
}

#[test]
fn migrate_from_nginx_of_frameworks_passes_check() {
    converted(
        &[("laravel.nginx.conf", "laravel.conf")],
        &[
            "listen = [\":8081\"]",
            "X-Frame-Options = \"SAMEORIGIN\", X-Content-Type-Options = \"nosniff\"",
            "X-Powered-By = \"\"",
        ],
        &["charset utf-8"],
    );
    converted(
        &[("mediawiki.nginx.conf", "wiki.conf")],
        &[
            "path = \"/wiki/*\"\n",
            "fallback = \"/w/index.php\"\n",
            "path = \"/w/images/deleted*\"\ndeny = true\n",
            "path = \"/\"\nredirect = \"/wiki/Main_Page\"\n",
            "Cache-Control = \"public, max-age=604800\"",
        ],
        &[],
    );
    converted(
        &[("drupal.nginx.conf", "drupal.conf")],
        &["path = \"/sites/*/private/*\"\ndeny = true\n", "\"*.tpl.php\"", "\"*.yml\""],
        &["drupal.conf:"],
    );
}

#[test]
fn migrate_from_two_sites_writes_pools() {
    converted(
        &[("tools.nginx.conf", "nginx.conf"), ("tools.pools.conf", "php-fpm.conf")],
        &[
            "[[pool]]\nname = \"second.example\"\n",
            "host = [\"second.example\", \"second.test\", \"*.second.test\"]\n",
            "root = \"FOLDER/second/app.php\"\n",
            "workers = 3\n",
            "[pool.php]\n",
            "memory_limit = \"128M\"\n",
            "idle_max = \"30s\"\n",
            "path = \"/tool/*\"\n",
            "alias = \"FOLDER/share/tool\"",
            "[sendfile]\n",
            "\"/protected/\" = \"FOLDER/files\"",
            "alias = \"FOLDER/files\"",
            "body_bytes_max = \"1G\"",
            "redirect = \"http://first.example/*\"",
            "status = 302\n",
            "trusted_proxies = [\"10.0.0.0/8\"]",
            "drain = \"20s\"",
            "log = \"FOLDER/fpm.log\"",
        ],
        &["proxy_pass", "write it in PHP", "auth_basic", "no site uses the pool", "autoindex"],
    );
}

#[test]
fn migrate_from_pool_alone_listens_for_web_server() {
    converted(
        &[("symfony.pool.conf", "pool.conf")],
        &[
            "listen = [\"fcgi-unix:/run/php/shop.sock?mode=0660\"]",
            "status_path = \"/status\"",
            "ping_path = \"/ping\"",
        ],
        &["set `root` to the document root"],
    );
}

#[test]
fn migrate_from_roadrunner_converts_http_and_lists_plugins() {
    converted(
        &[("rr.rr.yaml", ".rr.yaml")],
        &[
            "root = \"FOLDER/public/worker.php\"",
            "compat = \"frankenphp\"",
            "listen = [\"127.0.0.1:8085\"]",
            "min = 4\n",
            "max = 16\n",
            "requests_max = 500\n",
            "age_max = \"1h\"\n",
            "memory_max = \"128M\"\n",
            "request = \"1m\"\n",
            "body_bytes_max = \"32M\"\n",
            "upload_tmp_dir = \"FOLDER/uploads\"\n",
            "X-Powered-By = \"\", X-Frame-Options = \"DENY\"",
            "[[console]]\n",
            "command = \"messenger:consume async\"",
            "count = 2",
            "admin = \"127.0.0.1:2114\"",
        ],
        &["use a [[queue]]", "Samovar\\Cache", "answer CORS requests in PHP"],
    );
}

#[test]
fn migrate_from_caddyfile_converts_sites_and_workers() {
    converted(
        &[("laravel.Caddyfile", "Caddyfile")],
        &[
            "root = \"FOLDER/public/frankenphp-worker.php\"",
            "listen = [\":8086\"]",
            "workers = 6",
            "memory_limit = \"256M\"",
            "opcache.enable = true",
            "codings = [\"zstd\", \"br\", \"gzip\"]",
            "path = [\"*.css\", \"*.js\", \"*.png\"]",
            "Cache-Control = \"public, max-age=604800\"",
            "path = \"/private/*\"\ndeny = true\n",
            "path = \"/media/*\"\n",
            "alias = \"FOLDER/files\"",
            "body_bytes_max = \"20M\"",
            "variables = { APP_NAME = \"notes\" }",
            "header = \"20s\"",
            "access_log = \"FOLDER/access.log\"",
        ],
        &["reverse_proxy", "rate_limit", "the matcher has no counterpart"],
    );
    converted(
        &[("simple.Caddyfile", "Caddyfile")],
        &["root = \"FOLDER/public\"", "codings = [\"gzip\"]", "listen = [\"127.0.0.1:8080\"]"],
        &["no local authority"],
    );
}

#[test]
fn migrate_from_octane_and_htaccess_passes_check() {
    converted(
        &[("laravel.octane", "config/octane.php")],
        &[
            "root = \"FOLDER/public\"",
            "request = \"30s\"",
            "body_bytes_max = \"20M\"",
            "drain = \"15s\"",
            "codings = [\"gzip\"]",
        ],
        &["Samovar\\Table", "reactor_num"],
    );
    converted(
        &[("front.htaccess", "public/.htaccess")],
        &[
            "root = \"FOLDER/public\"",
            "path = \"/old/*\"\nredirect = \"/new/*\"\n",
            "path = [\"/vendor/*\", \"/var/*\"]\ndeny = true\n",
            "path = \"/forum/*\"\nstatus = 410\n",
            "path = [\"*.sql\", \"*.bak\", \"*.dist\"]\n",
            "path = \"wp-config.php\"\n",
            "host = \"www.shop.example\"",
            "redirect = \"https://shop.example/*\"",
            "X-Frame-Options = \"DENY\", X-Powered-By = \"\"",
            "404 = \"FOLDER/public/404.html\"",
            "upload_max_filesize = \"32M\"",
            "display_errors = false",
            "path = \"/a.html\"\nredirect = \"/b.html\"\n",
        ],
        &["no counterpart: ExpiresByType", "no counterpart: AuthType Basic"],
    );
}

#[test]
fn migrate_from_prints_json_and_never_overwrites() {
    let folder = folder_with(&[("laravel.nginx.conf", "site.conf")]);
    let path = folder.path();
    let output = migrate(path, &["from", "site.conf", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let settings = document["settings"].as_array().expect("settings");
    let root = settings.iter().find(|setting| setting["key"] == "root").expect("root");
    assert_eq!(root["sources"][0]["line"], 4);
    assert_eq!(root["sources"][0]["file"], "site.conf");
    let notes = document["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note["level"] == "missing" && note["line"] == 10), "{notes:?}");

    fs::write(path.join("samovar.toml"), "# mine\n").expect("our own file");
    let refused = migrate(path, &["from", "site.conf", "--output", "samovar.toml"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("hint: pass --force"), "{}", text(&refused.stderr));
    let mine = fs::read_to_string(path.join("samovar.toml")).expect("our own file");
    assert_eq!(mine, "# mine\n");
    let forced = migrate(path, &["from", "site.conf", "--output", "samovar.toml", "--force"]);
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced.stderr));
    check(path);
    for args in [
        &["from"][..],
        &["from", "site.conf", "--fix"],
        &["check", "--json"],
        &["rules", "--output", "x"],
    ] {
        let refused = migrate(path, args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains("hint: "), "{args:?}: {}", text(&refused.stderr));
    }
}

/// Each file gives an error with a hint, or settings; never a panic.
#[test]
fn migrate_from_hostile_files_gives_clear_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let deep = "a { ".repeat(10_000);
    let flow = "[".repeat(10_000);
    let php = format!("<?php return {};", "[".repeat(100_000));
    let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nhttp: {address: *b}\n";
    let cases: &[(&str, &[u8], &str)] = &[
        ("nginx.conf", b"server { listen 80;", "nginx.conf:1: a block has no `}`"),
        ("nginx.conf", b"server { } }", "closes no block"),
        ("nginx.conf", b"listen 80", "has no `;`"),
        ("nginx.conf", b"a \"b", "a quoted word has no end"),
        ("nginx.conf", b"server { root /a\0b; }", "nginx.conf:1: a NUL byte"),
        ("nginx.conf", b"#\n#\xff\xfe\n", "nginx.conf:2: a byte that is not UTF-8"),
        ("nginx.conf", deep.as_bytes(), "nested more than 32 deep"),
        ("nginx.conf", b"include nginx.conf;", "includes itself"),
        ("nginx.conf", b"x_by_lua_block { \"", "a block of code has no end"),
        ("nginx.conf", b"{", "a directive has no name"),
        ("pool.conf", b"[www\n", "a section has no `]`"),
        ("pool.conf", b"[www]\nlisten\n", "pool.conf:2: a line has no `=`"),
        ("pool.conf", b"[www]\ninclude = pool.conf\n", "include each other"),
        (".rr.yaml", b"a: [", "hint: "),
        (".rr.yaml", b"a: b\n c: d\n\t- x", "hint: "),
        (".rr.yaml", b"", "the file has no settings"),
        (".rr.yaml", flow.as_bytes(), "hint: "),
        ("Caddyfile", b":80 {\n", "a block has no `}`"),
        ("Caddyfile", b"}\n", "closes no block"),
        ("Caddyfile", b"(a) {\nimport a\n}\n:80 {\nimport a\n}\n", "in a circle"),
        ("Caddyfile", b":80 {\nrespond `\n}", "a quoted word has no end"),
        ("octane.php", b"<?php return [", "syntax error"),
        ("octane.php", b"<?php echo 1;", "returns no array"),
        ("octane.php", php.as_bytes(), "hint: "),
        (".htaccess", b"<IfModule x>\n", "<ifmodule> has no end"),
        (".htaccess", b"</Files>\n", "closes no section"),
        ("unknown", b"hello", "cannot infer the format"),
    ];
    for (name, content, message) in cases {
        fs::write(path.join(name), content).expect("our own file");
        let output = migrate(path, &["from", name]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name} {message}: {stderr}");
        assert!(stderr.contains(message) && stderr.contains("hint: "), "{message}: {stderr}");
    }
    for (name, content) in [
        (
            "nginx.conf",
            "server { listen 80; root /x$y; if ($a) { return 1; } location ~ (((( { } }",
        ),
        ("nginx.conf", "server{listen 99999999999999999999;client_max_body_size 9999999999999g;}"),
        (
            "nginx.conf",
            "server { root \"/a\\\"b'c\"; add_header \"a b\" \"\u{1}\u{7f}é\"; return 301 $; }",
        ),
        ("nginx.conf", "user \"a\u{1}b\";http{server{listen [::;server_name *.x;location = {}}}"),
        (
            "pool.conf",
            "[www]\npm = dynamic\npm.max_children = 0\n\
             php_value[] = x\nphp_value[a..b] = \"\\u\"\n",
        ),
        (".rr.yaml", laughs),
        ("Caddyfile", "{$X} {\n}\n"),
        ("Caddyfile", "a.example {\nredir {x}\nheader {\n}\nroot\nhandle\ntls a b c\n}\n"),
        (
            ".htaccess",
            "RewriteRule\nHeader\nRedirect\nErrorDocument\n<Files>\n</Files>\nphp_value\n",
        ),
        (
            "octane.php",
            "<?php return ['max_execution_time' => 99999999999999999999, 'x' => fn() => 1];",
        ),
    ] {
        fs::write(path.join(name), content).expect("our own file");
        let output = migrate(path, &["from", name]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {content}\n{stderr}");
    }
    let large = fs::File::create(path.join("nginx.conf")).expect("our own file");
    large.set_len(100 << 20).expect("a sparse file");
    let output = migrate(path, &["from", "nginx.conf"]);
    assert!(text(&output.stderr).contains("is larger than 4 MiB"), "{}", text(&output.stderr));
    let missing = migrate(path, &["from", "/dev/zero"]);
    assert!(text(&missing.stderr).contains("it is not a file"), "{}", text(&missing.stderr));
}

const PAGE: &str = r"<?php
header('Content-Type: text/plain');
$names = ['REQUEST_METHOD', 'REQUEST_URI', 'SCRIPT_NAME', 'QUERY_STRING', 'SHOP_CODE', 'SHOP_MODE'];
foreach ($names as $name) {
    echo $name, '=', $_SERVER[$name] ?? '-', PHP_EOL;
}
echo getenv('SHOP_MODE'), ' ', ini_get('memory_limit'), ' ', ini_get('post_max_size'), PHP_EOL;
echo strlen(file_get_contents('php://input')), PHP_EOL;
if (str_starts_with($_SERVER['REQUEST_URI'], '/missing')) {
    http_response_code(404);
}
";

/// The application that both servers serve.
fn shop(app: &Path) {
    for (file, content) in [
        ("public/index.php", PAGE),
        ("public/info.php", PAGE),
        ("public/uploads/evil.php", PAGE),
        ("public/uploads/a.txt", "uploaded"),
        ("public/folder/index.html", "a folder"),
        ("public/style.css", "a { }"),
        ("public/vendor/a.txt", "private"),
        ("public/vendor/public/b.txt", "not private"),
        ("public/plain/a.txt", "plain"),
        ("public/404.html", "not here"),
        ("documents/a.txt", "a document"),
    ] {
        let file = app.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("our own folder");
        fs::write(file, content).expect("our own file");
    }
}

fn ask(address: SocketAddr, request: &Request) -> Response {
    Client::connect(address).request(request)
}

#[test]
fn converted_settings_give_same_responses_as_nginx_and_php_fpm() {
    let app = tempfile::tempdir().expect("a folder");
    shop(app.path());
    let here = app.path().display().to_string();
    let nginx = sample("shop.nginx.conf").replace("APP", &here);
    let oracle = Oracle::configured(&nginx, &sample("shop.pool.conf"));
    let target = app.path().join("samovar.toml");
    let (files, target_text) = (oracle.folder(), target.display().to_string());
    let output = migrate(files, &["from", "nginx.conf", "fpm.conf", "--output", &target_text]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let settings = fs::read_to_string(&target).expect("the written file");
    let server = Server::at(app.path().join("public")).config(&settings).plain_ini().start();

    let mut wrong = String::new();
    for target in [
        "/",
        "/any/page?a=1&b=2",
        "/index.php",
        "/info.php?x",
        "/missing/page",
        "/missing.php",
        "/folder/",
        "/folder",
        "/style.css",
        "/nothing.css",
        "/uploads/a.txt",
        "/uploads/evil.php",
        "/uploads/other.php",
        "/vendor/a.txt",
        "/vendor/public/b.txt",
        "/vendor/",
        "/vendor/none/a",
        "/docs/a.txt",
        "/docs/none.txt",
        "/plain/a.txt",
        "/plain/none.txt",
        "/gone",
        "/blog",
        "/old/a/b?c=d",
        "/old/",
    ] {
        let request = Request::get(target);
        compare(
            &ask(oracle.address(), &request),
            &ask(server.address(), &request),
            target,
            &mut wrong,
        );
    }
    let body = vec![b'x'; 5000];
    for (target, length) in [("/", 100), ("/", 5000)] {
        let request = Request::post(target, "text/plain", &body[..length]);
        let name = format!("POST {target} {length}");
        compare(
            &ask(oracle.address(), &request),
            &ask(server.address(), &request),
            &name,
            &mut wrong,
        );
    }
    assert!(wrong.is_empty(), "{wrong}\n{settings}");
}

/// Compares status, main headers, and the body unless both servers write their own error page.
fn compare(nginx: &Response, samovar: &Response, name: &str, wrong: &mut String) {
    let mut differ = |what: &str, nginx: &str, samovar: &str| {
        if nginx != samovar {
            let _ = writeln!(wrong, "{name}: {what}: nginx `{nginx}`, Samovar `{samovar}`");
        }
    };
    differ("status", &nginx.status.to_string(), &samovar.status.to_string());
    let is_own_page = nginx.text().contains("<center>nginx");
    let names = ["Location", "Cache-Control", "X-Frame-Options"];
    for header in names {
        let value = |response: &Response| response.header(header).unwrap_or("-").to_owned();
        differ(header, &value(nginx), &value(samovar));
    }
    if !is_own_page {
        differ("body", &nginx.text(), &samovar.text());
        let kind = |response: &Response| {
            let kind = response.header("Content-Type").unwrap_or("-");
            kind.split(';').next().unwrap_or_default().to_owned()
        };
        differ("Content-Type", &kind(nginx), &kind(samovar));
    }
}
