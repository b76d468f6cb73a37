//! Checks whether the applicant controls a name: by a file (RFC 8555, 8.3) or a handshake (RFC
//! 8737).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit for a response: longer than a test waits.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Result of a check; the error is the kind of the problem and its description.
pub(super) type Seen = Result<(), (&'static str, String)>;

pub(super) fn see_file(at: SocketAddr, domain: &str, token: &str, expected: &str) -> Seen {
    let ask = || {
        let mut stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let path = format!("/.well-known/acme-challenge/{token}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {domain}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = ask().map_err(|error: io::Error| ("connection", error.to_string()))?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    if head.starts_with("HTTP/1.1 200") && body == expected {
        return Ok(());
    }
    Err(("unauthorized", format!("{} and not the proof", head.lines().next().unwrap_or_default())))
}

pub(super) fn see_handshake(at: SocketAddr, domain: &str, expected: &str) -> Seen {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &at.to_string(), "-servername", domain])
        .args(["-alpn", "acme-tls/1"])
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.contains("ALPN protocol: acme-tls/1") {
        return Err(("connection", "no handshake".to_owned()));
    }
    let pem = text.split_once("-----BEGIN CERTIFICATE-----").map_or("", |(_, rest)| rest);
    let pem: String = pem.split("-----").next().unwrap_or_default().split_whitespace().collect();
    let der = BASE64_STANDARD.decode(pem).unwrap_or_default();
    let digest = digest::digest(&digest::SHA256, expected.as_bytes());
    // The extension's value: an octet string that contains another one with the digest.
    let wanted = [&[0x04, 0x22, 0x04, 0x20][..], digest.as_ref()].concat();
    if der.windows(wanted.len()).any(|window| window == wanted) {
        return Ok(());
    }
    Err(("unauthorized", "another certificate".to_owned()))
}
