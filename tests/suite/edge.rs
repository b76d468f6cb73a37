//! The server at the edge: TLS, HTTP/2, Unix sockets, and various proxies in front of it.

mod alike;
mod certificates;
mod idle;
mod listeners;
mod proxies;
mod secure;

use samovar_testkit::{Certificate, Server, Start};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const NAMES: &str = "DNS:localhost,IP:127.0.0.1";

/// The application over HTTP and TLS, with a certificate in `folder`.
fn secure(folder: &Path) -> (Start, Certificate) {
    let certificate = Certificate::own(folder, "own", NAMES);
    (start(&certificate), certificate)
}

fn start(certificate: &Certificate) -> Start {
    let path = certificate.chain.display().to_string();
    let start = Server::app("edge").workers(2).args(["--listen", "https://127.0.0.1:0"]);
    start.args(["--tls-certificates", &path])
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn https(server: &Server) -> String {
    format!("https://{}", server.addresses("https://").first().expect("it listens"))
}

/// Runs curl. Returns its exit code and its output.
fn curl(args: &[&str]) -> (i32, String) {
    let output = Command::new("curl").args(["-sS", "-k", "-m", "20"]).args(args).output();
    let output = output.expect("curl is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

/// `$_SERVER` of a request that curl makes.
fn server_of(args: &[&str]) -> Value {
    let (code, text) = curl(args);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("curl {args:?}: {code}, {e}: {text}"))
}

/// Output of `openssl s_client` when it connects to `url`.
fn handshake(url: &str, args: &[&str]) -> String {
    let address = url.trim_start_matches("https://");
    let output = Command::new("openssl")
        .args(["s_client", "-connect", address])
        .args(args)
        .stdin(std::process::Stdio::null())
        .output()
        .expect("openssl runs");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
