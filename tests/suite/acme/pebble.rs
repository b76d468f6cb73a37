//! Pebble, Let's Encrypt's authority for tests: orders, renewals, both challenge types, and nonces
//! that it rejects on purpose.
//!
//! `make pebble` builds it. A DNS server of the test resolves all names to this machine.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;

/// Percentage of nonces that Pebble rejects, and percentage of authorizations that it reuses.
const NONCES_REFUSED: &str = "10";
const PROOFS_REUSED: &str = "50";

struct Pebble {
    process: Child,
    folder: TempDir,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.process);
    }
}

/// Starts a DNS server: queries for an IPv4 address return this machine's, all others return no
/// record. Pebble queries over TCP.
fn names() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut asker in listener.incoming().flatten() {
            std::thread::spawn(move || while answer_name(&mut asker).is_some() {});
        }
    });
    address
}

/// Returns `None` when there are no more queries.
fn answer_name(asker: &mut TcpStream) -> Option<()> {
    let mut length = [0; 2];
    asker.read_exact(&mut length).ok()?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    asker.read_exact(&mut question).ok()?;
    // The name follows the twelve bytes of the header and ends with a zero byte. Type and class
    // follow it.
    let end = 12 + question.get(12..)?.iter().position(|byte| *byte == 0)? + 5;
    let is_ipv4 = question.get(end - 4..end - 2)? == [0, 1];
    let counts = [0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0];
    let mut answer = [&question[..2], &[0x81, 0x80], &counts, question.get(12..end)?].concat();
    if is_ipv4 {
        // The question's name, an IPv4 address, valid for one second.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    let length = u16::try_from(answer.len()).ok()?;
    asker.write_all(&[&length.to_be_bytes()[..], &answer].concat()).ok()
}

/// Starts a Pebble that validates challenges at the ports of `server` and listens at `at`. Its
/// certificates are valid for `life`.
fn pebble(server: &Server, at: SocketAddr, folder: TempDir, life: Duration) -> Pebble {
    let file = |name: &str| folder.path().join(name).display().to_string();
    let config = serde_json::json!({"pebble": {
        "listenAddress": at.to_string(),
        "managementListenAddress": samovar_testkit::port().to_string(),
        "certificate": file("pebble-server.pem"),
        "privateKey": file("pebble-server.key"),
        "httpPort": server.address().port(),
        "tlsPort": https(server).port(),
        "ocspResponderURL": "",
        "externalAccountBindingRequired": false,
        "retryAfter": {"authz": 1, "order": 1},
        "keyAlgorithm": "ecdsa",
        "profiles": {"default": {"description": "of a test", "validityPeriod": life.as_secs()}},
    }});
    std::fs::write(file("pebble.json"), config.to_string()).expect("our own file");
    let binary = std::env::var_os("PEBBLE_BIN").expect("PEBBLE_BIN names pebble: make pebble");
    let log = std::fs::File::create(file("pebble.log")).expect("our own file");
    let process = Command::new(binary)
        .args(["-config", &file("pebble.json"), "-dnsserver", &names().to_string()])
        .env("PEBBLE_WFE_NONCEREJECT", NONCES_REFUSED)
        .env("PEBBLE_AUTHZREUSE", PROOFS_REUSED)
        .env("PEBBLE_VA_NOSLEEP", "1")
        .stderr(log.try_clone().expect("a descriptor"))
        .stdout(log)
        .spawn()
        .expect("it was built");
    let mut pebble = Pebble { process, folder };
    eventually("Pebble's port", || {
        assert!(pebble.process.try_wait().expect("our child").is_none(), "{}", pebble.log());
        TcpStream::connect(at).ok()
    });
    pebble
}

impl Pebble {
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("pebble.log")).unwrap_or_default()
    }
}

/// Starts a server that proves its name by `challenge`, and Pebble.
fn begin(challenge: &str, life: Duration) -> (Server, Pebble) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let issuer = Certificate::own(folder.path(), "pebble-issuer", "DNS:issuer");
    Certificate::signed(folder.path(), "pebble-server", "IP:127.0.0.1", &issuer);
    let at = samovar_testkit::port();
    let server = Server::script("<?php echo 'a page';")
        .workers(1)
        .args(["--listen", "https://127.0.0.1:0", "--domain", NAME, "--acme-challenge", challenge])
        .args(["--acme-directory", &format!("https://{at}/dir")])
        .args(["--acme-ca", &issuer.chain.display().to_string()])
        .args(["--acme-folder", &folder.path().join("kept").display().to_string()])
        .start();
    let pebble = pebble(&server, at, folder, life);
    (server, pebble)
}

/// Waits for a certificate other than `before`. After a rejection by Pebble, a reload retries at
/// once; without it the server would retry after a minute.
fn another(server: &Server, pebble: &Pebble, before: Option<&String>) -> String {
    eventually("another certificate", || {
        if certificate_of(server, 0)["failures"] != 0 {
            server.reload().expect("it reloads");
        }
        assert!(!pebble.log().contains("panic"), "{}", pebble.log());
        shown_for(server, NAME).filter(|told| told.contains(NAME) && Some(told) != before)
    })
}

#[test]
#[ignore = "needs Pebble: make pebble"]
fn pebble_issues_and_renews_by_http_challenge() {
    let (server, pebble) = begin("http-01", Duration::from_secs(30));
    let first = another(&server, &pebble, None);
    let second = another(&server, &pebble, Some(&first));
    another(&server, &pebble, Some(&second));
    assert_eq!(server.get("/").text(), "a page");
    println!("server:\n{}\npebble:\n{}", server.log(), pebble.log());
    server.stop();
}

#[test]
#[ignore = "needs Pebble: make pebble"]
fn pebble_issues_and_renews_by_tls_alpn_challenge() {
    let (server, pebble) = begin("tls-alpn-01", Duration::from_secs(30));
    let first = another(&server, &pebble, None);
    another(&server, &pebble, Some(&first));
    println!("server:\n{}\npebble:\n{}", server.log(), pebble.log());
    server.stop();
}

/// Rejected nonces are retried automatically. The test places ten orders, each with its own
/// account. Ten of a hundred nonces are rejected, and an attempt fails only after three rejections
/// in a row.
#[test]
#[ignore = "needs Pebble: make pebble"]
fn rejected_nonces_are_requested_again() {
    let mut failures = 0;
    for _ in 0..10 {
        let (server, pebble) = begin("http-01", DAY);
        another(&server, &pebble, None);
        failures += server.log().matches("(badNonce)").count();
    }
    println!("{failures} attempts failed by refused nonces");
    assert!(failures <= 2, "{failures} attempts failed by refused nonces");
}
