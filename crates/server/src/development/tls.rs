//! Certificate of `samovar dev --tls`: in the user's data folder, created at the first start, and
//! renewed while the server runs. crates/acme makes the files.

use super::terminal::Terminal;
use anyhow::{Context, Result, anyhow};
use samovar_acme::{LocalAuthority, Refreshed};
use std::ffi::OsString;
use std::fs::{File, read};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folder below the user's data folder.
const FOLDER: &str = "samovar/dev";
/// Pause between two looks at the certificate, which is renewed weeks before its end. The server
/// reads changed files itself.
const LOOK: Duration = Duration::from_hours(12);
/// Maximum number of bytes read of the system's list of trusted certificates.
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Lists of the certificates that the system trusts.
const LISTS: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"];

/// The user's own authority.
#[derive(Clone, Debug)]
pub struct LocalTls(LocalAuthority);

impl LocalTls {
    /// Creates or renews the files in `$XDG_DATA_HOME`, or in `~/.local/share`.
    ///
    /// # Errors
    /// The user has no home folder, or the files cannot be created.
    pub fn open() -> Result<LocalTls> {
        let LocalTls(authority) = LocalTls::find()?;
        authority.refresh(SystemTime::now()).with_context(|| {
            let certificate = authority.certificate();
            format!(
                "cannot create a certificate in `{}`\nhint: make the folder writable, or set \
                 XDG_DATA_HOME to another one",
                certificate.parent().unwrap_or(&certificate).display()
            )
        })?;
        Ok(LocalTls(authority))
    }

    /// The same, but creates nothing: the files may be missing.
    ///
    /// # Errors
    /// The user has no home folder.
    pub fn find() -> Result<LocalTls> {
        let folder = folder(|name| std::env::var_os(name)).ok_or_else(|| {
            anyhow!(
                "no folder for certificates\nhint: set HOME or XDG_DATA_HOME to an absolute path"
            )
        })?;
        let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
        let user = user.as_deref().unwrap_or("this-user");
        Ok(LocalTls(LocalAuthority::new(&folder, user)))
    }

    /// The certificate that clients must trust.
    pub fn authority(&self) -> PathBuf {
        self.0.authority()
    }

    /// Name of the authority in lists of certificates.
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// The server's certificate, chain and key.
    pub fn certificate(&self) -> PathBuf {
        self.0.certificate()
    }

    /// End of the authority's validity.
    pub fn ends(&self) -> Option<SystemTime> {
        self.0.ends()
    }

    /// Whether the system trusts the authority. Browsers may have lists of their own.
    pub fn is_trusted(&self) -> bool {
        read(self.authority())
            .is_ok_and(|pem| LISTS.iter().any(|list| contains(Path::new(list), &pem)))
    }

    pub(super) fn note(&self) -> String {
        format!(
            "browsers and curl do not trust the certificate yet: run `samovar dev trust`, or \
             curl --cacert {}",
            self.authority().display()
        )
    }

    /// Starts the thread that renews the certificate.
    pub(super) fn keep(self, terminal: Terminal) -> Result<()> {
        std::thread::Builder::new().name("dev-tls".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(LOOK);
                match self.0.refresh(SystemTime::now()) {
                    Ok(Refreshed::Nothing | Refreshed::Certificate) => {}
                    // The lists of the system and of browsers have the former one.
                    Ok(Refreshed::Authority) => terminal.warn(&self.note()),
                    Err(error) => terminal.warn(&format!(
                        "cannot renew the certificate `{}`: {error}",
                        self.certificate().display()
                    )),
                }
            }
        })?;
        Ok(())
    }
}

/// Returns the folder of the files. Relative paths are ignored, as the XDG specification requires.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| Some(PathBuf::from(variable(name)?)).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME");
    Some(data.or_else(|| Some(absolute("HOME")?.join(".local/share")))?.join(FOLDER))
}

fn contains(list: &Path, pem: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let opened =
        File::open(list).and_then(|file| file.take(LIST_BYTES_MAX).read_to_end(&mut bytes));
    let pem = pem.trim_ascii();
    opened.is_ok() && !pem.is_empty() && bytes.windows(pem.len()).any(|part| part == pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_below_data_folder_or_home() {
        for (data, home, expected) in [
            (Some("/data"), Some("/home/ann"), Some("/data/samovar/dev")),
            (None, Some("/home/ann"), Some("/home/ann/.local/share/samovar/dev")),
            (Some("data"), Some("/home/ann"), Some("/home/ann/.local/share/samovar/dev")),
            (Some(""), Some("/home/ann"), Some("/home/ann/.local/share/samovar/dev")),
            (None, Some("home"), None),
            (None, None, None),
        ] {
            let found = folder(|name| if name == "HOME" { home } else { data }.map(OsString::from));
            assert_eq!(found, expected.map(PathBuf::from), "{data:?} {home:?}");
        }
    }

    #[test]
    fn list_with_the_same_certificate_is_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let list = folder.path().join("list");
        std::fs::write(&list, "first\nsecond\nthird\n").expect("our folder");
        assert!(contains(&list, b"second\n"));
        assert!(!contains(&list, b"other") && !contains(&list, b"\n"));
        assert!(!contains(&folder.path().join("none"), b"second"));
    }
}
