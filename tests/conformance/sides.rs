//! sides: the two servers of a model, and how a case is sent to one of them.

use crate::case::Case;
use crate::response::{ObservedResponse, Subject};
use samovar_testkit::http::{Client, Response};
use samovar_testkit::{Certificate, Haproxy, Nginx, Oracle, Server};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Settings in addition to those of the test kit.
const SETTINGS: &[(&str, &str)] = &[("expose_php", "1"), ("user_ini.cache_ttl", "300")];

/// One execution model: Samovar in that model, and php-fpm with the same document root.
pub(crate) struct Sides {
    pub(crate) model: &'static str,
    pub(crate) oracle: Oracle,
    /// `None` if only the reference server is queried.
    pub(crate) samovar: Option<Server>,
    /// The same server through an nginx that is configured like the reference server's.
    nginx: Option<Nginx>,
    /// Both servers over HTTP/2 with TLS.
    secure: Option<Secure>,
    deaths: u64,
    folder: TempDir,
    root: PathBuf,
}

/// A reference server with HTTP/2 over TLS, and an HAProxy each in front of it and of Samovar. Both
/// servers thus receive requests that HAProxy changed in the same way.
struct Secure {
    oracle: Oracle,
    before_oracle: Haproxy,
    before_samovar: Haproxy,
}

impl Sides {
    /// Starts both servers.
    pub(crate) fn start(model: &'static str, root: &Path, is_oracle_only: bool) -> Sides {
        let folder = TempDir::with_prefix("samovar-fcgi-").expect("a temporary folder");
        let socket = folder.path().join("fcgi.sock").display().to_string();
        let certificate = own_certificate(folder.path());
        let samovar = (!is_oracle_only).then(|| {
            // One long-lived worker: each request runs with the state that earlier requests left.
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

    /// Also queries both servers by HTTP/2 over TLS.
    pub(crate) fn secure(&mut self) {
        let Some(samovar) = self.samovar.as_ref().filter(|_| self.secure.is_none()) else { return };
        let certificate = own_certificate(self.folder.path());
        let oracle = Oracle::secure_with(&self.root, SETTINGS, &certificate);
        let secure = samovar.addresses("https://");
        let before_samovar = Haproxy::before(*secure.first().expect("it listens"));
        let before_oracle = Haproxy::before(oracle.address());
        self.secure = Some(Secure { oracle, before_oracle, before_samovar });
    }

    /// The responses of both servers to a case by HTTP/2 over TLS; the reference server's come
    /// first.
    pub(crate) fn both_by_http2(
        &self,
        case: &Case,
    ) -> (Vec<ObservedResponse>, Vec<ObservedResponse>) {
        let samovar = self.samovar.as_ref().expect("it was started");
        let Secure { oracle, before_oracle, before_samovar } =
            self.secure.as_ref().expect("it was asked for");
        let theirs = self.walk(case, before_oracle.address(), oracle.folder());
        (theirs, self.walk(case, before_samovar.address(), samovar.folder()))
    }

    /// The reference server's responses to a case.
    pub(crate) fn theirs(&self, case: &Case) -> Vec<ObservedResponse> {
        self.walk(case, self.oracle.address(), self.oracle.folder())
    }

    /// Samovar's responses to a case.
    pub(crate) fn ours(&self, case: &Case) -> Vec<ObservedResponse> {
        let samovar = self.samovar.as_ref().expect("it was started");
        self.walk(case, samovar.address(), samovar.folder())
    }

    /// Samovar's responses to a case through nginx and FastCGI.
    pub(crate) fn ours_by_fastcgi(&self, case: &Case) -> Vec<ObservedResponse> {
        let samovar = self.samovar.as_ref().expect("it was started");
        let nginx = self.nginx.as_ref().expect("it was started");
        self.walk(case, nginx.address(), samovar.folder())
    }

    /// Fails if a worker died. A GET whose worker died is run again, so its client does not notice.
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

    fn walk(&self, case: &Case, address: SocketAddr, folder: &Path) -> Vec<ObservedResponse> {
        let place = Subject { address: address.to_string(), folder: folder.display().to_string() };
        let mut jar = Jar::default();
        let mut responses = Vec::new();
        for step in &case.steps {
            let mut client = Client::connect(address);
            // A server may respond before it has read the whole request.
            let _ = client.try_send(&step.bytes(&jar.header()));
            let response = client.try_read(step.is_head()).unwrap_or_else(|error| Response {
                body: format!("no answer: {error}").into_bytes(),
                ..Response::default()
            });
            jar.keep(&response);
            responses.push(ObservedResponse::of(&response, &place, self.model == "resident"));
        }
        responses
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
