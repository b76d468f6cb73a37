//! Certificates issued by an ACME authority: fetched, stored, renewed. The server keeps running
//! when the authority misbehaves.

mod pebble;
mod trouble;

use samovar_testkit::{Authority, AuthorityBehaviour, Certificate, Server, Start, eventually};
use serde_json::Value;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const NAME: &str = "www.shop.example";
const DAY: Duration = Duration::from_hours(24);

/// An authority, and the folder in which the server under test stores its files.
struct Bench {
    folder: TempDir,
    authority: Authority,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let authority = Authority::start(folder.path());
        Bench { folder, authority }
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept/acme")
    }

    fn start(&self, domain: &str) -> Start {
        let (directory, roots) = (self.authority.directory(), self.authority.roots().display());
        Server::script("<?php echo 'a page';")
            .workers(1)
            .args(["--listen", "https://127.0.0.1:0", "--domain", domain])
            .args(["--acme-directory", &directory, "--acme-ca", &roots.to_string()])
            .args(["--acme-folder", &self.kept().display().to_string()])
    }

    /// Gives the authority the server's addresses; from now on its challenges reach the server.
    fn shown(&self, server: &Server) {
        self.authority.look_at(Some(server.address()), Some(https(server)));
    }
}

fn https(server: &Server) -> SocketAddr {
    *server.addresses("https://").first().expect("it listens")
}

/// Serial number and subject alternative names of the certificate that a client receives for
/// `name`.
fn shown_for(server: &Server, name: &str) -> Option<String> {
    let client = Command::new("openssl")
        .args(["s_client", "-connect", &https(server).to_string(), "-servername", name])
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    let text = String::from_utf8_lossy(&client.stdout).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE-----")?;
    let end = text.find("-----END CERTIFICATE-----")?;
    let pem = &text[begin..end];
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{pem}-----END CERTIFICATE-----\n")).expect("our file");
    let told = Command::new("openssl")
        .args(["x509", "-noout", "-serial", "-ext", "subjectAltName", "-in"])
        .arg(file.path())
        .output()
        .expect("openssl runs");
    Some(String::from_utf8_lossy(&told.stdout).into_owned())
}

fn wait_for_certificate(server: &Server, name: &str) -> String {
    eventually("the certificate", || shown_for(server, name).filter(|told| told.contains(name)))
}

fn certificate_of(server: &Server, index: usize) -> Value {
    server.status()["certificates"][index].clone()
}

/// All files below `folder`, with their permissions.
fn files(folder: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push((entry.file_name().to_string_lossy().into_owned(), mode));
        }
    }
    found.sort();
    found
}

#[test]
fn issued_certificate_is_stored_and_reused() {
    let bench = Bench::new();
    let own = Certificate::own(bench.folder.path(), "own", "DNS:own.example");
    let chain = own.chain.display().to_string();
    let email = ["--acme-email", "me@shop.example", "--tls-certificates", &chain];
    let server = bench.start("WWW.Shop.example.").args(email).start();
    // Until the certificate arrives, this name has none. Other names have theirs.
    assert!(shown_for(&server, NAME).is_none());
    assert!(shown_for(&server, "own.example").is_some_and(|told| told.contains("own.example")));
    assert_eq!(certificate_of(&server, 0)["valid_until"], Value::Null);
    bench.shown(&server);
    let told = wait_for_certificate(&server, NAME);
    server.wait_for_log("a certificate for www.shop.example is in use");
    assert_eq!(bench.authority.issued(), [format!("{NAME} http-01")]);
    assert_eq!(bench.authority.contacts(), [serde_json::json!(["mailto:me@shop.example"])]);
    let names = ["account.json", "lock", "www.shop.example.pem"];
    assert_eq!(files(&bench.kept()), names.map(|name| (name.to_owned(), 0o600)));
    let status = certificate_of(&server, 0);
    let (until, renewal) = (status["valid_until"].as_u64(), status["renewal"].as_u64());
    let left = Duration::from_secs(until.expect("it ends") - renewal.expect("it is renewed"));
    assert!(left >= 30 * DAY && left < 33 * DAY, "{status}");
    // The challenge response is no longer served.
    let token = format!("token-0-{}", std::process::id());
    let asked = server.get(&format!("/.well-known/acme-challenge/{token}"));
    assert!(!asked.text().contains(&token), "{asked:?}");
    server.stop();
    // The next server has the certificate immediately and places no order. The changed e-mail
    // address is sent to the authority.
    let server = bench.start(NAME).args(["--acme-email", "you@shop.example"]).start();
    assert_eq!(shown_for(&server, NAME), Some(told.clone()));
    // A second server with the same folder places no order either.
    let beside = bench.start(NAME).start();
    assert_eq!(shown_for(&beside, NAME), Some(told));
    assert_eq!(bench.authority.orders(), 1);
}

#[test]
fn tls_alpn_challenge_issues_certificate() {
    let bench = Bench::new();
    let ca = bench.authority.roots().display().to_string();
    // All other clients must present a certificate.
    let clients = ["--tls-client-ca", &ca, "--tls-client-certificates", "required"];
    let server = bench.start(NAME).args(["--acme-challenge", "tls-alpn-01"]).args(clients).start();
    bench.shown(&server);
    wait_for_certificate(&server, NAME);
    assert_eq!(bench.authority.issued(), [format!("{NAME} tls-alpn-01")]);
}

#[test]
fn certificate_due_for_renewal_is_renewed_without_restart() {
    let bench = Bench::new();
    bench.authority.issue_for(Duration::from_secs(6));
    let server = bench.start(NAME).start();
    bench.shown(&server);
    let first = wait_for_certificate(&server, NAME);
    eventually("another certificate", || {
        shown_for(&server, NAME).filter(|told| told.contains(NAME) && *told != first)
    });
    assert_eq!(server.get("/").text(), "a page");
}

#[test]
fn authority_failure_is_logged_and_pages_are_still_served() {
    let bench = Bench::new();
    let server = bench.start(NAME).start();
    bench.authority.look_at(None, None);
    server.wait_for_log("nobody is there (connection)");
    assert!(
        server
            .log()
            .contains("hint: make sure that the authority can reach this server on port 80")
    );
    let status = eventually("a failure", || {
        let status = certificate_of(&server, 0);
        (status["failures"] == 1).then_some(status)
    });
    assert!(status["trouble"].as_str().is_some_and(|why| why.contains("nobody is there")));
    for (mood, said) in [
        (AuthorityBehaviour::Overrun(7200), "too many (rateLimited)"),
        (AuthorityBehaviour::Mad, "invalid response from the authority"),
        (AuthorityBehaviour::Lying, "no certificate: "),
        (AuthorityBehaviour::Careless, "is not for `www.shop.example`"),
    ] {
        bench.shown(&server);
        bench.authority.be(mood);
        let failures = certificate_of(&server, 0)["failures"].as_u64().expect("a number");
        // A reload retries immediately.
        server.reload().expect("it reloads");
        eventually("the next failure", || {
            (certificate_of(&server, 0)["failures"].as_u64() > Some(failures)).then_some(())
        });
        server.wait_for_log(said);
        assert!(shown_for(&server, NAME).is_none(), "{mood:?}");
        assert_eq!(server.get("/").text(), "a page", "{mood:?}");
        if let AuthorityBehaviour::Overrun(seconds) = mood {
            server.wait_for_log(&format!("next attempt in {seconds} s"));
        }
    }
    // Nonces that the authority forgot are requested again; a lost account is created again.
    bench.authority.be(AuthorityBehaviour::Good);
    bench.authority.forget();
    server.reload().expect("it reloads");
    server.wait_for_log("does not know this account");
    bench.authority.be(AuthorityBehaviour::Forgetful);
    server.reload().expect("it reloads");
    wait_for_certificate(&server, NAME);
    assert_eq!(bench.authority.refused_nonces(), 2);
    assert_eq!(certificate_of(&server, 0)["failures"], 0);
}

#[test]
fn unusable_folder_prevents_certificate_order() {
    let bench = Bench::new();
    bench.authority.look_at(None, None);
    std::fs::create_dir(bench.folder.path().join("kept")).expect("our own folder");
    std::fs::write(bench.kept(), "a file").expect("our own file");
    let server = bench.start(NAME).start();
    server.wait_for_log("no certificate is ordered: cannot use the certificate folder");
    assert_eq!((bench.authority.orders(), bench.authority.contacts().len()), (0, 0));
    assert_eq!(server.get("/").text(), "a page");
    // After the repair, the server fetches the certificate.
    std::fs::remove_file(bench.kept()).expect("our own file");
    bench.shown(&server);
    server.reload().expect("it reloads");
    wait_for_certificate(&server, NAME);
}

#[test]
fn corrupt_stored_account_and_certificate_are_replaced() {
    let bench = Bench::new();
    let place = format!("at-127.0.0.1-{}-directory", bench.authority.port());
    let place = bench.kept().join(place);
    std::fs::create_dir_all(&place).expect("our own folder");
    std::fs::write(place.join("account.json"), "{").expect("our own file");
    std::fs::write(place.join(format!("{NAME}.pem")), "no PEM").expect("our own file");
    let server = bench.start(NAME).start();
    bench.shown(&server);
    wait_for_certificate(&server, NAME);
    assert!(server.log().contains("stored certificate cannot be used"), "{}", server.log());
    assert!(place.join("account.unusable").exists());
}

#[test]
fn external_account_binding_is_required_and_used() {
    let bench = Bench::new();
    bench.authority.want_external("kid-1", b"a secret of thirty-two bytes here");
    let server = bench.start(NAME).start();
    server.wait_for_log("set `acme.eab_id` and `acme.eab_key`");
    drop(server);
    let key = "YSBzZWNyZXQgb2YgdGhpcnR5LXR3byBieXRlcyBoZXJl";
    let server = bench.start(NAME).args(["--acme-eab-id", "kid-1"]);
    let server = server.env("SAMOVAR_ACME_EAB_KEY", key).start();
    bench.shown(&server);
    wait_for_certificate(&server, NAME);
}

#[test]
fn order_without_agreed_terms_is_not_placed() {
    let bench = Bench::new();
    let server = bench.start(NAME).args(["--acme-agree", "false"]).start();
    server.wait_for_log("the authority's terms are not agreed to");
    assert_eq!(bench.authority.contacts().len(), 0);
}

#[test]
fn reload_and_upgrade_keep_certificate() {
    let bench = Bench::new();
    let server = bench.start(NAME).start();
    bench.shown(&server);
    let told = wait_for_certificate(&server, NAME);
    server.reload().expect("it reloads");
    assert_eq!(shown_for(&server, NAME), Some(told.clone()));
    server.upgrade([]).expect("it is followed");
    assert_eq!(shown_for(&server, NAME), Some(told));
    assert_eq!(bench.authority.orders(), 1);
}
