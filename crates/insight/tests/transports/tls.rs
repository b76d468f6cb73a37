//! A collector with TLS: OpenSSL's server with a certificate that is trusted only after a setting.

use crate::otlp::{await_fates, stage};
use crate::stage::{report, request};
use samovar_testkit::eventually;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

struct Server {
    process: Child,
    endpoint: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn certificate() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = Command::new("openssl")
        .current_dir(folder.path())
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=collector"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .expect("openssl is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// Returns a server that accepts the first request.
fn serve(folder: &Path) -> Server {
    let mut process = Command::new("openssl")
        .current_dir(folder)
        .args(["s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is there");
    let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("ACCEPT ") {
        line.clear();
        assert!(output.read_line(&mut line).expect("openssl prints") > 0, "openssl has ended");
    }
    let endpoint = format!("https://{}", line["ACCEPT ".len()..].trim());
    // The output is read to its end, so that the server never blocks on it.
    std::thread::spawn(move || output.lines().count());
    let mut stdin = process.stdin.take().expect("a pipe");
    stdin.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("openssl reads");
    process.stdin = Some(stdin);
    Server { process, endpoint }
}

#[test]
fn untrusted_certificate_of_collector_is_rejected() {
    let folder = certificate();
    let server = serve(folder.path());
    let (mut trusting, told) = stage(&server.endpoint, |options| {
        options.roots = Some(folder.path().join("cert.pem"));
    });
    trusting.serve(&request(&report()), 1);
    await_fates(&trusting, (5, 0, 0));
    assert!(told.lock().expect("nobody panicked").is_empty());
    trusting.finish();

    let server = serve(folder.path());
    let other = certificate();
    let (mut doubting, told) = stage(&server.endpoint, |options| {
        options.roots = Some(other.path().join("cert.pem"));
    });
    doubting.serve(&request(&report()), 1);
    let words = eventually("the certificate is refused", || {
        told.lock().expect("nobody panicked").first().cloned()
    });
    assert!(words.contains("certificate"), "{words}");
    doubting.finish();
    assert_eq!(doubting.fates("otlp_spans").0, 0);
}
