//! How an authority is asked: blocking, on the keeper's own thread, over TLS alone.

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

/// What is read of an answer; a certificate with its chain has some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
/// How long each step of a request may take.
const STEP: Duration = Duration::from_secs(20);
/// What asks; clones are the same.
#[derive(Clone)]
pub(crate) struct Asker {
    agent: Agent,
    told: Arc<Mutex<Option<Duration>>>,
}

impl Asker {
    /// One that trusts those of a file, or those that the machine trusts.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Asker, NoRoots> {
        Ok(Asker { agent: agent::secure(STEP, roots)?, told: Arc::default() })
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
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) =
                told.and_then(|text| waits::retry_after(text, SystemTime::now()));
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
