//! Other servers in front: nginx, HAProxy, Apache and Caddy forward requests over each protocol
//! that this server speaks.

use super::*;
use samovar_testkit::http::Client;
use samovar_testkit::{eventually, port};
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

/// A proxy process, killed on drop.
struct Front(Child, SocketAddr);

impl Drop for Front {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.0);
    }
}

/// Runs `program` with the file `config`, and waits until it accepts connections at `address`.
fn run(program: &str, args: &[&str], address: SocketAddr) -> Front {
    let child =
        Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut front = Front(child.unwrap_or_else(|e| panic!("{program}: {e}")), address);
    eventually("its port", || {
        assert!(front.0.try_wait().expect("our child").is_none(), "{program} has ended");
        TcpStream::connect(address).ok()
    });
    front
}

/// Sends several requests on one connection, a form, and a long body. The results must equal those
/// without a proxy.
fn check(front: &Front, https: bool) {
    let mut client = Client::connect(front.1);
    for target in ["/?a=1", "/x/y%20z", "/?again"] {
        let response = client.get(target);
        assert_eq!(response.status, 200, "{target}: {}", response.text());
        let found: Value = serde_json::from_str(&response.text()).expect("JSON");
        assert_eq!(found["REQUEST_URI"], target);
        assert_eq!(found["REMOTE_ADDR"], "127.0.0.1");
        assert_eq!(found["REQUEST_SCHEME"], if https { "https" } else { "http" });
    }
    let body = "x".repeat(200_000);
    let request = samovar_testkit::http::Request::post("/", "text/plain", body.clone());
    let found: Value = serde_json::from_str(&client.request(&request).text()).expect("JSON");
    assert_eq!(found["body"], body.as_str());
}

#[test]
fn nginx_forwards_over_each_protocol() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let socket = folder.path().join("s.sock").display().to_string();
    let listen = format!("unix:{socket}");
    let start = start.args(["--listen", &listen, "--trusted-proxies", "unix:,127.0.0.1"]);
    let server = start.start();
    let (clear, secure) = (server.address(), server.addresses("https://")[0]);
    for (upstream, is_https) in [
        (format!("http://unix:{socket}:"), false),
        (format!("http://{clear}"), false),
        (format!("https://{secure}"), true),
    ] {
        let address = port();
        let mut text =
            String::from("daemon off; master_process off; events { } http { access_log off; ");
        let shown = folder.path().display();
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            let _ = write!(text, "{kind}_temp_path {shown}/{kind}; ");
        }
        let _ = write!(
            text,
            "server {{ listen {address}; location / {{ \
             proxy_pass {upstream}; proxy_http_version 1.1; proxy_set_header Connection ''; \
             proxy_set_header X-Forwarded-For $remote_addr; }} }} }}"
        );
        let config = folder.path().join("nginx.conf");
        std::fs::write(&config, text).expect("our own file");
        let pid = format!("pid {shown}/nginx.pid;");
        let args = [
            "-p",
            &shown.to_string(),
            "-c",
            &config.display().to_string(),
            "-e",
            "stderr",
            "-g",
            &pid,
        ];
        check(&run("/usr/sbin/nginx", &args, address), is_https);
    }
}

#[test]
fn haproxy_forwards_over_each_protocol() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let server = start
        .args(["--listen", "127.0.0.1:0?proxy", "--listen", "https://127.0.0.1:0?proxy"])
        .start();
    let (clear, proxied) = (server.address(), server.addresses("http://")[1]);
    let secure = server.addresses("https://");
    for (line, is_https) in [
        (format!("{clear}"), false),
        (format!("{clear} proto h2"), false),
        (format!("{proxied} send-proxy"), false),
        (format!("{proxied} send-proxy-v2"), false),
        (format!("{} ssl verify none", secure[0]), true),
        (format!("{} ssl verify none alpn h2", secure[0]), true),
        (format!("{} send-proxy-v2 ssl verify none alpn h2", secure[1]), true),
    ] {
        let address = port();
        let text = format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             frontend f\n bind {address}\n default_backend b\nbackend b\n server s {line}\n"
        );
        let config = folder.path().join("haproxy.cfg");
        std::fs::write(&config, text).expect("our own file");
        let args = ["-db", "-f", &config.display().to_string()];
        check(&run("/usr/sbin/haproxy", &args, address), is_https);
    }
}

#[test]
fn apache_forwards_over_each_protocol() {
    let folder = folder();
    let socket = folder.path().join("s.sock").display().to_string();
    let (start, _) = secure(folder.path());
    let listen = format!("unix:{socket}");
    let start = start.args(["--listen", &listen, "--trusted-proxies", "unix:"]);
    let server = start.start();
    let (clear, secure) = (server.address(), server.addresses("https://")[0]);
    for (upstream, is_https) in [
        (format!("unix:{socket}|http://localhost/"), false),
        (format!("http://{clear}/"), false),
        (format!("h2c://{clear}/"), false),
        (format!("https://{secure}/"), true),
        (format!("h2://{secure}/"), true),
    ] {
        let address = port();
        let shown = folder.path().display();
        let mut text = format!(
            "ServerName x\nListen {address}\nPidFile {shown}/apache.pid\n\
             ErrorLog {shown}/apache.log\n"
        );
        let modules = [
            "mpm_event",
            "authz_core",
            "proxy",
            "proxy_http",
            "ssl",
            "http2",
            "proxy_http2",
            "socache_shmcb",
        ];
        for module in modules {
            let _ = writeln!(
                text,
                "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so"
            );
        }
        let _ = write!(
            text,
            "Mutex file:{shown}\nUser nobody\nGroup nogroup\n\
             SSLProxyEngine on\nSSLProxyVerify none\n\
             SSLProxyCheckPeerName off\nSSLProxyCheckPeerCN off\nAllowEncodedSlashes NoDecode\n\
             ProxyPass / {upstream} nocanon\n"
        );
        let config = folder.path().join("apache.conf");
        std::fs::write(&config, text).expect("our own file");
        // Apache switches to another user, which needs access to these paths.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        for path in [folder.path(), Path::new(&socket)] {
            std::fs::set_permissions(path, Clone::clone(&open)).expect("our own");
        }
        let args = ["-DFOREGROUND", "-f", &config.display().to_string()];
        check(&run("/usr/sbin/apache2", &args, address), is_https);
    }
}

/// Caddy forwards the scheme of its client's request, and is a trusted proxy.
#[test]
#[ignore = "needs Caddy: make caddy"]
fn caddy_forwards_over_each_protocol() {
    let folder = folder();
    let socket = folder.path().join("s.sock").display().to_string();
    let (start, _) = secure(folder.path());
    let listen = format!("unix:{socket}");
    let start = start.args([
        "--listen",
        &listen,
        "--trusted-proxies",
        "unix:,127.0.0.1",
        "--early-hints",
        "on",
    ]);
    let server = start.start();
    let (clear, secure) = (server.address(), server.addresses("https://")[0]);
    let binary = std::env::var("CADDY_BIN").expect("CADDY_BIN names caddy: make caddy");
    let insecure = "transport http {\ntls_insecure_skip_verify\nversions";
    for upstream in [
        format!("unix/{socket}"),
        format!("{clear}"),
        format!("h2c://{clear}"),
        format!("https://{secure} {{\n{insecure} 1.1\n}}\n}}"),
        format!("https://{secure} {{\n{insecure} 2\n}}\n}}"),
    ] {
        let address = port();
        let text = format!(
            "{{\nadmin off\nauto_https off\npersist_config off\nstorage file_system {}\n}}\n\
             http://:{} {{\nbind 127.0.0.1\nreverse_proxy {upstream}\n}}\n",
            folder.path().display(),
            address.port()
        );
        let config = folder.path().join("Caddyfile");
        std::fs::write(&config, text).expect("our own file");
        let args = ["run", "--adapter", "caddyfile", "--config", &config.display().to_string()];
        let front = run(&binary, &args, address);
        check(&front, false);
        // Over HTTP/2, the server sends no early hints.
        let is_http2 = upstream.starts_with("h2c:") || upstream.contains("versions 2");
        if !is_http2 {
            let mut client = Client::connect(front.1);
            client.send(
                &samovar_testkit::http::Request::get("/?hint=%3C%2Fa.css%3E%3B+rel%3Dpreload")
                    .bytes(),
            );
            let (hints, response) = client.read_with_interim(false).expect("an answer");
            assert_eq!((hints.len(), response.status), (1, 200));
            assert_eq!(
                (hints[0].status, hints[0].header("Link")),
                (103, Some("</a.css>; rel=preload"))
            );
        }
    }
}
