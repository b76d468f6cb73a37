//! sides: the two servers of a model, and a case's way through one of them.

use crate::answer::{Answer, Place};
use crate::case::Case;
use samovar_testkit::http::{Client, Response};
use samovar_testkit::{Certificate, Haproxy, Nginx, Oracle, Server};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Settings beside the kit's own.
const SETTINGS: &[(&str, &str)] = &[("expose_php", "1"), ("user_ini.cache_ttl", "300")];

/// An execution model: Samovar in it, beside php-fpm with the same document root.
pub(crate) struct Sides {
    pub(crate) model: &'static str,
    pub(crate) oracle: Oracle,
    /// None when only the oracle is asked.
    pub(crate) samovar: Option<Server>,
    /// The same server once more, behind an nginx like the oracle's.
    nginx: Option<Nginx>,
    /// Both by HTTP/2 over TLS.
    secure: Option<Secure>,
    deaths: u64,
    folder: TempDir,
    root: PathBuf,
}

/// An oracle that speaks HTTP/2 over TLS, and an HAProxy before it and before Samovar: what that makes of a request is the same for
/// both.
struct Secure {
    oracle: Oracle,
    before_oracle: Haproxy,
    before_samovar: Haproxy,
}

impl Sides {
    /// Starts both.
    pub(crate) fn start(model: &'static str, root: &Path, is_oracle_only: bool) -> Sides {
        let folder = TempDir::with_prefix("samovar-fcgi-").expect("a temporary folder");
        let socket = folder.path().join("fcgi.sock").display().to_string();
        let certificate = own_certificate(folder.path());
        let samovar = (!is_oracle_only).then(|| {
            // One worker that stays: each request meets what the one before left.
            let start = Server::at(root).relinked().workers(if model == "script" { 2 } else { 1 });
            let start = start.args(["--listen", &format!("fcgi-unix:{socket}")]);
            let chain = certificate.chain.display().to_string();
            let start =
                start.args(["--listen", "https://127.0.0.1:0", "--tls-certificates", &chain]);
            SETTINGS.iter().fold(start, |start, (key, value)| start.define(key, value)).start()
        });
        let documents = if root.is_dir() { root } else { root.parent().unwrap_or(root) };
        let behind = format!("unix:{socket}");
        let nginx = (!is_oracle_only).then(|| Nginx::before(documents, &behind));
        let oracle = Oracle::with(root, SETTINGS);
        let root = root.to_owned();
        Sides { model, oracle, samovar, nginx, secure: None, deaths: 0, folder, root }
    }

    /// Asks both by HTTP/2 over TLS, too.
    pub(crate) fn secure(&mut self) {
        let Some(samovar) = self.samovar.as_ref().filter(|_| self.secure.is_none()) else { return };
        let certificate = own_certificate(self.folder.path());
        let oracle = Oracle::secure_with(&self.root, SETTINGS, &certificate);
        let secure = samovar.addresses("https://");
        let before_samovar = Haproxy::before(*secure.first().expect("it listens"));
        let before_oracle = Haproxy::before(oracle.address());
        self.secure = Some(Secure { oracle, before_oracle, before_samovar });
    }

    /// The answers of both to a case by HTTP/2 over TLS, the oracle's first.
    pub(crate) fn both_by_http2(&self, case: &Case) -> (Vec<Answer>, Vec<Answer>) {
        let samovar = self.samovar.as_ref().expect("it was started");
        let Secure { oracle, before_oracle, before_samovar } =
            self.secure.as_ref().expect("it was asked for");
        let theirs = self.walk(case, before_oracle.address(), oracle.folder());
        (theirs, self.walk(case, before_samovar.address(), samovar.folder()))
    }

    /// The oracle's answers to a case.
    pub(crate) fn theirs(&self, case: &Case) -> Vec<Answer> {
        self.walk(case, self.oracle.address(), self.oracle.folder())
    }

    /// Samovar's answers.
    pub(crate) fn ours(&self, case: &Case) -> Vec<Answer> {
        let samovar = self.samovar.as_ref().expect("it was started");
        self.walk(case, samovar.address(), samovar.folder())
    }

    /// Its answers by way of nginx and FastCGI.
    pub(crate) fn ours_by_fastcgi(&self, case: &Case) -> Vec<Answer> {
        let samovar = self.samovar.as_ref().expect("it was started");
        let nginx = self.nginx.as_ref().expect("it was started");
        self.walk(case, nginx.address(), samovar.folder())
    }

    /// A GET whose worker died is run again: its client sees nothing of it.
    pub(crate) fn no_worker_died(&mut self) -> Result<(), String> {
        let Some(samovar) = &self.samovar else { return Ok(()) };
        let deaths = samovar.status()["worker_restarts_total"].as_u64().unwrap_or_default();
        let before = std::mem::replace(&mut self.deaths, deaths);
        if deaths == before {
            Ok(())
        } else {
            Err(format!("  a worker died; log:\n{}", samovar.log()))
        }
    }

    fn walk(&self, case: &Case, address: SocketAddr, folder: &Path) -> Vec<Answer> {
        let place = Place { address: address.to_string(), folder: folder.display().to_string() };
        let mut jar = Jar::default();
        let mut answers = Vec::new();
        for step in &case.steps {
            let mut client = Client::connect(address);
            // A server may answer before it has read everything.
            let _ = client.try_send(&step.bytes(&jar.header()));
            let response = client.try_read(step.is_head()).unwrap_or_else(|error| Response {
                body: format!("no answer: {error}").into_bytes(),
                ..Response::default()
            });
            jar.keep(&response);
            answers.push(Answer::of(&response, &place, self.model == "resident"));
        }
        answers
    }
}

fn own_certificate(folder: &Path) -> Certificate {
    let (chain, key) = (folder.join("own.pem"), folder.join("own.key"));
    if chain.exists() {
        return Certificate { chain, key };
    }
    Certificate::own(folder, "own", "DNS:localhost,IP:127.0.0.1")
}

/// A client's cookies.
#[derive(Default)]
struct Jar(BTreeMap<String, String>);

impl Jar {
    fn header(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, response: &Response) {
        for cookie in response.all("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let Some((name, value)) = pair.split_once('=') else { continue };
            if cookie.contains("Max-Age=0") {
                self.0.remove(name);
            } else {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
