//! An authority that issues certificates by ACME (RFC 8555), on loopback. It implements the part
//! that a client uses, with the same strictness.
//!
//! It looks for proofs at the addresses that a test sets, for any name.

mod proof;

use crate::certificate::Certificate;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rcgen::{CertificateSigningRequestParams, Issuer, KeyPair};
use ring::{digest, hmac, signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;

/// Maximum length of a request head, and the time limit for a client to send one.
const HEAD_BYTES_MAX: usize = 16 * 1024;
const CLIENT_LIMIT: Duration = Duration::from_secs(20);

/// Behaviour of the authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorityBehaviour {
    /// Correct behaviour.
    #[default]
    Good,
    /// Rejects the first two nonces.
    Forgetful,
    /// Issues nothing for this number of seconds.
    Overrun(u64),
    /// Responds with something that is not JSON.
    Mad,
    /// Returns invalid addresses.
    Lying,
    /// Issues certificates for another name.
    Careless,
    /// Accepts requests and does not respond until the behaviour changes; then it closes.
    Silent,
}

/// The authority; ends with the test's process.
#[derive(Debug)]
pub struct Authority {
    address: SocketAddr,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    base: String,
    issuer: Certificate,
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct State {
    mood: AuthorityBehaviour,
    life: Duration,
    age: Duration,
    /// Whether a test has set the proof addresses; the authority waits for that.
    is_told: bool,
    /// Addresses of the files and handshakes to check.
    http: Option<SocketAddr>,
    https: Option<SocketAddr>,
    external: Option<(String, Vec<u8>)>,
    nonces: HashSet<String>,
    count: usize,
    refused_nonces: usize,
    accounts: HashMap<String, Value>,
    contacts: Vec<Value>,
    orders: Vec<Order>,
    issued: Vec<String>,
}

#[derive(Debug, Default)]
struct Order {
    domain: String,
    token: String,
    status: &'static str,
    trouble: Option<Value>,
    certificate: Option<String>,
    way: &'static str,
}

struct AuthorityResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Authority {
    /// Starts an authority whose own files are in `folder`.
    pub fn start(folder: &Path) -> Authority {
        let issuer = Certificate::own(folder, "authority-issuer", "DNS:issuer");
        let own = Certificate::signed(folder, "authority-server", "IP:127.0.0.1", &issuer);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = State { life: Duration::from_hours(90 * 24), ..State::default() };
        let base = format!("https://{address}");
        let inner =
            Arc::new(Inner { base, issuer, state: Mutex::new(state), told: Condvar::new() });
        let config = config(&own);
        let serving = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (inner, config) = (Arc::clone(&serving), Arc::clone(&config));
                std::thread::spawn(move || serve(&inner, config, stream));
            }
        });
        Authority { address, inner }
    }

    /// URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/directory", self.address)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The root certificate that its clients must trust.
    pub fn roots(&self) -> &PathBuf {
        &self.inner.issuer.chain
    }

    /// Sets the addresses at which it looks for proofs from now on.
    pub fn look_at(&self, http: Option<SocketAddr>, https: Option<SocketAddr>) {
        let mut state = self.inner.state();
        (state.http, state.https, state.is_told) = (http, https, true);
        drop(state);
        self.inner.told.notify_all();
    }

    /// Sets its behaviour from now on.
    pub fn be(&self, mood: AuthorityBehaviour) {
        self.inner.state().mood = mood;
        self.inner.told.notify_all();
    }

    /// Sets the validity period of the certificates that it issues from now on.
    pub fn issue_for(&self, life: Duration) {
        self.inner.state().life = life;
    }

    /// Sets the age of the certificates that it issues from now on, as if the client's clock were
    /// ahead.
    pub fn issue_aged(&self, age: Duration) {
        self.inner.state().age = age;
    }

    /// Requires accounts that it has created itself: id and key.
    pub fn want_external(&self, id: &str, key: &[u8]) {
        self.inner.state().external = Some((id.to_owned(), key.to_owned()));
    }

    /// Makes it forget all accounts.
    pub fn forget(&self) {
        self.inner.state().accounts.clear();
    }

    /// Each certificate that it has issued: its name and the kind of proof.
    pub fn issued(&self) -> Vec<String> {
        self.inner.state().issued.clone()
    }

    /// Number of orders, valid or not.
    pub fn orders(&self) -> usize {
        self.inner.state().orders.len()
    }

    /// Contact addresses of each new or changed account.
    pub fn contacts(&self) -> Vec<Value> {
        self.inner.state().contacts.clone()
    }

    /// Number of nonces that it has rejected.
    pub fn refused_nonces(&self) -> usize {
        self.inner.state().refused_nonces
    }
}

fn config(own: &Certificate) -> Arc<ServerConfig> {
    let chain = CertificateDer::from_pem_file(&own.chain).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&own.key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key);
    Arc::new(config.expect("they go together"))
}

fn serve(inner: &Inner, config: Arc<ServerConfig>, stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(CLIENT_LIMIT));
    let connection = ServerConnection::new(config).expect("a connection");
    let mut stream = StreamOwned::new(connection, stream);
    // A client that has left does not matter.
    if let Ok(Some((method, path, body))) = receive(&mut stream) {
        if inner.is_silenced() {
            return;
        }
        let mut response = inner.respond(&method, &path, &body);
        response.headers.push(("Replay-Nonce", inner.nonce()));
        let mut head = format!(
            "HTTP/1.1 {} x\r\nContent-Length: {}\r\nConnection: close\r\n",
            response.status,
            response.body.len()
        );
        for (name, value) in &response.headers {
            head = head + name + ": " + value + "\r\n";
        }
        head.push_str("\r\n");
        let body: &[u8] = if method == "HEAD" { &[] } else { &response.body };
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        if sent.and_then(|()| stream.flush()).is_err() {
            return;
        }
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
}

fn receive(stream: &mut impl Read) -> io::Result<Option<(String, String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            let length: usize = length.unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let mut words = head.split_whitespace();
                let word = |w: Option<&str>| w.unwrap_or_default().to_owned();
                let (method, path) = (word(words.next()), word(words.next()));
                return Ok(Some((method, path, bytes[end + 4..end + 4 + length].to_vec())));
            }
        } else if bytes.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            some => bytes.extend_from_slice(&piece[..some]),
        }
    }
}

fn said(status: u16, body: &Value) -> AuthorityResponse {
    let headers = vec![("Content-Type", "application/json".to_owned())];
    AuthorityResponse { status, headers, body: body.to_string().into_bytes() }
}

fn problem(status: u16, kind: &str, detail: &str) -> AuthorityResponse {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    said(status, &json!({"type": kind, "detail": detail, "status": status}))
}

/// A request with a valid signature: its payload and its sender.
struct Signed {
    payload: Value,
    key: Value,
    account: Option<String>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the behaviour is `Silent`. Returns whether it was.
    fn is_silenced(&self) -> bool {
        let state = self.state();
        let is_silent = state.mood == AuthorityBehaviour::Silent;
        drop(self.told.wait_while(state, |state| state.mood == AuthorityBehaviour::Silent));
        is_silent
    }

    fn nonce(&self) -> String {
        let mut state = self.state();
        state.count += 1;
        let nonce = format!("nonce{}", state.count);
        state.nonces.insert(nonce.clone());
        nonce
    }

    fn respond(&self, method: &str, path: &str, body: &[u8]) -> AuthorityResponse {
        let mood = self.state().mood;
        match (method, path, mood) {
            (_, _, AuthorityBehaviour::Mad) => AuthorityResponse {
                status: 200,
                headers: Vec::new(),
                body: b"<html>\xff{".to_vec(),
            },
            ("GET", "/directory", _) => {
                let url = |path: &str| match mood {
                    AuthorityBehaviour::Lying => "http://[:::/ nonsense".to_owned(),
                    _ => format!("{}{path}", self.base),
                };
                said(
                    200,
                    &json!({
                        "newNonce": url("/nonce"), "newAccount": url("/account"),
                        "newOrder": url("/order"),
                    }),
                )
            }
            ("HEAD", "/nonce", _) => said(200, &json!({})),
            ("POST", _, _) => match self.verify(path, body) {
                Ok(signed) => self.act(path, &signed),
                Err(response) => response,
            },
            _ => problem(404, "malformed", "no such place"),
        }
    }

    fn verify(&self, path: &str, body: &[u8]) -> Result<Signed, AuthorityResponse> {
        let wrong = |what: &str| problem(400, "malformed", what);
        let jws: Value = serde_json::from_slice(body).map_err(|_| wrong("no JSON"))?;
        let part = |name: &str| jws[name].as_str().unwrap_or_default().to_owned();
        let (protected, payload) = (part("protected"), part("payload"));
        let head = decoded(&protected).ok_or_else(|| wrong("no protected header"))?;
        let head: Value = serde_json::from_slice(&head).map_err(|_| wrong("no header"))?;
        if head["url"] != format!("{}{path}", self.base) || head["alg"] != "ES256" {
            return Err(wrong("another url or algorithm"));
        }
        let nonce = head["nonce"].as_str().unwrap_or_default();
        let mut state = self.state();
        let is_known = state.nonces.remove(nonce);
        if !is_known || (state.mood == AuthorityBehaviour::Forgetful && state.refused_nonces < 2) {
            state.refused_nonces += 1;
            return Err(problem(400, "badNonce", "that nonce is none of ours"));
        }
        let account = head["kid"].as_str().map(str::to_owned);
        let key =
            match &account {
                None => head["jwk"].clone(),
                Some(kid) => state.accounts.get(kid).cloned().ok_or_else(|| {
                    problem(400, "accountDoesNotExist", "nobody knows that account")
                })?,
            };
        drop(state);
        let of = |name: &str| key[name].as_str().and_then(decoded).unwrap_or_default();
        let point = [&[4][..], &of("x"), &of("y")].concat();
        let public = signature::UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
        let signature = decoded(&part("signature")).unwrap_or_default();
        let text = format!("{protected}.{payload}");
        public.verify(text.as_bytes(), &signature).map_err(|_| wrong("a wrong signature"))?;
        let payload = decoded(&payload).unwrap_or_default();
        let payload = serde_json::from_slice(&payload).unwrap_or(Value::Null);
        Ok(Signed { payload, key, account })
    }

    fn act(&self, path: &str, signed: &Signed) -> AuthorityResponse {
        let mut parts = path.trim_start_matches('/').split('/');
        let (what, number) = (parts.next().unwrap_or_default(), parts.next());
        let index = number.and_then(|number| number.parse::<usize>().ok());
        match (what, index) {
            ("account", None) => self.open_account(signed),
            ("account", Some(_)) => {
                self.state().contacts.push(signed.payload["contact"].clone());
                said(200, &json!({"status": "valid"}))
            }
            (_, _) if signed.account.is_none() => problem(403, "unauthorized", "no account"),
            ("order", None) => self.open_order(signed),
            ("order", Some(index)) => self.order(index, 200),
            ("authz", Some(index)) => self.authorization(index),
            ("challenge", Some(index)) => {
                let way = if path.ends_with("/http") { "http-01" } else { "tls-alpn-01" };
                self.look(index, way, &signed.key)
            }
            ("finalize", Some(index)) => self.issue(index, &signed.payload),
            ("certificate", Some(index)) => {
                let state = self.state();
                let found = state.orders.get(index).and_then(|order| order.certificate.clone());
                let Some(pem) = found else { return problem(404, "malformed", "none") };
                let headers =
                    vec![("Content-Type", "application/pem-certificate-chain".to_owned())];
                AuthorityResponse { status: 200, headers, body: pem.into_bytes() }
            }
            _ => problem(404, "malformed", "no such place"),
        }
    }

    fn open_account(&self, signed: &Signed) -> AuthorityResponse {
        let mut state = self.state();
        if signed.payload["termsOfServiceAgreed"] != true {
            return problem(403, "userActionRequired", "agree first");
        }
        if let Some((id, key)) = &state.external {
            let bound = &signed.payload["externalAccountBinding"];
            let part = |name: &str| bound[name].as_str().unwrap_or_default();
            let text = format!("{}.{}", part("protected"), part("payload"));
            let tag = decoded(part("signature")).unwrap_or_default();
            let key = hmac::Key::new(hmac::HMAC_SHA256, key);
            let head = decoded(part("protected")).unwrap_or_default();
            let head: Value = serde_json::from_slice(&head).unwrap_or_default();
            if head["kid"] != **id || hmac::verify(&key, text.as_bytes(), &tag).is_err() {
                return problem(401, "externalAccountRequired", "an account of ours, please");
            }
        }
        let url = format!("{}/account/{}", self.base, state.contacts.len());
        state.accounts.insert(url.clone(), signed.key.clone());
        state.contacts.push(signed.payload["contact"].clone());
        let mut response = said(201, &json!({"status": "valid"}));
        response.headers.push(("Location", url));
        response
    }

    fn open_order(&self, signed: &Signed) -> AuthorityResponse {
        let mut state = self.state();
        if let AuthorityBehaviour::Overrun(seconds) = state.mood {
            let mut response = problem(429, "rateLimited", "too many");
            response.headers.push(("Retry-After", seconds.to_string()));
            return response;
        }
        let domain = signed.payload["identifiers"][0]["value"].as_str().unwrap_or_default();
        let index = state.orders.len();
        state.orders.push(Order {
            domain: domain.to_owned(),
            token: format!("token-{index}-{}", std::process::id()),
            status: "pending",
            ..Order::default()
        });
        drop(state);
        let mut response = self.order(index, 201);
        response.headers.push(("Location", format!("{}/order/{index}", self.base)));
        response
    }

    fn order(&self, index: usize, status: u16) -> AuthorityResponse {
        let state = self.state();
        let Some(order) = state.orders.get(index) else {
            return problem(404, "malformed", "no such order");
        };
        let mut json = json!({
            "status": order.status,
            "identifiers": [{"type": "dns", "value": order.domain}],
            "authorizations": [format!("{}/authz/{index}", self.base)],
            "finalize": format!("{}/finalize/{index}", self.base),
        });
        if order.certificate.is_some() {
            json["certificate"] = format!("{}/certificate/{index}", self.base).into();
        }
        said(status, &json)
    }

    fn authorization(&self, index: usize) -> AuthorityResponse {
        let state = self.state();
        let Some(order) = state.orders.get(index) else {
            return problem(404, "malformed", "no such order");
        };
        let status = match order.status {
            "ready" => "valid",
            other => other,
        };
        let challenge = |kind: &str, end: &str| {
            let url = format!("{}/challenge/{index}/{end}", self.base);
            let mut json =
                json!({"type": kind, "url": url, "token": order.token, "status": status});
            if order.way == kind
                && let Some(trouble) = &order.trouble
            {
                json["error"] = trouble.clone();
            }
            json
        };
        let challenges = [challenge("http-01", "http"), challenge("tls-alpn-01", "tls")];
        let identifier = json!({"type": "dns", "value": order.domain});
        said(200, &json!({"status": status, "identifier": identifier, "challenges": challenges}))
    }

    /// Checks the proof immediately.
    fn look(&self, index: usize, way: &'static str, key: &Value) -> AuthorityResponse {
        let (domain, token, at) = {
            let state = self.state();
            let waited = self.told.wait_timeout_while(state, CLIENT_LIMIT, |s| !s.is_told);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let Some(order) = state.orders.get(index) else {
                return problem(404, "malformed", "no such order");
            };
            let at = if way == "http-01" { state.http } else { state.https };
            (order.domain.clone(), order.token.clone(), at)
        };
        let expected = format!("{token}.{}", thumbprint(key));
        let seen = match at {
            None => Err(("connection", "nobody is there".to_owned())),
            Some(at) if way == "http-01" => proof::see_file(at, &domain, &token, &expected),
            Some(at) => proof::see_handshake(at, &domain, &expected),
        };
        let mut state = self.state();
        let order = &mut state.orders[index];
        order.way = way;
        match seen {
            Ok(()) => order.status = "ready",
            Err((kind, detail)) => {
                order.status = "invalid";
                let kind = format!("urn:ietf:params:acme:error:{kind}");
                order.trouble = Some(json!({"type": kind, "detail": detail, "status": 400}));
            }
        }
        let url = format!("{}/challenge/{index}", self.base);
        said(200, &json!({"type": way, "url": url, "token": token, "status": "processing"}))
    }

    fn issue(&self, index: usize, payload: &Value) -> AuthorityResponse {
        let mut state = self.state();
        let (life, age, mood) = (state.life, state.age, state.mood);
        let Some(order) = state.orders.get_mut(index).filter(|order| order.status == "ready")
        else {
            return problem(403, "orderNotReady", "nothing was proven");
        };
        let der = payload["csr"].as_str().and_then(decoded).unwrap_or_default();
        let request = CertificateSigningRequestDer::from(der);
        let Ok(mut request) = CertificateSigningRequestParams::from_der(&request) else {
            return problem(400, "badCSR", "that is no request");
        };
        let names = format!("{:?}", request.params.subject_alt_names);
        if !names.contains(&order.domain) || request.params.subject_alt_names.len() != 1 {
            return problem(400, "badCSR", "for other names");
        }
        if mood == AuthorityBehaviour::Careless {
            let other = rcgen::CertificateParams::new(vec!["other.example".to_owned()]);
            request.params.subject_alt_names = other.expect("a name").subject_alt_names;
        }
        request.params.not_before = OffsetDateTime::now_utc() - age;
        request.params.not_after = OffsetDateTime::now_utc() - age + life;
        let text = |path: &Path| std::fs::read_to_string(path).expect("our own file");
        let key = KeyPair::from_pem(&text(&self.issuer.key)).expect("a key");
        let own = text(&self.issuer.chain);
        let issuer = Issuer::from_ca_cert_pem(&own, key).expect("an issuer");
        let certificate = request.signed_by(&issuer).expect("it signs");
        order.status = "valid";
        order.certificate = Some(certificate.pem() + &own);
        let proven = format!("{} {}", order.domain, order.way);
        state.issued.push(proven);
        drop(state);
        self.order(index, 200)
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// Thumbprint of a key (RFC 7638).
fn thumbprint(key: &Value) -> String {
    let of = |name: &str| key[name].as_str().unwrap_or_default();
    let text = format!(
        r#"{{"crv":"{}","kty":"{}","x":"{}","y":"{}"}}"#,
        of("crv"),
        of("kty"),
        of("x"),
        of("y")
    );
    BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
}
