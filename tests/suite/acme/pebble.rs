//! Pebble, the authority that Let's Encrypt has for tests: orders, renewals, both ways of a proof, and nonces that it refuses for the
//! exercise.
//!
//! `make pebble` builds it. Names lead here by a server for names that knows one address.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;

/// Nonces of a hundred that it refuses, and proofs of a hundred that it does not want to see again.
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

/// Answers each question for an address of IPv4 with this machine's own, and all others with nothing; Pebble asks over TCP.
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

/// `None`: there is no more.
fn answer_name(asker: &mut TcpStream) -> Option<()> {
    let mut length = [0; 2];
    asker.read_exact(&mut length).ok()?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    asker.read_exact(&mut question).ok()?;
    // Behind a head of twelve bytes a name, which ends with a zero, and what is asked: type and class.
    let end = 12 + question.get(12..)?.iter().position(|byte| *byte == 0)? + 5;
    let is_ipv4 = question.get(end - 4..end - 2)? == [0, 1];
    let counts = [0, 1, 0, u8::from(is_ipv4), 0, 0, 0, 0];
    let mut answer = [&question[..2], &[0x81, 0x80], &counts, question.get(12..end)?].concat();
    if is_ipv4 {
        // The name of the question, an address of IPv4, for a second.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    }
    let length = u16::try_from(answer.len()).ok()?;
    asker.write_all(&[&length.to_be_bytes()[..], &answer].concat()).ok()
}

/// One that looks for proofs at the ports of `server`, and listens at `at`; what it issues is valid for `life`.
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

/// A server that proves its name by `challenge`, and Pebble.
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

/// Waits for another certificate than `before`. What Pebble has refused is tried again by a reload, which a minute would do, too.
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
fn pebble_issues_and_renews_by_http() {
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
fn pebble_issues_and_renews_by_handshakes() {
    let (server, pebble) = begin("tls-alpn-01", Duration::from_secs(30));
    let first = another(&server, &pebble, None);
    another(&server, &pebble, Some(&first));
    println!("server:\n{}\npebble:\n{}", server.log(), pebble.log());
    server.stop();
}

/// Refused nonces are met without anybody's help: ten orders, each of an account of its own. Of a hundred nonces ten are refused, and
/// an attempt ends only with three in a row.
#[test]
#[ignore = "needs Pebble: make pebble"]
fn refused_nonces_are_asked_for_again() {
    let mut failures = 0;
    for _ in 0..10 {
        let (server, pebble) = begin("http-01", DAY);
        another(&server, &pebble, None);
        failures += server.log().matches("(badNonce)").count();
    }
    println!("{failures} attempts failed by refused nonces");
    assert!(failures <= 2, "{failures} attempts failed by refused nonces");
}
