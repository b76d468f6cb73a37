//! HTTP client for the authority: blocking, on the keeper's own thread, over TLS only.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use samovar_outbound::{NoRoots, agent, waits};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use ureq::Agent;

/// Maximum bytes read of a response; a certificate with its chain has some kilobytes.
const RESPONSE_BYTES_MAX: u64 = 1024 * 1024;
/// Timeout for each step of a request.
const STEP: Duration = Duration::from_secs(20);
/// HTTP client; clones share their state.
#[derive(Clone)]
pub(crate) struct Asker {
    agent: Agent,
    told: Arc<Mutex<Option<Duration>>>,
}

impl Asker {
    /// Creates a client that trusts the certificates in a file, or those that the machine trusts.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Asker, NoRoots> {
        Ok(Asker { agent: agent::secure(STEP, roots)?, told: Arc::default() })
    }

    /// Returns the `Retry-After` wait of the authority's last error response, if it had one.
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
        let mut response = if *method == Method::POST {
            let kind = kind.unwrap_or("application/jose+json");
            self.agent.post(url).header(header::CONTENT_TYPE.as_str(), kind).send(&body[..])?
        } else if *method == Method::HEAD {
            self.agent.head(url).call()?
        } else {
            self.agent.get(url).call()?
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            let told = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok());
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) =
                told.and_then(|text| waits::retry_after(text, SystemTime::now()));
        }
        let bytes = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX).read_to_vec()?;
        let (parts, _) = response.into_parts();
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
            let response = asker.ask(&parts.method, &parts.uri.to_string(), kind, &body);
            response.map(BytesResponse::from).map_err(|error| Error::Other(Box::new(error)))
        })
    }
}
