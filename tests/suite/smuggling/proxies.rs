//! The corpus through nginx, HAProxy and Apache: the application must see only requests that the
//! proxy forwarded.
//!
//! Each proxy adds an ID to every forwarded request, and logs it with method, target and, if
//! possible, body. A request that the application sees without such a log line was smuggled.

use super::{END, Noted, corpus, direct, frames};
use samovar_testkit::http::Client;
use samovar_testkit::{eventually, port};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Minimum number of shapes that a proxy must forward; with fewer, the test would be meaningless.
const PASSED_MIN: usize = 12;

/// A proxy process, killed on drop.
struct Proxy {
    child: Child,
    folder: TempDir,
    plain: SocketAddr,
    http2: SocketAddr,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.child);
    }
}

impl Proxy {
    /// Runs `program`, which reads `config` in its folder and writes its log to standard output.
    fn start(
        program: &str,
        args: &[&str],
        config: impl FnOnce(&Path, SocketAddr, SocketAddr) -> String,
    ) -> Proxy {
        let folder = TempDir::with_prefix("samovar-proxy-").expect("a folder");
        let (plain, http2) = (port(), port());
        let text = config(folder.path(), plain, http2);
        std::fs::write(folder.path().join("config"), text).expect("our own folder");
        let log = File::create(folder.path().join("log")).expect("our own folder");
        let mut command = Command::new(program);
        command.current_dir(folder.path()).args(args).stdout(log).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|e| panic!("{program}: {e}"));
        let mut proxy = Proxy { child, folder, plain, http2 };
        for address in [plain, http2] {
            eventually("its port", || {
                let ended = proxy.child.try_wait().expect("our child");
                assert!(ended.is_none(), "{program} has ended");
                TcpStream::connect(address).ok()
            });
        }
        proxy
    }

    /// `ID STATUS METHOD TARGET BODY` of each forwarded request, by its ID.
    fn passed(&self) -> HashMap<String, Vec<String>> {
        let text = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let fields = |line: &str| -> Option<(String, Vec<String>)> {
            let mut fields = line.strip_prefix("passed\t")?.split('\t').map(str::to_owned);
            Some((fields.next()?, fields.collect()))
        };
        whole.lines().filter_map(fields).collect()
    }
}

/// Sends both corpora through `proxy`, and compares the forwarded requests with the recorded ones.
fn check(noted: &Noted, proxy: &Proxy, has_bodies: bool) {
    for shape in corpus::shapes() {
        let mut client = Client::connect(proxy.plain);
        let _ = client.try_send(&[&shape.bytes[..], END.as_bytes()].concat());
        direct::read(&mut client);
    }
    frames::send_all(proxy.http2);
    // The last request of all.
    let last = Client::connect(proxy.plain).get("/last");
    assert_eq!(last.text(), "seen");
    let passed = eventually("the proxy's last line", || {
        let passed = proxy.passed();
        let is_last = |fields: &Vec<String>| fields[2] == "/last";
        passed.values().any(is_last).then_some(passed)
    });
    let seen = noted.all();
    let mut wrong = Vec::new();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for note in &seen {
        let Some(fields) = note["id"].as_str().and_then(|id| passed.get(id)) else {
            wrong.push(format!("smuggled: {note}"));
            continue;
        };
        *counts.entry(note["id"].as_str().unwrap_or_default()).or_default() += 1;
        let is_same = note["method"] == fields[1].as_str()
            && is_target(&note["uri"], &fields[2])
            && (!has_bodies || note["body"] == fields[3].replace("\\r\\n", "\r\n").as_str());
        if !is_same {
            wrong.push(format!("not what was passed on: {note}, {fields:?}"));
        }
    }
    for (id, fields) in &passed {
        let times = counts.get(id.as_str()).copied().unwrap_or(0);
        // Requests of files are not recorded.
        let expected = usize::from(fields[0] == "200" && !fields[2].contains("page.txt"));
        if times > 1 || (expected == 1 && times == 0 && fields[1] != "OPTIONS") {
            wrong.push(format!("seen {times} times: {id} {fields:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
    assert!(counts.len() >= PASSED_MIN, "only {} were passed on", counts.len());
}

/// The proxy may log the target in absolute form.
fn is_target(seen: &Value, passed: &str) -> bool {
    let path = passed.split_once("://").map(|(_, rest)| match rest.find('/') {
        Some(slash) => &rest[slash..],
        None => "/",
    });
    seen.as_str().is_some_and(|seen| seen == passed || Some(seen) == path)
}

#[test]
fn nothing_is_smuggled_through_nginx() {
    let noted = Noted::start(|start| start);
    let server = noted.server.address();
    let args = ["-p", ".", "-c", "config", "-e", "stderr"];
    let proxy = Proxy::start("/usr/sbin/nginx", &args, |_, plain, http2| {
        let mut text = String::from(
            "daemon off; master_process off; pid nginx.pid; events { }
             http { client_header_timeout 2s;
             client_body_timeout 2s; large_client_header_buffers 4 16k; upstream s { keepalive 4; ",
        );
        let _ = write!(text, "server {server}; }} ");
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = write!(text, "{kind}_temp_path {kind}; ");
        }
        text += "log_format passed escape=json
            'passed\t$request_id\t$upstream_status\t$request_method\t$request_uri\t$request_body';
            map $upstream_status $is_passed { '' 0; default 1; }
            access_log /dev/stdout passed if=$is_passed; ";
        let _ = write!(
            text,
            "server {{ listen {plain}; listen {http2} http2; merge_slashes off;
             underscores_in_headers on; ignore_invalid_headers off;
             location / {{ proxy_pass http://s; proxy_http_version 1.1;
             proxy_set_header Connection ''; proxy_set_header X-Front $request_id; }} }} }}"
        );
        text
    });
    check(&noted, &proxy, true);
}

#[test]
fn nothing_is_smuggled_through_haproxy() {
    let noted = Noted::start(|start| start);
    let server = noted.server.address();
    let proxy = Proxy::start("/usr/sbin/haproxy", &["-db", "-f", "config"], |_, plain, http2| {
        format!(
            "global\n log stdout format raw local0\n\
             defaults\n mode http\n log global\n \
             timeout connect 5s\n timeout client 2s\n timeout server 20s\n\
             option accept-invalid-http-request\n option http-buffer-request\n\
             frontend f\n bind {plain}\n bind {http2} proto h2\n unique-id-format %[uuid()]\n\
             unique-id-header X-Front\n \
             log-format \"passed\t%ID\t%ST\t%HM\t%HU\"\n default_backend b\n\
             backend b\n http-reuse always\n server s {server}\n"
        )
    });
    check(&noted, &proxy, false);
}

#[test]
fn nothing_is_smuggled_through_apache() {
    let noted = Noted::start(|start| start);
    let server = noted.server.address();
    let folder_args = ["-DFOREGROUND", "-d", ".", "-f", "config"];
    let proxy = Proxy::start("/usr/sbin/apache2", &folder_args, |folder, plain, http2| {
        let shown = folder.display();
        let mut text = format!("ServerName x\nListen {plain}\nListen {http2}\n");
        for module in
            ["mpm_event", "authz_core", "proxy", "proxy_http", "http2", "unique_id", "headers"]
        {
            let _ = writeln!(
                text,
                "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so"
            );
        }
        let _ = write!(
            text,
            "PidFile {shown}/apache.pid\nErrorLog {shown}/errors\nMutex file:{shown}\nUser nobody\n\
             Group nogroup\nAllowEncodedSlashes NoDecode\nTimeout 2\nProtocols h2c http/1.1\n\
             HttpProtocolOptions Unsafe LenientMethods\nMergeSlashes Off\n\
             RequestHeader set X-Front %{{UNIQUE_ID}}e\n\
             LogFormat \"passed\\t%{{UNIQUE_ID}}e\\t%>s\\t%m\\t%U%q\" passed\n\
             CustomLog /proc/self/fd/1 passed\nProxyPass / http://{server}/ nocanon\n"
        );
        text
    });
    check(&noted, &proxy, false);
}
