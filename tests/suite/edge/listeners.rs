//! Unix sockets, and the PROXY protocol.

use super::*;
use samovar_testkit::http::Client;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;

#[test]
fn unix_socket_replaces_stale_socket_only() {
    let folder = folder();
    let path = folder.path().join("s.sock");
    let shown = path.display().to_string();
    let listen = format!("unix:{shown}");
    let start = || Server::app("edge").workers(1).args(["--listen", &listen]);
    // The socket of a dead server is replaced. The socket of a running server and a regular file
    // are not.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("our own folder"));
    let server = start().start();
    let found = std::fs::metadata(&path).expect("it is there");
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o660);
    let (_, log) = start().refuse();
    assert!(log.contains(&format!("cannot bind `{listen}`")) && log.contains("hint: "), "{log}");
    let found = server_of(&["--unix-socket", &shown, "http://some.example/x"]);
    for (key, value) in [
        ("REMOTE_ADDR", "unix:"),
        ("SERVER_ADDR", &listen),
        ("SERVER_PORT", "80"),
        ("HTTP_HOST", "some.example"),
        ("REQUEST_URI", "/x"),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    let forged = ["-H", "X-Forwarded-For: 192.0.2.7", "--unix-socket", &shown, "http://x/"];
    assert_eq!(server_of(&forged)["REMOTE_ADDR"], "unix:");
    drop(server);
    assert!(!path.exists(), "its file goes with it");
    std::fs::write(&path, "mine").expect("our own folder");
    let (_, log) = start().refuse();
    assert!(log.contains("cannot bind"), "{log}");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "mine");
}

#[test]
fn unix_socket_client_can_be_trusted_proxy() {
    let folder = folder();
    let shown = folder.path().join("s.sock").display().to_string();
    let listen = format!("unix:{shown}?mode=0600");
    let trusted = ["--listen", &listen, "--trusted-proxies", "unix:"];
    let server = Server::app("edge").workers(1).args(trusted).start();
    let found = server_of(&[
        "-H",
        "X-Forwarded-For: 192.0.2.7",
        "-H",
        "X-Forwarded-Proto: https",
        "--unix-socket",
        &shown,
        "http://x/",
    ]);
    assert_eq!((&found["REMOTE_ADDR"], &found["HTTPS"]), (&"192.0.2.7".into(), &"on".into()));
    assert_eq!(found["SERVER_PORT"], "443");
    let by_port =
        server_of(&["-H", "X-Forwarded-For: 192.0.2.7", &format!("http://{}", server.address())]);
    assert_eq!(by_port["REMOTE_ADDR"], "127.0.0.1");
    let mode = std::fs::metadata(&shown).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn proxied() -> (Server, std::net::SocketAddr) {
    let start = Server::app("edge").workers(1).args(["--header-timeout", "1s"]);
    let server = start.args(["--listen", "127.0.0.1:0?proxy"]).start();
    let address = server.addresses("http://")[1];
    (server, address)
}

#[test]
fn proxy_header_sets_client_and_server_address() {
    let (_server, address) = proxied();
    let ask = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let block = [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x2c"[..],
        &[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0; 15],
        &[2],
        &[0x12, 0x67, 1, 0xbb],
        &[0x20, 0, 5, 1, 0, 0, 0, 0],
    ]
    .concat();
    let cases: [(&[u8], [&str; 4]); 3] = [
        (
            b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n",
            ["192.0.2.1", "4711", "198.51.100.2", "443"],
        ),
        (&block, ["2001:db8::1", "4711", "::2", "443"]),
        (b"PROXY UNKNOWN\r\n", ["127.0.0.1", "", "127.0.0.1", ""]),
    ];
    for (header, [client, client_port, server, port]) in cases {
        // In one write, in pieces, and byte by byte.
        for cut in [header.len() + ask.len(), header.len(), 1] {
            let mut stream = Client::connect(address);
            for piece in [header, ask].concat().chunks(cut) {
                stream.send(piece);
            }
            let found: Value = serde_json::from_str(&stream.read(false).text()).expect("JSON");
            assert_eq!(
                (&found["REMOTE_ADDR"], &found["SERVER_ADDR"]),
                (&client.into(), &server.into())
            );
            if !port.is_empty() {
                assert_eq!(
                    (&found["REMOTE_PORT"], &found["SERVER_PORT"]),
                    (&client_port.into(), &port.into())
                );
            }
            let is_https = header == block;
            assert_eq!(found["REQUEST_SCHEME"], if is_https { "https" } else { "http" });
            stream.send(ask);
            assert_eq!(stream.read(false).status, 200, "the next one has no header");
        }
    }
}

#[test]
fn connection_without_proxy_header_is_closed_without_response() {
    let (server, address) = proxied();
    for said in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"PROXY TCP4 nonsense\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PROXY TCP4 192.0.2.1",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
        b"",
    ] {
        let mut stream = Client::connect(address);
        stream.send(said);
        let mut rest = Vec::new();
        let _ = stream.stream().read_to_end(&mut rest);
        assert!(rest.is_empty(), "{said:?}: {}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(server.get("/").status, 200, "where none is wanted");
    let mut plain = server.client();
    plain.send(b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(plain.read(false).status, 400);
}

#[test]
fn proxy_header_from_untrusted_address_is_rejected() {
    let header = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for (trusted, is_responded) in [("127.0.0.1", true), ("10.0.0.0/8", false)] {
        let listen = ["--listen", "127.0.0.1:0?proxy", "--trusted-proxies", trusted];
        let server = Server::app("edge").workers(1).args(listen).start();
        let mut stream = Client::connect(server.addresses("http://")[1]);
        stream.send(header);
        let mut said = [0; 1];
        let has_said = matches!(stream.stream().read(&mut said), Ok(1));
        assert_eq!(has_said, is_responded, "{trusted}");
    }
}

#[test]
fn proxy_header_precedes_tls_handshake() {
    let folder = folder();
    let (start, _) = secure(folder.path());
    let shown = folder.path().join("t.sock").display().to_string();
    let server = start
        .args(["--listen", "https://127.0.0.1:0?proxy", "--listen", &format!("https+unix:{shown}")])
        .start();
    let url = format!("https://{}", server.addresses("https://")[1]);
    for version in ["--http1.1", "--http2"] {
        assert_eq!(server_of(&["--haproxy-protocol", version, &url])["HTTPS"], "on");
        assert_eq!(
            server_of(&[version, "--unix-socket", &shown, "https://localhost/"])["HTTPS"],
            "on"
        );
    }
    assert_ne!(curl(&[&url]).0, 0);
    let mut plain = UnixStream::connect(&shown).expect("it listens");
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said);
    let is_told = said.starts_with("HTTP/1.1 400 ") && said.ends_with("starts with https://.\n");
    assert!(is_told, "that is no TLS: {said}");
}
