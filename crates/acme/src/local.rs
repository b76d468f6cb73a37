//! An authority of one user for this machine's own names, for development. No network, no thread:
//! the files are created and renewed when [`LocalAuthority::refresh`] is called.
//!
//! Its certificate permits only loopback names and addresses, so a stolen key cannot forge other
//! sites, even if browsers trust the authority.

use crate::store::Store;
use crate::validity::Validity;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData,
};
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

/// Names of the certificate. A wildcard of `localhost` is left out: clients reject wildcards of
/// top-level names.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Validity of the authority. It is replaced, and must be trusted again, when its rest is shorter
/// than the validity of a new certificate.
const AUTHORITY_LIFE: Duration = Duration::from_hours(24 * 3650);
/// Validity of the certificate, which is renewed after two thirds of it.
const LEAF_LIFE: Duration = Duration::from_hours(24 * 90);
/// The start of both is in the past, for clients in containers and machines with other clocks.
const EARLY: Duration = Duration::from_hours(1);
/// Maximum wait for another process that creates these files, and the pause between two attempts.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Maximum number of characters of the user's name in the authority's name.
const USER_CHARS_MAX: usize = 40;

const AUTHORITY: &str = "authority";
const AUTHORITY_KEY: &str = "authority-key";
const LEAF: &str = "localhost";

/// The files of the authority, in one folder.
#[derive(Clone, Debug)]
pub struct LocalAuthority {
    store: Store,
    user: String,
}

/// Result of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing: all files are usable.
    Nothing,
    /// The certificate, from the same authority.
    Certificate,
    /// The authority, and a certificate.
    Authority,
}

impl LocalAuthority {
    /// `user` is a part of the authority's name, which browsers list.
    pub fn new(folder: &Path, user: &str) -> LocalAuthority {
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        let user: String = user.chars().filter(plain).take(USER_CHARS_MAX).collect();
        let user = if user.is_empty() { "this-user".to_owned() } else { user };
        LocalAuthority { store: Store::at(folder), user }
    }

    /// The authority's certificate (PEM), which clients must trust.
    pub fn authority(&self) -> PathBuf {
        self.store.path(AUTHORITY)
    }

    /// Certificate, chain and key of the server, in one PEM file.
    pub fn certificate(&self) -> PathBuf {
        self.store.path(LEAF)
    }

    /// The authority's name: that in its certificate, or the one that a new certificate gets.
    pub fn name(&self) -> String {
        self.stored_name().unwrap_or_else(|| self.new_name())
    }

    fn new_name(&self) -> String {
        format!("Samovar development authority of {}", self.user)
    }

    /// The files may be of another user name: the variable USER changes, the folder does not.
    fn stored_name(&self) -> Option<String> {
        let pem = self.store.certificate(AUTHORITY).ok()??;
        let block = blocks(&pem).into_iter().next()?;
        let parsed = block.parse_x509().ok()?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
        Some(name.to_owned())
    }

    /// End of the authority's validity; `None` before the first refresh.
    pub fn ends(&self) -> Option<SystemTime> {
        let pem = self.store.certificate(AUTHORITY).ok()??;
        Some(Validity::read(&pem).ok()?.until)
    }

    /// Creates missing files, and replaces those that expire soon or do not fit together. `now` is
    /// the present time.
    ///
    /// # Errors
    /// The folder or a file cannot be read or written, or another process holds the lock.
    pub fn refresh(&self, now: SystemTime) -> io::Result<Refreshed> {
        let _lock = self.lock()?;
        let authority = self.stored_authority(now)?;
        if let Some((pem, _)) = &authority
            && self.store.certificate(LEAF)?.is_some_and(|leaf| is_usable(&leaf, pem, now))
        {
            return Ok(Refreshed::Nothing);
        }
        let is_new = authority.is_none();
        let (pem, key) = match authority {
            Some(authority) => authority,
            None => self.create(now).map_err(io::Error::other)?,
        };
        if is_new {
            // The key comes first: a certificate without its key is replaced, after a crash too.
            self.store.keep_certificate(AUTHORITY_KEY, key.serialize_pem().as_bytes())?;
            self.store.keep_certificate(AUTHORITY, pem.as_bytes())?;
        }
        let leaf = issue(&pem, key, now).map_err(io::Error::other)?;
        self.store.keep_certificate(LEAF, leaf.as_bytes())?;
        Ok(if is_new { Refreshed::Authority } else { Refreshed::Certificate })
    }

    fn lock(&self) -> io::Result<File> {
        for _ in 0..LOCK_ATTEMPTS {
            if let Some(lock) = self.store.lock()? {
                return Ok(lock);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(io::Error::other("another process has locked the folder"))
    }

    /// Returns the stored authority as PEM, and its key, if both are usable.
    fn stored_authority(&self, now: SystemTime) -> io::Result<Option<(String, KeyPair)>> {
        let (pem, key) =
            (self.store.certificate(AUTHORITY)?, self.store.certificate(AUTHORITY_KEY)?);
        let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let (Some(pem), Some(key)) = (text(pem), text(key)) else { return Ok(None) };
        let Ok(key) = KeyPair::from_pem(&key) else { return Ok(None) };
        let lasts = Validity::read(pem.as_bytes())
            .is_ok_and(|dates| dates.from <= now && dates.until >= now + LEAF_LIFE);
        let fits = blocks(pem.as_bytes()).first().is_some_and(|block| {
            let parsed = block.parse_x509();
            parsed.is_ok_and(|parsed| {
                parsed.public_key().raw == key.subject_public_key_info().as_slice()
                    && is_limited(&parsed)
            })
        });
        Ok((lasts && fits).then_some((pem, key)))
    }

    fn create(&self, now: SystemTime) -> Result<(String, KeyPair), rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, self.new_name());
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // Constraints of names do not concern certificates without such names: of mail, of clients.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![
                GeneralSubtree::DnsName("localhost".to_owned()),
                GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([127, 0, 0, 0], 8)),
                GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix(
                    std::net::Ipv6Addr::LOCALHOST.octets(),
                    128,
                )),
            ],
            excluded_subtrees: Vec::new(),
        });
        params.not_before = OffsetDateTime::from(now - EARLY);
        params.not_after = OffsetDateTime::from(now + AUTHORITY_LIFE);
        let key = KeyPair::generate()?;
        Ok((params.self_signed(&key)?.pem(), key))
    }
}

/// Whether an authority has the limits of ours: another one may have been put in its place.
fn is_limited(parsed: &X509Certificate<'_>) -> bool {
    let v4 = [127, 0, 0, 0, 255, 0, 0, 0];
    let v6 = [std::net::Ipv6Addr::LOCALHOST.octets(), [255; 16]].concat();
    let Ok(Some(names)) = parsed.name_constraints() else { return false };
    let Some(permitted) = &names.value.permitted_subtrees else { return false };
    let bases: Vec<_> = permitted.iter().map(|subtree| &subtree.base).collect();
    let [GeneralName::DNSName(name), GeneralName::IPAddress(four), GeneralName::IPAddress(six)] =
        bases.as_slice()
    else {
        return false;
    };
    let usage = parsed.extended_key_usage().ok().flatten();
    let is_for_servers = usage.is_some_and(|usage| {
        let of = usage.value;
        of.server_auth && !(of.any || of.client_auth || of.code_signing || of.email_protection)
    });
    names.critical && is_for_servers && *name == "localhost" && four[..] == v4 && six[..] == v6[..]
}

/// Returns a new certificate with its chain and key.
fn issue(authority: &str, key: KeyPair, now: SystemTime) -> Result<String, rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(authority, key)?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, NAMES[0]);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = OffsetDateTime::from(now - EARLY);
    params.not_after = OffsetDateTime::from(now + LEAF_LIFE);
    let own_key = KeyPair::generate()?;
    let leaf = params.signed_by(&own_key, &issuer)?;
    Ok([&leaf.pem(), authority.trim_end(), "\n", &own_key.serialize_pem()].concat())
}

/// Whether the file has a certificate of this authority with all names, and the renewal is not due.
fn is_usable(leaf: &[u8], authority: &str, now: SystemTime) -> bool {
    let (leaf_blocks, authority) = (blocks(leaf), blocks(authority.as_bytes()));
    let [own, chain, key] = leaf_blocks.as_slice() else { return false };
    let lasts =
        Validity::read(leaf).is_ok_and(|dates| dates.from <= now && dates.renewal(0.0) > now);
    let is_ours = authority.first().is_some_and(|block| block.contents == chain.contents);
    let has_key = key_of(key).is_some_and(|key| {
        own.parse_x509().is_ok_and(|own| own.public_key().raw == key.subject_public_key_info())
    });
    lasts && is_ours && has_key && names(own) == NAMES
}

fn key_of(block: &Pem) -> Option<KeyPair> {
    KeyPair::try_from(block.contents.as_slice()).ok()
}

fn blocks(pem: &[u8]) -> Vec<Pem> {
    /// Maximum number of blocks that are read.
    const BLOCKS_MAX: usize = 8;
    Pem::iter_from_buffer(pem).filter_map(Result::ok).take(BLOCKS_MAX).collect()
}

fn names(block: &Pem) -> Vec<String> {
    let Ok(parsed) = block.parse_x509() else { return Vec::new() };
    let Ok(Some(found)) = parsed.subject_alternative_name() else { return Vec::new() };
    let text = |name: &GeneralName| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| v6()).ok().map(|address| address.to_string())
        }
        _ => None,
    };
    found.value.general_names.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    const DAY: Duration = Duration::from_hours(24);

    fn new() -> (tempfile::TempDir, LocalAuthority) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let authority = LocalAuthority::new(&folder.path().join("dev"), "ann\n/CN=x");
        (folder, authority)
    }

    fn read(path: &Path) -> Vec<u8> {
        std::fs::read(path).expect("a file of the authority")
    }

    /// Verifies the chain with openssl, an independent reader.
    fn verify(authority: &LocalAuthority, arguments: &[&str], leaf: &Path) -> bool {
        let verified = Command::new("openssl")
            .args(["verify", "-x509_strict", "-no-CApath", "-no-CAstore", "-CAfile"])
            .arg(authority.authority())
            .args(arguments)
            .arg(leaf)
            .output()
            .expect("openssl runs");
        verified.status.success()
    }

    #[test]
    fn certificate_is_valid_for_own_names_only() {
        let (_folder, authority) = new();
        assert_eq!(authority.name(), "Samovar development authority of annCNx");
        let now = SystemTime::now();
        assert_eq!(authority.refresh(now).expect("files"), Refreshed::Authority);
        let folder = authority.certificate();
        let other = LocalAuthority::new(folder.parent().expect("a folder"), "bob");
        assert_eq!(other.name(), authority.name(), "that of the certificate");
        let leaf = authority.certificate();
        assert!(verify(&authority, &["-verify_hostname", "localhost"], &leaf));
        for address in ["127.0.0.1", "::1"] {
            assert!(verify(&authority, &["-verify_ip", address], &leaf), "{address}");
        }
        assert!(!verify(&authority, &["-verify_hostname", "example.com"], &leaf));
        assert!(!verify(&authority, &["-verify_ip", "127.0.0.2"], &leaf));
        let ends = authority.ends().expect("an authority");
        assert!(ends > now + 3649 * DAY && ends < now + 3651 * DAY);
    }

    #[test]
    fn stolen_key_cannot_forge_other_names() {
        let (folder, authority) = new();
        authority.refresh(SystemTime::now()).expect("files");
        let key = String::from_utf8(read(&authority.store.path(AUTHORITY_KEY))).expect("PEM");
        let pem = String::from_utf8(read(&authority.authority())).expect("PEM");
        for (name, expected) in [
            ("localhost", true),
            ("shop.localhost", true),
            ("127.0.0.9", true),
            ("bank.example", false),
            ("10.0.0.1", false),
            ("::2", false),
        ] {
            let issuer = Issuer::from_ca_cert_pem(&pem, KeyPair::from_pem(&key).expect("a key"))
                .expect("it");
            let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.use_authority_key_identifier_extension = true;
            let own_key = KeyPair::generate().expect("a key");
            let forged = folder.path().join("forged.pem");
            let leaf = params.signed_by(&own_key, &issuer).expect("a signature");
            std::fs::write(&forged, leaf.pem()).expect("our folder");
            assert_eq!(verify(&authority, &[], &forged), expected, "{name}");
        }
    }

    #[test]
    fn files_are_private() {
        let (folder, authority) = new();
        authority.refresh(SystemTime::now()).expect("files");
        let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path().join("dev")), 0o700);
        for path in
            [authority.authority(), authority.certificate(), authority.store.path(AUTHORITY_KEY)]
        {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }

    #[test]
    fn certificate_is_renewed_before_it_expires() {
        let (_folder, authority) = new();
        let begun = SystemTime::now();
        authority.refresh(begun).expect("files");
        let trusted = read(&authority.authority());
        for (days, expected) in [
            (0, Refreshed::Nothing),
            (59, Refreshed::Nothing),
            (61, Refreshed::Certificate),
            (61, Refreshed::Nothing),
            (200, Refreshed::Certificate),
            (3_500, Refreshed::Certificate),
        ] {
            assert_eq!(authority.refresh(begun + days * DAY).expect("files"), expected, "{days}");
            assert_eq!(read(&authority.authority()), trusted, "{days}");
        }
        // Certificates must not outlive their authority.
        let last = authority.refresh(begun + 3_600 * DAY).expect("files");
        assert_eq!(last, Refreshed::Authority);
        assert_ne!(read(&authority.authority()), trusted);
    }

    #[test]
    fn clock_that_was_wrong_is_no_obstacle() {
        let (_folder, authority) = new();
        let now = SystemTime::now();
        authority.refresh(now + 400 * DAY).expect("files");
        assert_eq!(authority.refresh(now).expect("files"), Refreshed::Authority);
        assert!(verify(&authority, &[], &authority.certificate()));
    }

    #[test]
    fn unusable_files_are_replaced() {
        type Damage = fn(&LocalAuthority, &LocalAuthority);
        const DAMAGES: [(&str, Damage, Refreshed); 8] = [
            ("no leaf", |own, _| remove(&own.certificate()), Refreshed::Certificate),
            ("empty leaf", |own, _| write(&own.certificate(), b""), Refreshed::Certificate),
            (
                "leaf of another authority",
                |own, other| write(&own.certificate(), &read(&other.certificate())),
                Refreshed::Certificate,
            ),
            (
                "leaf without key",
                |own, _| write(&own.certificate(), &read(&own.authority())),
                Refreshed::Certificate,
            ),
            ("no authority", |own, _| remove(&own.authority()), Refreshed::Authority),
            (
                "broken authority",
                |own, _| write(&own.authority(), b"-----BEGIN"),
                Refreshed::Authority,
            ),
            (
                "key of another authority",
                |own, other| {
                    write(&own.store.path(AUTHORITY_KEY), &read(&other.store.path(AUTHORITY_KEY)));
                },
                Refreshed::Authority,
            ),
            (
                "authority without limits",
                |own, _| {
                    let mut params = CertificateParams::default();
                    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                    let key = KeyPair::generate().expect("a key");
                    let pem = params.self_signed(&key).expect("a certificate").pem();
                    write(&own.authority(), pem.as_bytes());
                    write(&own.store.path(AUTHORITY_KEY), key.serialize_pem().as_bytes());
                },
                Refreshed::Authority,
            ),
        ];
        fn remove(path: &Path) {
            std::fs::remove_file(path).expect("a file of the authority");
        }
        fn write(path: &Path, bytes: &[u8]) {
            std::fs::write(path, bytes).expect("a file of the authority");
        }
        let now = SystemTime::now();
        for (what, damage, expected) in DAMAGES {
            let ((_folder, own), (_other_folder, other)) = (new(), new());
            own.refresh(now).expect("files");
            other.refresh(now).expect("files");
            damage(&own, &other);
            assert_eq!(own.refresh(now).expect("files"), expected, "{what}");
            assert!(verify(&own, &[], &own.certificate()), "{what}");
            assert_eq!(own.refresh(now).expect("files"), Refreshed::Nothing, "{what}");
        }
    }

    #[test]
    fn link_in_place_of_the_lock_is_refused() {
        let (folder, authority) = new();
        authority.refresh(SystemTime::now()).expect("files");
        let (lock, target) = (folder.path().join("dev/lock"), folder.path().join("other"));
        std::fs::remove_file(&lock).expect("our folder");
        std::os::unix::fs::symlink(&target, &lock).expect("our folder");
        assert!(authority.refresh(SystemTime::now()).is_err());
        assert!(!target.exists());
    }
}
