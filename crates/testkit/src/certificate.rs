//! Certificates for tests, made by openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A certificate and its key, in files.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// PEM: the certificate.
    pub chain: PathBuf,
    /// PEM: its key.
    pub key: PathBuf,
}

impl Certificate {
    /// Signs itself. `names`: as openssl has them, `DNS:a.example,IP:127.0.0.1`.
    pub fn own(folder: &Path, file: &str, names: &str) -> Certificate {
        Certificate::make(folder, file, names, None)
    }

    /// Signed by another one.
    pub fn signed(folder: &Path, file: &str, names: &str, by: &Certificate) -> Certificate {
        Certificate::make(folder, file, names, Some(by))
    }

    fn make(folder: &Path, file: &str, names: &str, by: Option<&Certificate>) -> Certificate {
        let made = Certificate {
            chain: folder.join(format!("{file}.pem")),
            key: folder.join(format!("{file}.key")),
        };
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "30", "-newkey", "ec"]);
        command.args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj"]);
        command.arg(format!("/C=DE/O=Tests, Inc./CN={file}"));
        command.args(["-addext", &format!("subjectAltName={names}")]);
        command.arg("-out").arg(&made.chain).arg("-keyout").arg(&made.key);
        if let Some(by) = by {
            command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
            command.arg("-CA").arg(&by.chain).arg("-CAkey").arg(&by.key);
        }
        let done = command.stderr(Stdio::null()).status().expect("openssl runs");
        assert!(done.success(), "openssl makes a certificate");
        made
    }

    /// Signs what `openssl ocsp` says of `other`, which it has issued: the file that a server staples.
    pub fn vouch_for(&self, other: &Certificate, folder: &Path) {
        let index = folder.join("index.txt");
        let serial = Command::new("openssl")
            .args(["x509", "-noout", "-serial", "-in"])
            .arg(&other.chain)
            .output()
            .expect("openssl runs");
        let serial = String::from_utf8_lossy(&serial.stdout).trim().replace("serial=", "");
        let line = format!("V\t400101000000Z\t\t{serial}\tunknown\t/CN=x\n");
        std::fs::write(&index, line).expect("our own file");
        let mut staple = other.chain.clone().into_os_string();
        staple.push(".ocsp");
        let done = Command::new("openssl")
            .args(["ocsp", "-ndays", "7", "-index"])
            .arg(&index)
            .arg("-rsigner")
            .arg(&self.chain)
            .arg("-rkey")
            .arg(&self.key)
            .arg("-CA")
            .arg(&self.chain)
            .arg("-issuer")
            .arg(&self.chain)
            .arg("-cert")
            .arg(&other.chain)
            .arg("-respout")
            .arg(&staple)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("openssl runs");
        assert!(done.success(), "openssl vouches for a certificate");
    }
}
