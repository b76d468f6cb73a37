//! Secrets of the settings: PHP, its child processes and other processes cannot read them, and the
//! admin listener needs a token.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually, is_root};
use std::net::SocketAddr;
use std::path::Path;

const TOKEN: &str = "token-of-the-environment";
const KEY: &str = "key-of-the-environment-0";
const HEADER: &str = "header-of-the-environment";
const FLAG: &str = "header-of-the-command-line";

/// Prints every place in which a script finds environment variables and arguments.
const PAGE: &str = r#"<?php
function everything(): string
{
    ob_start();
    phpinfo();
    print_r(getenv());
    print_r($_SERVER);
    print_r($_ENV);
    $pids = array_merge(['self'], $_GET['pids'] ?? []);
    foreach ($pids as $pid) {
        echo @file_get_contents("/proc/$pid/environ"), @file_get_contents("/proc/$pid/cmdline");
    }
    echo shell_exec('env; echo PUBLIC=$SAMOVAR_WORKERS');
    return ob_get_clean();
}
"#;

fn admin(server: &Server) -> SocketAddr {
    let status = server.status();
    status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address")
}

fn metrics(server: &Server, token: &str) -> u16 {
    let request = Request::get("/metrics").header("Authorization", &format!("Bearer {token}"));
    Client::connect(admin(server)).request(&request).status
}

fn with_secrets(page: &str) -> Start {
    Server::script(&format!("{PAGE}{page}"))
        .args(["--admin", "127.0.0.1:0"])
        .args(["--profile-push-headers", &format!("authorization={FLAG}")])
        .args([&format!("--insight-otlp-headers=authorization={FLAG}")])
        .env("SAMOVAR_WORKERS", "1")
        .env("SAMOVAR_ADMIN_TOKEN", TOKEN)
        .env("SAMOVAR_PROFILE_TRACE_KEY", KEY)
        .env("SAMOVAR_PROFILE_PUSH_HEADERS", &format!("x-scope-orgid={HEADER}"))
}

/// Reads a file of `/proc`, as root can. A worker may end meanwhile; while it ends it has no
/// memory, and the file cannot be read.
fn proc(pid: i32, name: &str) -> String {
    let folder = Path::new("/proc").join(pid.to_string());
    let read = eventually(&format!("/proc/{pid}/{name}"), || {
        let read = std::fs::read(folder.join(name));
        (read.is_ok() || !is_root() || !folder.exists()).then_some(read)
    });
    String::from_utf8_lossy(&read.unwrap_or_default()).into_owned()
}

fn assert_concealed(server: &Server) {
    let pids: Vec<i32> = server.worker_pids().into_iter().chain([server.pid()]).collect();
    let query: Vec<_> = pids.iter().map(|pid| format!("pids[]={pid}")).collect();
    let mut texts = vec![server.get(&format!("/?{}", query.join("&"))).text(), server.log()];
    assert!(texts[0].contains("PUBLIC=1"), "other variables are passed: {}", texts[0]);
    for pid in pids {
        texts.extend(["environ", "cmdline"].map(|name| proc(pid, name)));
    }
    for text in texts {
        for secret in [TOKEN, KEY, HEADER, FLAG] {
            assert!(!text.contains(secret), "{secret} in:\n{text}");
        }
    }
    assert_eq!((metrics(server, TOKEN), metrics(server, "another-token-000")), (200, 401));
}

#[test]
fn secrets_reach_neither_php_nor_proc() {
    for page in ["echo everything();", "Samovar\\checkpoint(); echo everything();"] {
        let server = with_secrets(page).start();
        assert_concealed(&server);
        server.reload().expect("a reload");
        assert_concealed(&server);
        server.stop();
    }
}

#[test]
fn secrets_survive_upgrades_and_stay_concealed() {
    let server = with_secrets("echo everything();").start();
    for _ in 0..2 {
        server.upgrade([]).expect("an upgrade");
        server.wait_for_predecessor();
        assert_concealed(&server);
    }
    server.stop();
}

/// A server without a token in its settings, and the file of the generated one.
fn without_token(file: &Path) -> Start {
    let file = file.to_string_lossy().into_owned();
    Server::script(
        "<?php echo file_get_contents($_GET['url'], false, stream_context_create(
            ['http' => ['ignore_errors' => true]]));",
    )
    .workers(1)
    .args(["--admin", "127.0.0.1:0", "--admin-token-file", &file])
    .env("SAMOVAR_ADMIN_TOKEN", "")
}

#[test]
fn generated_admin_token_is_stored_and_logged_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("admin-token");
    let server = without_token(&file).start();
    let token = std::fs::read_to_string(&file).expect("a token").trim().to_owned();
    let url = format!("http://samovar:{token}@{}/", admin(&server));
    server.wait_for_log(&url);
    assert_eq!((metrics(&server, &token), metrics(&server, "another-token-000")), (200, 401));
    let basic = Request::get("/").header("Authorization", "Basic bm86bm8=");
    assert_eq!(Client::connect(admin(&server)).request(&basic).status, 401);
    for open in ["/health", "/ready"] {
        assert_eq!(Client::connect(admin(&server)).get(open).status, 200, "{open}");
    }
    server.upgrade([]).expect("an upgrade");
    server.wait_for_predecessor();
    assert_eq!(metrics(&server, &token), 200);
    server.upgrade([]).expect("another upgrade");
    server.wait_for_predecessor();
    assert_eq!(metrics(&server, &token), 200);
    assert_eq!(server.log().matches(&token).count(), 1, "{}", server.log());
    server.stop();

    let server = without_token(&file).start();
    assert_eq!(metrics(&server, &token), 200);
    let log = server.stop();
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn page_that_fetches_urls_cannot_read_admin_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = without_token(&folder.path().join("admin-token")).start();
    let fetch = |path: &str| server.get(&format!("/?url=http://{}{path}", admin(&server))).text();
    assert_eq!(fetch("/health"), "alive\n");
    for path in ["/", "/metrics", "/api/status", "/api/requests", "/workers", "/live"] {
        let text = fetch(path);
        assert!(text.starts_with("send the token"), "{path}: {text}");
    }
    server.stop();
}
