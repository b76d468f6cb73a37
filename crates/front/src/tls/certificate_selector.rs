//! Selects the certificate for a client by the name that it requests, from certificates in files
//! and issued ones.

use super::certificate::{Certificate, Stapled};
use super::issued::{Found, Issued};
use jiff::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// All certificates by their names.
pub(super) struct Chooser {
    all: Vec<Stapled>,
    /// A name may have several, with keys of different types.
    by_name: HashMap<String, Vec<usize>>,
    issued: Arc<Issued>,
}

impl std::fmt::Debug for Chooser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chooser").field("by_name", &self.by_name).finish_non_exhaustive()
    }
}

impl Chooser {
    pub(super) fn new(certificates: Vec<Certificate>, issued: Arc<Issued>) -> Chooser {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, certificate) in certificates.iter().enumerate() {
            for name in &certificate.names {
                by_name.entry(name.clone()).or_default().push(index);
            }
        }
        Chooser { all: certificates.into_iter().map(|c| c.key).collect(), by_name, issued }
    }

    /// Candidates for `name`: files with the exact name, else an issued one, else files with a
    /// matching wildcard, else the first of all. A managed name without a certificate gets none: a
    /// wrong one would teach users to ignore warnings.
    fn of(&self, name: Option<&str>) -> Candidates<'_> {
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let Some(name) = name.as_deref() else { return self.first() };
        if let Some(exact) = self.by_name.get(name) {
            return Candidates::Files(exact);
        }
        let issued = self.issued.of(name);
        if let Found::Certificate(key) = issued {
            return Candidates::Issued(Some(key));
        }
        let beside = || self.by_name.get(&format!("*.{}", name.split_once('.')?.1));
        match (beside(), issued) {
            (Some(beside), _) => Candidates::Files(beside),
            (None, Found::Pending) => Candidates::Issued(None),
            (None, _) => self.first(),
        }
    }

    fn first(&self) -> Candidates<'_> {
        if self.all.is_empty() {
            Candidates::Issued(self.issued.first())
        } else {
            Candidates::Files(&[0])
        }
    }
}

/// Certificates that a client may get.
enum Candidates<'a> {
    /// Indexes into [`Chooser::all`].
    Files(&'a [usize]),
    Issued(Option<Arc<CertifiedKey>>),
}

impl ResolvesServerCert for Chooser {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let candidates = match self.of(hello.server_name()) {
            Candidates::Files(places) => places,
            Candidates::Issued(key) => return key,
        };
        let schemes = hello.signature_schemes();
        let now = Timestamp::now().as_second();
        let own = |index: &usize| Some(self.all.get(*index)?.at(now));
        let suits = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let chosen = candidates.iter().filter_map(own).find(suits);
        chosen.or_else(|| candidates.first().and_then(own)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_selected_by_name() {
        let names = [("a.example", 1), ("*.example", 2), ("*.b.example", 3), ("b.example", 4)];
        let by_name = names.map(|(name, index)| (name.to_owned(), vec![index])).into();
        let provider = rustls::crypto::ring::default_provider();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let made = |name: &str| {
            let made =
                samovar_testkit::Certificate::own(folder.path(), name, &format!("DNS:{name}"));
            let read = |path: &std::path::Path| std::fs::read(path).expect("our own file");
            [read(&made.chain), read(&made.key)].concat()
        };
        let pem = made("own.example");
        let key = crate::tls::files::certified(std::path::Path::new("a"), &pem, &provider);
        let all = vec![Stapled::new(key.expect("a certificate"), None)];
        let issued = Arc::new(Issued::default());
        let domains = ["new.issued.example", "x.b.example", "late.example.org", "late.example"];
        issued.look_after(domains.map(str::to_owned).to_vec());
        let wrong = issued.install("late.example", &made("new.issued.example"), &provider);
        assert!(wrong.expect_err("another name").contains("is not for `late.example`"));
        let new = made("new.issued.example");
        issued.install("new.issued.example", &new, &provider).expect("it does");
        let chooser = Chooser { all, by_name, issued };
        for (name, expected) in [
            (Some("a.example"), 1),
            (Some("A.Example."), 1),
            (Some("x.example"), 2),
            (Some("y.b.example"), 3),
            (Some("x.b.example"), 3),
            (Some("b.example"), 4),
            (Some("x.y.b.example"), 0),
            (Some("example"), 0),
            (Some(""), 0),
            (None, 0),
        ] {
            let Candidates::Files(places) = chooser.of(name) else { panic!("{name:?}") };
            assert_eq!(places, [expected], "{name:?}");
        }
        for (name, has_one) in [
            ("New.issued.example.", Some(true)),
            ("late.example.org", Some(false)),
            // Without an issued certificate, a file with a wildcard may match.
            ("late.example", None),
        ] {
            let found = match chooser.of(Some(name)) {
                Candidates::Files(_) => None,
                Candidates::Issued(key) => Some(key.is_some()),
            };
            assert_eq!(found, has_one, "{name}");
        }
        chooser.issued.look_after(vec!["late.example".to_owned()]);
        assert!(matches!(chooser.of(Some("new.issued.example")), Candidates::Files([0])));
        let alone = Chooser { all: Vec::new(), by_name: HashMap::new(), issued: Arc::default() };
        assert!(matches!(alone.of(None), Candidates::Issued(None)));
    }
}
