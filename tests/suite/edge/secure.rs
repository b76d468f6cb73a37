//! HTTP/1.1 and HTTP/2 over TLS: PHP sees the same variables as behind nginx.

use super::*;
use samovar_testkit::{Oracle, eventually, workspace};
use std::io::Write;
use std::net::TcpStream;

/// Variables that differ for each request or connection.
const OWN: [&str; 9] = [
    "DOCUMENT_ROOT",
    "SCRIPT_FILENAME",
    "REMOTE_PORT",
    "SERVER_PORT",
    "SERVER_SOFTWARE",
    "REQUEST_TIME",
    "REQUEST_TIME_FLOAT",
    "HTTP_HOST",
    "REQUEST_ID",
];

fn common(mut server: Value) -> Value {
    let map = server.as_object_mut().expect("an object");
    map.retain(|key, _| {
        // These come from php-fpm's own environment.
        !OWN.contains(&key.as_str())
            && !matches!(key.as_str(), "USER" | "HOME" | "PATH" | "FCGI_ROLE" | "SERVER_NAME")
            && !key.starts_with("SAMOVAR_")
    });
    server
}

#[test]
fn server_variables_over_tls_match_nginx() {
    let folder = folder();
    let (start, certificate) = secure(folder.path());
    let server = start.start();
    let oracle = Oracle::secure(&workspace().join("tests/apps/edge"), &certificate);
    let ours = https(&server);
    let theirs = format!("https://{}", oracle.address());
    for version in ["--http1.1", "--http2"] {
        for args in [
            &["/?a=b&c"][..],
            &["/x/y%20z?q"],
            &["/", "-d", "some=form"],
            &["/", "-H", "Cookie: a=1; b=2", "-H", "X-Own: 1"],
            // Not the folder itself: nginx's index module accepts only GET and POST there.
            &["/x", "-u", "me:secret", "-X", "PUT", "-d", "x"],
            &["/", "-H", "Host: some.example:81"],
            &["/", "-H", "TE: trailers", "-H", "Expect:"],
        ] {
            let ask = |base: &str| {
                let url = format!("{base}{}", args[0]);
                common(server_of(&[&[version, &url], &args[1..]].concat()))
            };
            let found = ask(&ours);
            assert_eq!(found["HTTPS"], "on");
            assert_eq!(found, ask(&theirs), "{version} {args:?}");
        }
    }
}

#[test]
fn both_http_versions_work_in_clear_and_over_tls() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let server = start.start();
    let clear = format!("http://{}/", server.address());
    let secure = format!("{}/", https(&server));
    for (args, protocol) in [
        (["--http1.1", &clear], "HTTP/1.1"),
        (["--http2-prior-knowledge", &clear], "HTTP/2.0"),
        // The `Upgrade` header is ignored.
        (["--http2", &clear], "HTTP/1.1"),
        (["--http1.1", &secure], "HTTP/1.1"),
        (["--http2", &secure], "HTTP/2.0"),
        (["--http1.0", &secure], "HTTP/1.0"),
    ] {
        let found = server_of(&args);
        assert_eq!(found["SERVER_PROTOCOL"], protocol, "{args:?}");
        let scheme = if args[1] == clear { "http" } else { "https" };
        assert_eq!(found["REQUEST_SCHEME"], scheme, "{args:?}");
    }
    for version in ["--http1.1", "--http2"] {
        let twice = ["-H", "Cookie: a=1", "-H", "Cookie: b=2", "-H", "X-Own: 1", "-H", "X-Own: 2"];
        let found = server_of(&[&[version, &secure], &twice[..]].concat());
        assert_eq!(
            (&found["HTTP_COOKIE"], &found["HTTP_X_OWN"]),
            (&"a=1; b=2".into(), &"1, 2".into())
        );
    }
    let (_, head) = curl(&["--http2", "-o", "/dev/null", "-D", "-", &secure]);
    assert!(!head.to_lowercase().contains("connection:"), "{head}");
}

/// A user types `http://` with the port of `https://`.
#[test]
fn clear_request_to_tls_port_gets_explanation() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let with_header = ["--listen", "https://127.0.0.1:0?proxy"];
    let server = start.args(with_header).start();
    for address in server.addresses("https://") {
        let url = format!("http://{address}");
        let header = if url == https(&server).replace("https", "http") {
            None
        } else {
            Some("--haproxy-protocol")
        };
        for of_request in [&["--http1.1"][..], &["-I"], &["--data-binary", &"x".repeat(100_000)]] {
            let common = ["-o", "-", "-w", " %{http_code}", &url];
            let args: Vec<&str> =
                header.into_iter().chain(of_request.iter().copied()).chain(common).collect();
            let (code, text) = curl(&args);
            assert!(code == 0 && text.ends_with(" 400"), "{of_request:?}: {code} {text}");
            let is_told = text.contains("This port accepts only HTTPS");
            assert!(is_told || of_request == ["-I"], "{of_request:?}: {text}");
        }
        let secure = url.replace("http:", "https:");
        let args: Vec<&str> = header.into_iter().chain([secure.as_str()]).collect();
        assert_eq!(curl(&args).0, 0, "TLS is spoken as ever");
    }
}

#[test]
fn long_body_is_received_and_sent_over_tls() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let server = start.args(["--body-bytes-max", "8M"]).start();
    let body = folder.path().join("body");
    std::fs::write(&body, "0123456789".repeat(300_000)).expect("our own file");
    let upload = format!("@{}", body.display());
    for version in ["--http1.1", "--http2"] {
        let url = https(&server);
        let found = server_of(&[version, "-H", "Expect:", "--data-binary", &upload, &url]);
        assert_eq!(found["body"].as_str().map(str::len), Some(3_000_000), "{version}");
        assert_eq!(found["CONTENT_LENGTH"], "3000000");
    }
}

#[test]
fn hsts_header_is_sent_over_tls_only() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let hsts = "max-age=300; includeSubDomains";
    let server = start.args(["--tls-hsts", hsts]).start();
    let of = |url: &str| curl(&["-o", "/dev/null", "-D", "-", url]).1.to_lowercase();
    assert!(
        of(&https(&server)).contains(&format!("strict-transport-security: {hsts}").to_lowercase())
    );
    assert!(!of(&format!("http://{}", server.address())).contains("strict-transport"));
}

#[test]
fn redirecting_address_serves_only_redirects_and_acme_challenges() {
    let folder = folder();
    let chain = Certificate::own(folder.path(), "own", NAMES).chain.display().to_string();
    let start = Server::script("<?php echo 'application';").args(["--tls-certificates", &chain]);
    let listen = ["--listen", "https://127.0.0.1:0", "--listen", "127.0.0.1:0?redirect"];
    let server = start.args(listen).start();
    let plain = server.addresses("http://")[1];
    let port = server.addresses("https://")[0].port();
    let head = |args: &[&str]| curl(&[&["-D", "-", "-o", "/dev/null"], args].concat()).1;
    let response = head(&["-H", "Host: a.example:80", &format!("http://{plain}/x%20y?z=1")]);
    assert!(response.starts_with("HTTP/1.1 301"), "{response}");
    // The configured port is 0, so the redirect cannot name a port.
    assert!(response.contains("location: https://a.example/x%20y?z=1\r\n"), "{response} {port}");
    let response = head(&["-d", "x", &format!("http://{plain}/")]);
    assert!(response.starts_with("HTTP/1.1 308"), "{response}");
    // ACME challenges are requested in the clear.
    let challenges = server.folder().join("root/.well-known/acme-challenge");
    std::fs::create_dir_all(&challenges).expect("our own folder");
    std::fs::write(challenges.join("x"), "proof").expect("our own folder");
    let response = head(&[&format!("http://{plain}/.well-known/acme-challenge/x")]);
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    // Other paths are redirected, in each spelling, and so are challenges without a file: the front
    // controller does not run in the clear.
    for path in
        ["y", "..%2f..%2fx", "%2e%2e/%2e%2e/x", "../../x", "x/../../../x", "x%2f..", "a.php"]
    {
        let url = format!("http://{plain}/.well-known/acme-challenge/{path}");
        let response = head(&["--path-as-is", &url]);
        assert!(response.starts_with("HTTP/1.1 301"), "{path}: {response}");
    }
    let response = head(&["-H", "Host: a\"b", &format!("http://{plain}/")]);
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
}

/// For example, if the public ports differ from a container's ports.
#[test]
fn redirecting_address_uses_configured_port() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let server = start.args(["--listen", "127.0.0.1:0?redirect=8444"]).start();
    let plain = format!("http://{}/x", server.addresses("http://")[1]);
    let response = curl(&["-D", "-", "-o", "/dev/null", "-H", "Host: a.example", &plain]).1;
    assert!(response.contains("location: https://a.example:8444/x\r\n"), "{response}");
}

#[test]
fn slow_tls_client_is_closed_in_each_phase() {
    use std::io::Read;
    let folder = folder();
    let (start, _) = secure(folder.path());
    let server = start.args(["--header-timeout", "1s", "--idle-timeout", "1s"]).start();
    let address = server.addresses("https://")[0];
    // No bytes, half a ClientHello, and no ClientHello.
    for said in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut client = samovar_testkit::http::Client::connect(address);
        client.send(said);
        let mut rest = Vec::new();
        let _ = client.stream().read_to_end(&mut rest);
    }
    // The client sends nothing after the handshake, and ignores the server's close.
    let said = handshake(&https(&server), &["-alpn", "h2", "-quiet", "-ign_eof"]);
    assert!(said.contains("depth=0"), "{said}");
    assert_eq!(server_of(&["--http2", &https(&server)])["SERVER_PROTOCOL"], "HTTP/2.0");
}

/// The start of a TLS 1.3 client's first message, which has 512 bytes.
const CLIENT_HELLO_START: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random bytes";
const CONNECTIONS_MAX: usize = 40;

#[test]
fn unfinished_handshakes_of_one_client_keep_no_other_out() {
    for start_bytes in [&b""[..], b"\x16", CLIENT_HELLO_START] {
        let folder = folder();
        let start = secure(folder.path()).0;
        let limit = CONNECTIONS_MAX.to_string();
        let server = start
            .args(["--connections-max", &limit, "--client-connections-max", &limit])
            .args(["--header-timeout", "1h"])
            .start();
        let connections = || server.status()["connections"].as_u64().expect("a number");
        let address = server.addresses("https://")[0];
        let flood: Vec<_> = (0..CONNECTIONS_MAX)
            .map(|_| {
                let mut client = TcpStream::connect(address).expect("it listens");
                client.write_all(start_bytes).expect("it accepts");
                client
            })
            .collect();
        eventually("all are accepted", || (connections() == CONNECTIONS_MAX as u64).then_some(()));
        for newcomer in ["127.0.0.2", "127.0.0.3"] {
            for version in ["--http1.1", "--http2"] {
                let url = format!("{}/", https(&server));
                let found = server_of(&[version, "--interface", newcomer, &url]);
                assert_eq!(found["REMOTE_ADDR"], newcomer, "{start_bytes:?}");
            }
        }
        let reclaimed = &server.status()["connections_unfinished_reclaimed_total"];
        assert!(reclaimed.as_u64().is_some_and(|count| count >= 1), "{reclaimed}");
        drop(flood);
    }
}
