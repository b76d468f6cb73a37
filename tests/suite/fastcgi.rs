//! FastCGI with others in front: nginx, Apache, Caddy and cgi-fcgi, beside php-fpm, which they ask the same. The conformance suite asks
//! far more by way of nginx; here is what it has no place for: other web servers, crashes, reloads, connections.

mod apache;
mod caddy;
mod status;

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Nginx, Oracle, Server, eventually};
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

/// What PHP was told, and the body.
const DUMP: &str = r"<?php
header('Content-Type: application/json');
header('X-Script: dump');
echo json_encode(['server' => $_SERVER, 'body' => file_get_contents('php://input')]);
";

/// Of `$_SERVER`, what cannot be the same, or is php-fpm's own environment.
const OTHERS: &[&str] = &[
    "HOME",
    "HTTP_HOST",
    "PATH",
    "REMOTE_PORT",
    "REQUEST_ID",
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
    "SERVER_PORT",
    "USER",
];

/// `$_SERVER` and the body, of which what must differ is taken out.
fn told(address: SocketAddr, request: &Request) -> (u16, Value) {
    let answer = Client::connect(address).request(request);
    let text = answer.text();
    let mut found: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(variables) = found.get_mut("server").and_then(Value::as_object_mut) {
        variables.retain(|name, _| !OTHERS.contains(&name.as_str()));
    }
    // Its text is the server's own.
    (answer.status, if answer.status == 200 { found } else { Value::Null })
}

fn open(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("our own");
}

struct Behind {
    server: Server,
    nginx: Nginx,
    folder: TempDir,
}

/// An application behind an nginx.
fn behind(php: &str, workers: usize) -> Behind {
    let folder = TempDir::with_prefix("samovar-fcgi-").expect("a temporary folder");
    let socket = folder.path().join("fcgi.sock").display().to_string();
    let start = Server::script(php).workers(workers);
    let server = start.args(["--listen", &format!("fcgi-unix:{socket}")]).start();
    let nginx = Nginx::before(&server.folder().join("root"), &format!("unix:{socket}"));
    Behind { server, nginx, folder }
}

impl Behind {
    /// GETs by several clients at once while `act` goes on: how many, and what was no good answer.
    fn under_load(&self, expected: &str, act: impl FnOnce()) -> (usize, Vec<String>) {
        let (is_over, good) = (AtomicBool::new(false), AtomicUsize::new(0));
        let wrong = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut wrong = Vec::new();
                        while !is_over.load(Ordering::Relaxed) {
                            let answer = self.nginx.get("/a?b=c");
                            if answer.status == 200 && answer.text().starts_with(expected) {
                                good.fetch_add(1, Ordering::Relaxed);
                            } else {
                                wrong.push(format!("{} {}", answer.status, answer.text()));
                            }
                        }
                        wrong
                    })
                })
                .collect();
            act();
            is_over.store(true, Ordering::Relaxed);
            clients.into_iter().flat_map(|c| c.join().expect("a client")).collect::<Vec<_>>()
        });
        (good.into_inner(), wrong)
    }
}

#[test]
fn killed_workers_cost_no_get() {
    let site = behind("<?php usleep(1000); echo 'ok';", 3);
    let (good, wrong) = site.under_load("ok", || {
        for _ in 0..8 {
            let pid = site.server.worker_pid();
            site.server.kill_worker(pid);
            eventually("another worker", || (site.server.worker_pid() != pid).then_some(()));
        }
    });
    assert!(good > 0 && wrong.is_empty(), "{good} good; {wrong:?}\n{}", site.nginx.log());
}

#[test]
fn a_reload_costs_no_request() {
    let site = behind("<?php echo 'ok';", 2);
    let (good, wrong) = site.under_load("ok", || {
        for _ in 0..3 {
            site.server.reload().expect("a reload");
        }
    });
    assert!(good > 0 && wrong.is_empty(), "{good} good; {wrong:?}\n{}", site.nginx.log());
}

#[test]
fn nginx_keeps_its_connections() {
    let site = behind("<?php echo 'ok';", 1);
    for _ in 0..50 {
        assert_eq!(site.nginx.get("/").text(), "ok");
    }
    let front = site.server.status();
    assert_eq!(front["fastcgi_requests_total"], 50);
    assert_eq!(front["connections"], 1, "{front}");
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let site = behind(
        "<?php if (($_GET['wait'] ?? '') === '') { echo 'ok'; exit; }\n\
         ignore_user_abort(false); while (true) { echo str_repeat('x', 9000); flush(); usleep(1000); }",
        1,
    );
    let mut client = Client::connect(site.nginx.address());
    client.try_send(&Request::get("/?wait=1").bytes()).expect("a request");
    eventually("the script", || (site.server.status()["in_flight"] == 1).then_some(()));
    drop(client);
    // The one worker is free again.
    assert_eq!(site.nginx.get("/").text(), "ok");
}

#[test]
fn cgi_fcgi_asks_too() {
    let site = behind(DUMP, 1);
    let socket = site.folder.path().join("fcgi.sock");
    let mut asking = Command::new("cgi-fcgi")
        .args(["-bind", "-connect"])
        .arg(&socket)
        .env_clear()
        .env("REQUEST_METHOD", "POST")
        .env("CONTENT_LENGTH", "5")
        .env("SCRIPT_FILENAME", site.server.folder().join("root/index.php"))
        .env("MINE", "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cgi-fcgi is installed");
    asking.stdin.take().expect("a pipe").write_all(b"hello").expect("it reads");
    let output = asking.wait_with_output().expect("our child");
    let text = String::from_utf8_lossy(&output.stdout);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    assert!(head.contains("x-script: dump"), "{head}");
    let found: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!((&found["body"], &found["server"]["MINE"]), (&"hello".into(), &"yes".into()));
    assert_eq!(found["server"]["FCGI_ROLE"], "RESPONDER");
}

/// People ask for all kinds of scripts; a web server that names them by another root is set up wrong.
#[test]
fn roots_that_differ_are_told_of_and_scripts_that_are_absent_are_not() {
    let site = behind("<?php echo 'ok';", 1);
    let ask = |filename: &str| {
        let output = Command::new("cgi-fcgi")
            .args(["-bind", "-connect"])
            .arg(site.folder.path().join("fcgi.sock"))
            .env_clear()
            .env("REQUEST_METHOD", "GET")
            .env("SCRIPT_FILENAME", filename)
            .stdin(Stdio::null())
            .output();
        String::from_utf8_lossy(&output.expect("cgi-fcgi is installed").stdout).into_owned()
    };
    let absent = site.server.folder().join("root/wp-login.php").display().to_string();
    for filename in [&*absent, "/srv/elsewhere/index.php"] {
        let said = ask(filename);
        assert!(said.starts_with("Status: 404"), "{filename}: {said}");
    }
    site.server.wait_for_log("a script that is not below the document root: 404");
    let log = site.server.log();
    assert!(log.contains("/srv/elsewhere/index.php") && !log.contains("wp-login.php"), "{log}");
}

#[test]
fn what_is_no_fastcgi_is_closed_and_counted() {
    let site = behind("<?php echo 'ok';", 1);
    let mut stream = UnixStream::connect(site.folder.path().join("fcgi.sock")).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    eventually("the count", || {
        let why = &site.server.status()["fastcgi_refused_reasons"];
        (why["version"] == 1).then_some(())
    });
    site.server.wait_for_log("closed a FastCGI connection");
    assert_eq!(site.nginx.get("/").text(), "ok");
}
