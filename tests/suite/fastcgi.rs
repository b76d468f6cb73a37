//! FastCGI with other web servers in front: nginx, Apache, Caddy and cgi-fcgi. They send the same
//! requests to php-fpm, which is the reference. The conformance suite covers much more by way of
//! nginx. These tests cover the rest: other web servers, crashes, reloads, connections.

mod apache;
mod caddy;
mod status;

use samovar_testkit::SetOnDrop;
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

/// Prints the variables that PHP received, and the body.
const DUMP: &str = r"<?php
header('Content-Type: application/json');
header('X-Script: dump');
echo json_encode(['server' => $_SERVER, 'body' => file_get_contents('php://input')]);
";

/// Entries of `$_SERVER` that cannot be equal, or come from php-fpm's own environment.
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

/// Status, and `$_SERVER` and body without the entries that differ by nature.
fn told(address: SocketAddr, request: &Request) -> (u16, Value) {
    let response = Client::connect(address).request(request);
    let text = response.text();
    let mut found: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(variables) = found.get_mut("server").and_then(Value::as_object_mut) {
        variables.retain(|name, _| !OTHERS.contains(&name.as_str()));
    }
    // The text of an error page is the server's own.
    (response.status, if response.status == 200 { found } else { Value::Null })
}

fn open(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("our own");
}

struct Behind {
    server: Server,
    nginx: Nginx,
    folder: TempDir,
}

/// Starts an application behind nginx.
fn behind(php: &str, workers: usize) -> Behind {
    let folder = TempDir::with_prefix("samovar-fcgi-").expect("a temporary folder");
    let socket = folder.path().join("fcgi.sock").display().to_string();
    let start = Server::script(php).workers(workers);
    let server = start.args(["--listen", &format!("fcgi-unix:{socket}")]).start();
    let nginx = Nginx::before(&server.folder().join("root"), &format!("unix:{socket}"));
    Behind { server, nginx, folder }
}

impl Behind {
    /// Sends GETs from several clients while `act` runs. Returns the number of good responses, and
    /// the wrong ones.
    fn under_load(&self, expected: &str, act: impl FnOnce()) -> (usize, Vec<String>) {
        let (is_over, good) = (AtomicBool::new(false), AtomicUsize::new(0));
        let wrong = std::thread::scope(|scope| {
            let _over = SetOnDrop(&is_over);
            let clients: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut wrong = Vec::new();
                        while !is_over.load(Ordering::Relaxed) {
                            let response = self.nginx.get("/a?b=c");
                            if response.status == 200 && response.text().starts_with(expected) {
                                good.fetch_add(1, Ordering::Relaxed);
                            } else {
                                wrong.push(format!("{} {}", response.status, response.text()));
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
fn killed_worker_loses_no_get_behind_nginx() {
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
fn reload_loses_no_request_behind_nginx() {
    let site = behind("<?php echo 'ok';", 2);
    let (good, wrong) = site.under_load("ok", || {
        for _ in 0..3 {
            site.server.reload().expect("a reload");
        }
    });
    assert!(good > 0 && wrong.is_empty(), "{good} good; {wrong:?}\n{}", site.nginx.log());
}

#[test]
fn nginx_reuses_one_fastcgi_connection() {
    let site = behind("<?php echo 'ok';", 1);
    for _ in 0..50 {
        assert_eq!(site.nginx.get("/").text(), "ok");
    }
    let front = site.server.status();
    assert_eq!(front["fastcgi_requests_total"], 50);
    assert_eq!(front["connections"], 1, "{front}");
}

#[test]
fn client_disconnect_behind_nginx_ends_script() {
    let site = behind(
        "<?php if (($_GET['wait'] ?? '') === '') { echo 'ok'; exit; }\n\
         ignore_user_abort(false); \
         while (true) { echo str_repeat('x', 9000); flush(); usleep(1000); }",
        1,
    );
    let mut client = Client::connect(site.nginx.address());
    client.try_send(&Request::get("/?wait=1").bytes()).expect("a request");
    eventually("the script", || (site.server.status()["in_flight"] == 1).then_some(()));
    drop(client);
    // The only worker is free again.
    assert_eq!(site.nginx.get("/").text(), "ok");
}

#[test]
fn cgi_fcgi_request_is_served() {
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

/// Clients request arbitrary scripts, so absent ones are not logged. A web server that uses another
/// document root is misconfigured, and is logged.
#[test]
fn foreign_document_root_is_logged_and_absent_script_is_not() {
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
    site.server.wait_for_log("a script outside the document root: 404");
    let log = site.server.log();
    assert!(log.contains("/srv/elsewhere/index.php") && !log.contains("wp-login.php"), "{log}");
}

#[test]
fn non_fastcgi_connection_is_closed_and_counted() {
    let site = behind("<?php echo 'ok';", 1);
    let mut stream = UnixStream::connect(site.folder.path().join("fcgi.sock")).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    eventually("the count", || {
        let why = &site.server.status()["fastcgi_rejected_reasons"];
        (why["version"] == 1).then_some(())
    });
    site.server.wait_for_log("closed FastCGI connection");
    assert_eq!(site.nginx.get("/").text(), "ok");
}
