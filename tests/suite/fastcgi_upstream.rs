//! `fastcgi_pass`: the scripts of some locations run in an existing php-fpm, with the same results
//! as behind nginx.

mod addresses;
mod faults;
mod several;
mod strangers;

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Fpm, Nginx, Oracle, Server, Start, binary, eventually};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A script with many kinds of responses. nginx with php-fpm and Samovar serve the same file.
const OLD: &str = r#"<?php
switch ($_GET['do'] ?? '') {
    case 'server':
        header('Content-Type: application/json');
        ksort($_SERVER);
        echo json_encode($_SERVER, JSON_INVALID_UTF8_SUBSTITUTE);
        break;
    case 'echo':
        $body = file_get_contents('php://input');
        echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['CONTENT_LENGTH'], ' ',
            strlen($body), ' ', md5($body);
        break;
    case 'files':
        $files = array_map(fn($f) => [$f['name'], $f['size'], md5_file($f['tmp_name'])], $_FILES);
        echo json_encode([$_POST, $files]);
        break;
    case 'status':
        http_response_code((int) $_GET['code']);
        echo 'body';
        break;
    case 'location':
        header('Location: /elsewhere', true, (int) ($_GET['code'] ?? 302));
        break;
    case 'headers':
        header('X-Two: a');
        header('X-Two: b', false);
        setcookie('a', 'b');
        setcookie('c', 'd');
        header('Connection: close');
        echo 'headers';
        break;
    case 'long':
        for ($i = 0; $i < 200; $i++) {
            echo str_repeat(chr(97 + $i % 26), 50_000);
        }
        break;
    case 'length':
        header('Content-Length: ' . (int) $_GET['bytes']);
        echo 'ten bytes!';
        break;
    case 'flush':
        while (ob_get_level()) {
            ob_end_clean();
        }
        echo 'first ';
        flush();
        while (!file_exists($_GET['gate'])) {
            usleep(2000);
            clearstatcache();
        }
        echo 'second';
        break;
    case 'wait':
        while (!file_exists($_GET['gate'])) {
            usleep(2000);
            clearstatcache();
        }
        echo 'waited';
        break;
    case 'pid':
        echo getmypid();
        break;
    case 'kill':
        if ($_GET['after'] ?? false) {
            while (ob_get_level()) {
                ob_end_clean();
            }
            echo str_repeat('x', 100_000);
            flush();
        }
        posix_kill(getmypid(), 9);
        break;
    case 'many':
        for ($i = 0; $i < 1000; $i++) {
            header("X-$i: " . str_repeat('x', 100));
        }
        echo 'many';
        break;
    case 'log':
        error_log("said\nby the script");
        echo 'logged';
        break;
    case 'nothing':
        while (ob_get_level()) {
            ob_end_clean();
        }
        echo 'not read';
        break;
    default:
        echo class_exists('Samovar\Request', false) ? 'new' : 'old', ' ', $_SERVER['REQUEST_URI'],
            ' ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';
}
"#;
const NEW: &str = r"<?php
echo class_exists('Samovar\Request', false) ? 'new' : 'old', ' ', $_SERVER['REQUEST_URI'];
";

/// A site with the folder `/old`, which php-fpm still serves.
fn site() -> TempDir {
    let root = TempDir::with_prefix("samovar-passing-").expect("a folder");
    // php-fpm's children may run as another user.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path(), open).expect("our own folder");
    std::fs::create_dir(root.path().join("old")).expect("our own folder");
    for (name, text) in
        [("index.php", NEW), ("old/index.php", OLD), ("old/page.txt", "a page"), ("old/b.php", NEW)]
    {
        std::fs::write(root.path().join(name), text).expect("our own folder");
    }
    root
}

fn locations(address: &str) -> String {
    format!(
        "[[location]]\npath = \"/old/*\"\nfallback = \"/old/index.php\"\n\
         fastcgi_pass = \"{address}\"\n"
    )
}

fn server(root: &Path, address: &str) -> Start {
    Server::at(root).workers(2).config(&locations(address))
}

/// A complete setup: site, php-fpm and server.
struct Passing {
    root: TempDir,
    fpm: Fpm,
    server: Server,
}

impl Passing {
    fn start(children: usize, change: impl FnOnce(Start) -> Start) -> Passing {
        let (root, fpm) = (site(), Fpm::start(children, ""));
        let server = change(server(root.path(), &fpm.address())).start();
        Passing { root, fpm, server }
    }

    fn get(&self, target: &str) -> Response {
        self.server.get(target)
    }

    /// Count of failures with this reason.
    fn trouble(&self, name: &str) -> u64 {
        trouble(&self.server, name)
    }

    /// Path of a file that scripts wait for.
    fn gate(&self, name: &str) -> String {
        self.root.path().join(name).display().to_string()
    }

    fn open(&self, name: &str) {
        std::fs::write(self.root.path().join(name), "").expect("our own folder");
    }

    fn in_use(&self) -> u64 {
        self.server.status()["upstream_connections"].as_u64().expect("a number")
    }
}

fn trouble(server: &Server, name: &str) -> u64 {
    server.status()["upstream_errors"][name].as_u64().expect("a number")
}

#[test]
fn scripts_of_fastcgi_location_run_in_php_fpm() {
    let site = Passing::start(2, |start| start.args(["--access-log", "-"]));
    for (target, expected) in [
        ("/", "new /"),
        ("/any/page", "new /any/page"),
        ("/older", "new /older"),
        ("/old/", "old /old/ /old/index.php "),
        ("/old/index.php", "old /old/index.php /old/index.php "),
        ("/old/index.php/a/b?c", "old /old/index.php/a/b?c /old/index.php /a/b"),
        ("/old/any/page?q=1", "old /old/any/page?q=1 /old/index.php "),
        ("/old/%6eot/\"odd\"", "old /old/%6eot/\"odd\" /old/index.php "),
        ("/old/b.php", "old /old/b.php"),
        ("/old/page.txt", "a page"),
    ] {
        let response = site.get(target);
        assert_eq!((response.status, response.text().as_str()), (200, expected), "{target}");
    }
    assert_eq!(site.server.status()["upstream_requests_total"], 6);
    let upstream = format!("upstream={}", site.fpm.address());
    eventually("the access log", || site.server.stdout().contains("/old/page.txt").then_some(()));
    let log = site.server.stdout();
    let passed: Vec<&str> = log.lines().filter(|line| line.contains(&upstream)).collect();
    assert_eq!(passed.len(), 6, "{log}");
    // A reload changes the routes without a restart.
    let config = site.server.folder().join("samovar.toml");
    std::fs::write(&config, "").expect("our own file");
    site.server.reload().expect("settings that can be used");
    assert_eq!(site.get("/old/b.php").text(), "new /old/b.php");
    std::fs::write(&config, locations(&site.fpm.address())).expect("our own file");
    site.server.reload().expect("settings that can be used");
    assert_eq!(site.get("/old/b.php").text(), "old /old/b.php");
}

/// `$_SERVER` without entries that differ between servers or requests.
fn told(response: &Response) -> Value {
    let mut told: Value = serde_json::from_slice(&response.body).expect("$_SERVER");
    let table = told.as_object_mut().expect("an array with keys");
    for key in [
        "SERVER_SOFTWARE",
        "SERVER_PORT",
        "REMOTE_PORT",
        "REQUEST_TIME",
        "REQUEST_TIME_FLOAT",
        // nginx's fastcgi_params have no such variable.
        "REQUEST_ID",
        // nginx sends its `server_name` here.
        "SERVER_NAME",
    ] {
        table.remove(key);
    }
    told
}

#[test]
fn php_receives_same_variables_as_behind_nginx() {
    let site = Passing::start(2, |start| start);
    let oracle = Oracle::start(site.root.path());
    for request in [
        Request::get("/old/index.php?do=server"),
        Request::get("/old/index.php/a/%62?do=server&q=%20"),
        Request::get("/old/index.php?do=server")
            .header("User-Agent", "a")
            .header("X-Odd-Name", "b, c")
            .header("X_Under", "score")
            .header("Proxy", "http://evil")
            .header("Cookie", "a=b; c=d")
            .header("Authorization", "Basic dTpw")
            .header("Php-Value", "auto_prepend_file=/etc/passwd"),
        Request::form("/old/index.php?do=server", "a=b"),
        Request::new("DELETE", "/old/index.php?do=server"),
        Request::new("PUT", "/old/index.php?do=server").body("abc"),
    ] {
        let (ours, theirs) =
            (site.server.client().request(&request), oracle.client().request(&request));
        assert_eq!(told(&ours), told(&theirs), "{request:?}");
    }
}

#[test]
fn upstream_responses_match_nginx() {
    let site = Passing::start(2, |start| start);
    let oracle = Oracle::start(site.root.path());
    let target = |what: &str| format!("/old/index.php?do={what}");
    let body = |bytes: usize| "0123456789abcdef".repeat(bytes / 16);
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\ntext\r\n--b\r\n\
                     Content-Disposition: form-data; name=\"f\"; filename=\"n.bin\"\r\n\r\n\
                     file\r\n--b--\r\n";
    for request in [
        Request::get(&target("status&code=404")),
        Request::get(&target("status&code=204")),
        Request::get(&target("status&code=304")),
        Request::get(&target("status&code=500")),
        Request::get(&target("status&code=299")),
        Request::get(&target("location")),
        Request::get(&target("location&code=301")),
        Request::get(&target("location&code=201")),
        Request::get(&target("headers")),
        Request::get(&target("long")),
        Request::get(&target("length&bytes=10")),
        Request::get(&target("length&bytes=3")),
        Request::get(&target("length&bytes=0")),
        Request::new("HEAD", &target("headers")),
        Request::new("HEAD", &target("long")),
        Request::new("HEAD", &target("length&bytes=10")),
        Request::new("OPTIONS", &target("echo")),
        Request::form(&target("echo"), "a=b"),
        Request::post(&target("echo"), "text/plain", body(64 * 1024)),
        Request::post(&target("echo"), "text/plain", body(200_000)),
        Request::new("PUT", &target("echo")).body(body(1_000_000)),
        Request::post(&target("nothing"), "text/plain", body(200_000)),
        Request::post(&target("files"), "multipart/form-data; boundary=b", multipart),
    ] {
        let (ours, theirs) =
            (site.server.client().request(&request), oracle.client().request(&request));
        let shown = |response: &Response| {
            let names = ["location", "x-two", "set-cookie", "content-type", "content-length"];
            let headers: Vec<_> = names
                .iter()
                .map(|name| response.all(name).iter().map(ToString::to_string).collect::<Vec<_>>())
                .collect();
            (response.status, headers, response.complete, response.body.len())
        };
        let (mut left, mut right) = (shown(&ours), shown(&theirs));
        if matches!(ours.status, 204 | 304 | 404) || request.method() == "HEAD" {
            // Lengths and types differ if there is no body, or if the body is the server's own.
            (left.1, right.1, left.3, right.3) = (vec![], vec![], 0, 0);
        } else {
            assert_eq!(ours.body == theirs.body, left.0 != 404, "{request:?}: {}", ours.text());
        }
        assert_eq!(left, right, "{request:?}");
    }
    // The length of a chunked body is known when all of it has arrived.
    let mut client = site.server.client();
    client.send(b"POST /old/?do=echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n");
    let response = client.read(false).text();
    assert!(response.starts_with("POST 7 7 "), "{response}");
}

#[test]
fn unbuffered_body_is_forwarded_as_it_arrives() {
    let site = Passing::start(2, |start| start.args(["--request-buffering", "false"]));
    let body = vec![b'x'; 300_000];
    let request = Request::new("PUT", "/old/?do=echo").body(body);
    assert!(site.server.client().request(&request).text().starts_with("PUT 300000 300000 "));
    let mut client = site.server.client();
    client.send(b"PUT /old/?do=echo HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\nabc");
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    client.send(b"def");
    assert!(client.read(false).text().starts_with("PUT 6 6 "));
    // A client that leaves in the middle ends its request.
    let mut client = site.server.client();
    client.send(b"PUT /old/?do=echo HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\n\r\nabc");
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    client.abort();
    eventually("its connection is closed", || (site.in_use() == 0).then_some(()));
}

#[test]
fn upstream_response_is_streamed() {
    let site = Passing::start(2, |start| start);
    let mut client = site.server.client();
    let target = format!("/old/?do=flush&gate={}", site.gate("gate"));
    client.send(&Request::get(&target).bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    assert_eq!(client.read_chunk().expect("a chunk").as_deref(), Some(&b"first "[..]));
    site.open("gate");
    assert_eq!(client.read_chunk().expect("a chunk").as_deref(), Some(&b"second"[..]));
    assert_eq!(client.read_chunk().expect("the end"), Some(vec![]));
    assert_eq!(client.get("/old/b.php").text(), "old /old/b.php", "the connection is kept");
}

#[test]
fn upstream_connection_is_kept_if_configured() {
    let site = Passing::start(1, |start| start.args(["--fastcgi-idle-connections-max", "1"]));
    for _ in 0..5 {
        assert_eq!(site.get("/old/b.php").text(), "old /old/b.php");
    }
    // A request that must not be sent twice does not use a kept connection. It still gets the only
    // process, which holds the kept connection.
    let form = Request::form("/old/?do=echo", "a=b");
    assert_eq!(site.server.client().request(&form).status, 200);
    // A connection that php-fpm has closed is not used.
    eventually("a process of php-fpm", || {
        let response = site.get("/old/?do=pid");
        let pid = response.text().parse::<i32>().ok()?;
        site.server.kill_worker(pid);
        Some(())
    });
    for _ in 0..5 {
        assert_eq!(site.get("/old/b.php").text(), "old /old/b.php");
    }
}

#[test]
fn upstream_response_is_equal_over_http2_and_compressed() {
    let site = Passing::start(2, |start| start);
    let url = |path: &str| format!("http://{}{path}", site.server.address());
    let curl = |args: &[&str]| {
        let output = Command::new("curl").args(["-sS", "-m", "60"]).args(args).output();
        String::from_utf8_lossy(&output.expect("curl runs").stdout).into_owned()
    };
    let long = url("/old/?do=long");
    let plain = curl(&["--http2-prior-knowledge", &long]);
    assert_eq!(plain.len(), 10_000_000);
    assert!(plain == curl(&["--http2-prior-knowledge", "--compressed", &long]));
    let echo = url("/old/?do=echo");
    let response = curl(&["--http2-prior-knowledge", "-d", "a=b", &echo]);
    assert!(response.starts_with("POST 3 3 "), "{response}");
}

#[test]
fn routes_command_names_upstream_and_check_rejects_bad_settings() {
    let (root, folder) = (site(), tempfile::tempdir().expect("a folder"));
    let config = folder.path().join("samovar.toml");
    let ask = |text: &str, command: &str, more: &[&str]| {
        std::fs::write(&config, text).expect("our own file");
        let output = Command::new(binary())
            .args([command, "--config"])
            .arg(&config)
            .args(more)
            .env_remove("SAMOVAR_CONFIG")
            .output()
            .expect("it runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let text = format!("root = {:?}\n{}", root.path(), locations("127.0.0.1:9000"));
    let said = ask(&text, "routes", &["/old/a"]);
    assert!(said.contains("scripts run by the php-fpm at 127.0.0.1:9000"), "{said}");
    assert!(said.contains("old/index.php, run by the php-fpm at 127.0.0.1:9000"), "{said}");
    assert!(!ask(&text, "routes", &["/new"]).contains("php-fpm"));
    let two = locations("127.0.0.1:9000\", \"php.example:9000").replace("= \"127", "= [\"127");
    let two = format!("root = {:?}\n{}]\n", root.path(), two.trim_end());
    let said = ask(&two, "routes", &["/old/a"]);
    assert!(said.contains("by the php-fpm at 127.0.0.1:9000 or php.example:9000"), "{said}");
    for (wrong, hint) in [
        ("fastcgi_pass = \"localhost\"", "not an IP address or name with a port"),
        ("fastcgi_pass = []", "the list is empty"),
        ("fastcgi_pass = [\"a:1\", \"127.0.0.1:1\", \"A:1\"]", "one of them is listed twice"),
        ("fastcgi_pass = \"unix:fpm.sock\"", "the path of a socket must be absolute"),
        ("fastcgi_pass = \"127.0.0.1:1\"\nscripts = false", "no script runs if"),
        ("fastcgi_pass = \"127.0.0.1:1\"\ndeny = true", "no effect"),
        ("fastcgi_root = \"/srv\"\nindex = [\"a.php\"]", "there is no `fastcgi_pass`"),
        ("fastcgi_pass = \"127.0.0.1:1\"\nfastcgi_root = \"srv\"", "an absolute path"),
    ] {
        let text = format!("root = {:?}\n[[location]]\npath = \"/old/*\"\n{wrong}\n", root.path());
        let said = ask(&text, "check", &[]);
        assert!(said.contains(hint), "{wrong}: {said}");
    }
}

/// php-fpm sees the folders under other paths, as in a container.
#[test]
fn fastcgi_root_changes_script_paths() {
    let site = Passing::start(2, |start| start);
    let elsewhere = TempDir::with_prefix("samovar-elsewhere-").expect("a folder");
    let seen = elsewhere.path().join("seen");
    std::os::unix::fs::symlink(site.root.path(), &seen).expect("our own folder");
    let config = format!("{}fastcgi_root = {seen:?}\n", locations(&site.fpm.address()));
    let server = Server::at(site.root.path()).workers(1).config(&config).start();
    let told = told(&server.get("/old/?do=server"));
    assert_eq!(told["SCRIPT_FILENAME"], format!("{}/old/index.php", seen.display()));
    assert_eq!(told["DOCUMENT_ROOT"], seen.display().to_string());
    assert_eq!(told["SCRIPT_NAME"], "/old/index.php");
}

/// php-fpm requires that each parameter fits completely into one record.
#[test]
fn parameters_longer_than_one_record_arrive() {
    let site = Passing::start(1, |start| start.args(["--head-bytes-max", "64K"]));
    let mut request = Request::get("/old/?do=server");
    for n in 0..20 {
        request = request.header(&format!("X-Long-{n}"), &n.to_string().repeat(1000));
    }
    // Together with the other parameters this exceeds one record.
    let rest = 65_300 - request.bytes().len();
    request = request.header("X-Longest", &"x".repeat(rest));
    let told = told(&site.server.client().request(&request));
    assert_eq!(told["HTTP_X_LONGEST"].as_str().map(str::len), Some(rest));
    assert_eq!(told["HTTP_X_LONG_19"], "19".repeat(1000));
    let request = Request::get("/old/").header("X-Longest", &"x".repeat(70_000));
    assert_eq!(site.server.client().request(&request).status, 431);
}

/// A web server in front that speaks FastCGI, and php-fpm as upstream. The received parameters are
/// forwarded, except those that would change PHP's settings.
#[test]
fn parameters_of_web_server_in_front_are_forwarded() {
    let site = Passing::start(2, |start| start);
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("f.sock").display().to_string();
    let start = server(site.root.path(), &site.fpm.address());
    let between = start.args(["--listen", &format!("fcgi-unix:{socket}")]).start();
    let nginx = Nginx::before(site.root.path(), &format!("unix:{socket}"));
    assert_eq!(nginx.get("/old/b.php?a=1").text(), "old /old/b.php?a=1");
    assert_eq!(nginx.get("/").text(), "new /");
    let oracle = Oracle::start(site.root.path());
    for request in [
        Request::get("/old/index.php/a?do=server").header("X-A", "b").header("Cookie", "a=b"),
        Request::form("/old/index.php?do=server", "a=b"),
    ] {
        let ours = Client::connect(nginx.address()).request(&request);
        assert_eq!(told(&ours), told(&oracle.client().request(&request)), "{request:?}");
    }
    // Sent directly: php-fpm would apply these parameters.
    let script = site.root.path().join("old/index.php");
    let mut command = Command::new("cgi-fcgi");
    let output = command
        .args(["-bind", "-connect", &socket])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("REQUEST_METHOD", "GET"), ("QUERY_STRING", "do=server"), ("REQUEST_URI", "/old/")])
        .envs([("SCRIPT_NAME", "/old/index.php"), ("PHP_VALUE", "auto_append_file=b.php")])
        .env("PHP_ADMIN_VALUE", "auto_prepend_file=b.php")
        .env("SCRIPT_FILENAME", &script)
        .output()
        .expect("libfcgi-bin is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
    let told: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!((&told["PHP_VALUE"], &told["PHP_ADMIN_VALUE"]), (&Value::Null, &Value::Null));
    drop(between);
}

#[test]
fn stop_waits_for_request_at_php_fpm() {
    let mut site = Passing::start(1, |start| start);
    let mut client = site.server.client();
    let target = format!("/old/?do=wait&gate={}", site.gate("gate"));
    client.send(&Request::get(&target).header("Connection", "close").bytes());
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    site.server.terminate();
    site.open("gate");
    assert_eq!(client.read(false).text(), "waited");
    assert_eq!(site.server.wait(), Some(0));
}

/// Several requests at the same time, over many connections.
#[test]
fn concurrent_upstream_requests_get_their_own_responses() {
    let site = Passing::start(3, |start| start);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let address = site.server.address();
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for n in 0..25 {
                    let target = format!("/old/b.php?{thread}-{n}");
                    assert_eq!(client.get(&target).text(), format!("old {target}"));
                }
            });
        }
    });
    assert_eq!(site.in_use(), 0);
}
