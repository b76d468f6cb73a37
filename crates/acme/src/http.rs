//! How an authority is asked: blocking, on the keeper's own thread, over TLS alone.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// What is read of an answer; a certificate with its chain has some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// How long each step of a request may take.
const STEP: Duration = Duration::from_secs(20);
/// Where distributions keep the certificates that their machines trust: Debian, Red Hat, Alpine.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What asks; clones are the same.
#[derive(Clone)]
pub(crate) struct Asker {
    agent: Agent,
    told: Arc<Mutex<Option<Duration>>>,
}

/// An authority that nobody can be asked for.
pub(crate) struct NoRoots(pub(crate) PathBuf);

impl Asker {
    /// One that trusts those of a file, or those that the machine trusts.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Asker, NoRoots> {
        let config = Agent::config_builder()
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("samovar/", env!("CARGO_PKG_VERSION")))
            // A limit for each step and none for all of them: ureq would look names up on threads of its own.
            .timeout_connect(Some(STEP))
            .timeout_send_request(Some(STEP))
            .timeout_send_body(Some(STEP))
            .timeout_recv_response(Some(STEP))
            .timeout_recv_body(Some(STEP))
            .tls_config(tls(roots)?);
        Ok(Asker { agent: config.build().new_agent(), told: Arc::default() })
    }

    /// How long the authority wanted to be left alone when it last refused something.
    pub(crate) fn told(&self) -> Option<Duration> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(
        &self,
        method: &Method,
        url: &str,
        kind: Option<&str>,
        body: &Bytes,
    ) -> Result<Response<Full<Bytes>>, ureq::Error> {
        let mut answer = if *method == Method::POST {
            let kind = kind.unwrap_or("application/jose+json");
            self.agent.post(url).header(header::CONTENT_TYPE.as_str(), kind).send(&body[..])?
        } else if *method == Method::HEAD {
            self.agent.head(url).call()?
        } else {
            self.agent.get(url).call()?
        };
        if answer.status().is_client_error() || answer.status().is_server_error() {
            let told = answer.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok());
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told.and_then(after);
        }
        let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        let (parts, _) = answer.into_parts();
        Ok(Response::from_parts(parts, Full::new(Bytes::from(bytes))))
    }
}

impl HttpClient for Asker {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let asker = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let answer = asker.ask(&parts.method, &parts.uri.to_string(), kind, &body);
            answer.map(BytesResponse::from).map_err(|error| Error::Other(Box::new(error)))
        })
    }
}

/// The value of a `Retry-After`: seconds, or a date.
fn after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    at.duration_since(SystemTime::now()).ok()
}

fn tls(roots: Option<&Path>) -> Result<TlsConfig, NoRoots> {
    let system = || SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = roots.or_else(system).unwrap_or(Path::new(SYSTEM_ROOTS[0]));
    let text = std::fs::read(path).unwrap_or_default();
    let certificates: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(NoRoots(path.to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates))
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_to_wait() {
        for (text, expected) in
            [("0", Some(0)), (" 3600 ", Some(3600)), ("soon", None), ("", None), ("-1", None)]
        {
            assert_eq!(after(text), expected.map(Duration::from_secs), "{text}");
        }
        let hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_hours(1));
        let found = after(&hour).expect("a date");
        assert!((3500..=3600).contains(&found.as_secs()), "{found:?}");
        assert_eq!(after("Thu, 01 Jan 1970 00:00:00 GMT"), None);
    }

    #[test]
    fn somebody_must_be_trusted() {
        assert!(Asker::new(Some(Path::new("/dev/null"))).is_err());
        assert!(Asker::new(Some(Path::new("/no/such/file"))).is_err());
    }
}
