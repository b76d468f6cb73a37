//! Caddy in front, by `php_fastcgi`. PHP must receive the same variables as php-fpm behind the same
//! Caddy.

use super::*;
use samovar_testkit::SetOnDrop;
use std::net::TcpStream;
use std::process::Child;

/// A Caddy process, killed on drop.
struct Caddy {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Drop for Caddy {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.child);
    }
}

/// Starts a Caddy that serves `root` and passes scripts to `upstream`.
fn caddy(root: &Path, upstream: &str) -> Caddy {
    serving(|port| {
        format!(
            "http://:{port} {{\nbind 127.0.0.1\nroot * {}\n\
             php_fastcgi {upstream} {{\nflush_interval -1\n}}\nfile_server\n}}\n",
            root.display()
        )
    })
}

/// Starts a Caddy with the guide's configuration block. Only port, folder and socket are replaced.
fn as_the_guide_says(root: &Path, upstream: &str) -> Caddy {
    let guide =
        std::fs::read_to_string(samovar_testkit::workspace().join("docs/start/from-php-fpm.md"));
    let guide = guide.expect("the guide");
    let (_, section) = guide.split_once("\n## Caddy\n").expect("a section");
    let (_, block) = section.split_once("```text\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    serving(|port| {
        let mut text = block.to_owned();
        for (theirs, own) in [
            (":8000 {", format!("http://:{port} {{\n    bind 127.0.0.1")),
            ("/srv/shop/public", root.display().to_string()),
            ("unix//run/samovar/fcgi.sock", upstream.to_owned()),
        ] {
            assert!(text.contains(theirs), "{theirs}: {text}");
            text = text.replace(theirs, &own);
        }
        text
    })
}

/// Starts a Caddy with these sites at a free port.
fn serving(sites: impl FnOnce(u16) -> String) -> Caddy {
    let binary = std::env::var("CADDY_BIN").expect("CADDY_BIN names caddy: make caddy");
    let folder = TempDir::with_prefix("samovar-caddy-").expect("a temporary folder");
    let address = samovar_testkit::port();
    let text = format!(
        "{{\nadmin off\nauto_https off\npersist_config off\nstorage file_system {}\n}}\n{}",
        folder.path().display(),
        sites(address.port())
    );
    let config = folder.path().join("Caddyfile");
    std::fs::write(&config, text).expect("our own folder");
    let log = std::fs::File::create(folder.path().join("log")).expect("our own folder");
    let child = Command::new(&binary)
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
    let child = child.unwrap_or_else(|e| panic!("{binary}: {e}"));
    let mut caddy = Caddy { child, address, folder };
    eventually("Caddy's port", || {
        assert!(caddy.child.try_wait().expect("our child").is_none(), "{}", caddy.log());
        TcpStream::connect(address).ok()
    });
    caddy
}

impl Caddy {
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// Starts a site. Also returns Caddy's notation of its two FastCGI addresses.
fn site(php: &str, workers: usize) -> (Server, TempDir, [String; 2]) {
    let folder = TempDir::with_prefix("samovar-fcgi-").expect("a temporary folder");
    let socket = folder.path().join("fcgi.sock").display().to_string();
    let start = Server::script(php).workers(workers);
    let listen = format!("fcgi-unix:{socket}");
    let server = start.args(["--listen", &listen, "--listen", "fcgi://127.0.0.1:0"]).start();
    let port = server.addresses("fcgi://")[0].to_string();
    (server, folder, [format!("unix/{socket}"), port])
}

#[test]
#[ignore = "needs Caddy: make caddy"]
fn caddy_sends_same_variables_as_to_php_fpm() {
    let (server, _folder, ways) = site(DUMP, 1);
    let root = server.folder().join("root");
    std::fs::create_dir(root.join("below")).expect("our own folder");
    std::fs::write(root.join("below/page.php"), DUMP).expect("our own folder");
    std::fs::write(root.join("below/index.php"), DUMP).expect("our own folder");
    std::fs::write(root.join("file.txt"), "a file").expect("our own folder");
    let oracle = Oracle::start(&root);
    let theirs = oracle.folder().join("fpm.sock");
    for path in [server.folder(), &root, &root.join("below"), &theirs] {
        open(path);
    }
    let theirs = caddy(&root, &format!("unix/{}", theirs.display()));
    for way in ways {
        let ours = caddy(&root, &way);
        for request in [
            Request::get("/?a=1&b[]=%20"),
            Request::get("/index.php"),
            Request::get("/index.php/path/info?a"),
            Request::get("/below/"),
            Request::get("/below/page.php?x"),
            Request::get("/below/page.php/x.php/y%20z"),
            Request::get("/a/page/of/its/own?q=1"),
            Request::get("/missing.php"),
            Request::get("/caf%C3%A9%2Fx"),
            Request::post("/index.php", "text/plain", "hello"),
            Request::post("/", "application/octet-stream", "x".repeat(300_000)),
            Request::form("/index.php/x", "a=1"),
            Request::get("/index.php").header("Authorization", "Basic dTpw").header("X-Own", "1"),
            Request::get("/").header("X-Forwarded-For", "192.0.2.1").header("Proxy", "http://evil"),
            Request::get("/").header("Cookie", "a=b; c=d"),
        ] {
            let [found, expected] = [&ours, &theirs].map(|caddy| told(caddy.address, &request));
            assert_eq!(found, expected, "{}", request.bytes().escape_ascii());
            assert_eq!(found.0, 200, "{}", request.bytes().escape_ascii());
        }
        for target in ["/file.txt", "/below", "/index.php?head"] {
            let request = Request::new("HEAD", target);
            let [found, expected] =
                [&ours, &theirs].map(|caddy| Client::connect(caddy.address).request(&request));
            assert_eq!(found.status, expected.status, "{target}");
            for name in ["Location", "Content-Type", "X-Script", "Content-Length"] {
                assert_eq!(found.header(name), expected.header(name), "{target}: {name}");
            }
        }
    }
}

#[test]
#[ignore = "needs Caddy: make caddy"]
fn response_through_caddy_streams_and_killed_worker_loses_no_get() {
    let (server, _folder, ways) = site(
        "<?php if ($_SERVER['REQUEST_URI'] === '/slow') {\n\
         if (ob_get_level()) { ob_end_flush(); } echo 'begun'; flush();\n\
         while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }\n\
         echo ' ended'; exit; } usleep(1000); echo 'ok';",
        3,
    );
    let root = server.folder().join("root");
    for way in ways {
        let caddy = caddy(&root, &way);
        let _ = std::fs::remove_file(root.join("go"));
        let mut client = Client::connect(caddy.address);
        client.send(&Request::get("/slow").bytes());
        assert_eq!(client.read_head().expect("a head while the script waits").status, 200);
        std::fs::write(root.join("go"), "").expect("our own folder");
        let mut body = Vec::new();
        // An empty chunk is the end.
        while let Some(chunk) = client.read_chunk().expect("the rest").filter(|c| !c.is_empty()) {
            body.extend(chunk);
        }
        assert_eq!(body.escape_ascii().to_string(), "begun ended");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = SetOnDrop(&is_over);
            let asking: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut wrong = Vec::new();
                        let mut client = Client::connect(caddy.address);
                        while !is_over.load(Ordering::Relaxed) {
                            let response = client.get("/quick");
                            if response.status != 200 || response.text() != "ok" {
                                wrong.push(format!("{} {}", response.status, response.text()));
                            }
                        }
                        wrong
                    })
                })
                .collect();
            for _ in 0..5 {
                let pid = server.worker_pid();
                server.kill_worker(pid);
                eventually("another worker", || (server.worker_pid() != pid).then_some(()));
            }
            server.reload().expect("a reload");
            is_over.store(true, Ordering::Relaxed);
            for asking in asking {
                let wrong = asking.join().expect("a client");
                assert!(wrong.is_empty(), "{wrong:?}\n{}", caddy.log());
            }
        });
    }
}

#[test]
#[ignore = "needs Caddy: make caddy"]
fn client_disconnect_behind_caddy_ends_script() {
    let (server, _folder, ways) = site(
        "<?php if (($_GET['wait'] ?? '') === '') { echo 'ok'; exit; }\n\
         ignore_user_abort(false); \
         while (true) { echo str_repeat('x', 9000); flush(); usleep(1000); }",
        1,
    );
    let root = server.folder().join("root");
    for way in ways {
        let caddy = caddy(&root, &way);
        let mut client = Client::connect(caddy.address);
        client.try_send(&Request::get("/?wait=1").bytes()).expect("a request");
        eventually("the script", || (server.status()["in_flight"] == 1).then_some(()));
        drop(client);
        // The only worker is free again.
        assert_eq!(Client::connect(caddy.address).get("/").text(), "ok");
    }
}

/// Streamed events, long headers in both directions, and uploads: with the guide's configuration,
/// compared with php-fpm behind the same configuration.
#[test]
#[ignore = "needs Caddy: make caddy"]
fn caddy_guide_configuration_serves_events_uploads_and_long_headers() {
    const PAGE: &str = r#"<?php
        if (isset($_GET['events'])) {
            header('Content-Type: text/event-stream');
            while (ob_get_level()) { ob_end_flush(); }
            for ($i = 0; $i < 2; $i++) {
                echo "data: $i\n\n"; flush();
                while (!file_exists(__DIR__ . '/go')) { usleep(1000); clearstatcache(); }
            }
            exit;
        }
        foreach ([4000, 8000] as $length) {
            header('X-Long-' . $length . ': ' . str_repeat('y', $length)); }
        setcookie('a', 'b');
        setcookie('c', 'd');
        $files = array_map(fn ($file) => [
            $file['name'], $file['type'], $file['error'], $file['size'],
            hash_file('sha256', $file['tmp_name'])], $_FILES);
        $long = [strlen($_SERVER['HTTP_X_LONG'] ?? ''), strlen($_COOKIE['long'] ?? '')];
        echo json_encode([...$long, $_POST, $files]);
    "#;
    let (server, _folder, ways) = site(PAGE, 2);
    let root = server.folder().join("root");
    let oracle = Oracle::start(&root);
    let theirs = oracle.folder().join("fpm.sock");
    for path in [server.folder(), &root, &theirs] {
        open(path);
    }
    let theirs = as_the_guide_says(&root, &format!("unix/{}", theirs.display()));
    let form = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"field[x]\"\r\n\r\nvälue\r\n\
         --edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a b.bin\"\r\n\
         Content-Type: image/png\r\n\r\n{}\r\n\
         --edge--\r\n",
        "\u{1}\r\n-".repeat(200_000)
    );
    for way in ways {
        let ours = as_the_guide_says(&root, &way);
        for request in [
            Request::post("/", "multipart/form-data; boundary=edge", form.clone()),
            Request::get("/").header("X-Long", &"z".repeat(12_000)),
            Request::get("/").header("Cookie", &format!("long={}", "c".repeat(7_000))),
        ] {
            let [found, expected] =
                [&ours, &theirs].map(|caddy| Client::connect(caddy.address).request(&request));
            assert_eq!((found.status, found.text()), (200, expected.text()));
            let headers = |response: &samovar_testkit::http::Response| {
                let all = ["X-Long-4000", "X-Long-8000", "Set-Cookie", "Content-Type"];
                all.map(|name| response.header(name).map(str::to_owned))
            };
            assert_eq!(headers(&found), headers(&expected));
            assert!(found.header("X-Long-8000").is_some_and(|value| value.len() == 8000));
        }
        for caddy in [&ours, &theirs] {
            let _ = std::fs::remove_file(root.join("go"));
            let mut client = Client::connect(caddy.address);
            client.send(&Request::get("/?events").bytes());
            let head = client.read_head().expect("a head while the script waits");
            assert!(
                head.header("Content-Type")
                    .is_some_and(|kind| kind.starts_with("text/event-stream"))
            );
            let first = client.read_chunk().expect("an event").expect("an event");
            assert_eq!(first.escape_ascii().to_string(), "data: 0\\n\\n");
            std::fs::write(root.join("go"), "").expect("our own folder");
            let second = client.read_chunk().expect("an event").expect("an event");
            assert_eq!(second.escape_ascii().to_string(), "data: 1\\n\\n");
        }
    }
}
