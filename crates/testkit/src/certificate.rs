//! Certificates for tests, created by openssl.

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
    /// Creates a self-signed certificate. `names` has openssl's format:
    /// `DNS:a.example,IP:127.0.0.1`.
    pub fn own(folder: &Path, file: &str, names: &str) -> Certificate {
        Certificate::make(folder, file, names, None)
    }

    /// Creates a certificate signed by another one.
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

    /// Signs the list of revoked certificates: a PEM file, valid for `seconds`.
    pub fn revoke(&self, others: &[&Certificate], folder: &Path, seconds: u32) -> PathBuf {
        let (index, config) = (folder.join("revoked.txt"), folder.join("revoked.cnf"));
        let lines = others.iter().map(|other| {
            let serial = other.serial();
            format!("R\t400101000000Z\t260101000000Z\t{serial}\tunknown\t/CN=x\n")
        });
        std::fs::write(&index, lines.collect::<String>()).expect("our own file");
        let text = format!(
            "[ca]\ndefault_ca = own\n[own]\ndatabase = {}\ndefault_md = sha256\n\
             crl_extensions = more\n\
             [more]\nauthorityKeyIdentifier = keyid\n",
            index.display()
        );
        std::fs::write(&config, text).expect("our own file");
        let list = self.chain.with_extension("crl");
        let mut command = Command::new("openssl");
        command.args(["ca", "-gencrl", "-crlsec", &seconds.to_string(), "-config"]).arg(&config);
        command.arg("-cert").arg(&self.chain).arg("-keyfile").arg(&self.key).arg("-out").arg(&list);
        let done = command.output().expect("openssl runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        list
    }

    /// Serial number as openssl writes it, in hexadecimal digits.
    fn serial(&self) -> String {
        let told = Command::new("openssl")
            .args(["x509", "-noout", "-serial", "-in"])
            .arg(&self.chain)
            .output()
            .expect("openssl runs");
        String::from_utf8_lossy(&told.stdout).trim().replace("serial=", "")
    }

    /// Signs the OCSP response for `other`, which this certificate has issued: the file that a
    /// server staples.
    pub fn vouch_for(&self, other: &Certificate, folder: &Path) {
        let index = folder.join("index.txt");
        let line = format!("V\t400101000000Z\t\t{}\tunknown\t/CN=x\n", other.serial());
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
