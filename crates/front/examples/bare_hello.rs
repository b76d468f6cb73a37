//! The lower limit of the benchmark: a hello world with hyper alone, in the same type of runtime as
//! the front. With a certificate and its key: with hyper and rustls alone.
//!
//! `cargo run --release -p samovar-front --example bare_hello [ADDR] [CERTIFICATE.pem KEY.pem]`

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio_rustls::TlsAcceptor;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let files = (std::env::args().nth(2), std::env::args().nth(3));
    let secure = match files {
        (Some(certificate), Some(key)) => {
            Some(TlsAcceptor::from(Arc::new(config(&certificate, &key)?)))
        }
        _ => None,
    };
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(address).await?;
        eprintln!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            match secure.clone() {
                None => tokio::task::spawn_local(serve(stream)),
                Some(secure) => tokio::task::spawn_local(serve_secure(secure, stream)),
            };
        }
    })
}

fn config(certificate: &str, key: &str) -> Result<ServerConfig, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.ticketer = ring::Ticketer::new()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[derive(Clone)]
struct Local;

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

async fn serve_secure(secure: TlsAcceptor, stream: TcpStream) {
    let Ok(stream) = secure.accept(stream).await else { return };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(stream);
    if is_http2 {
        let _ = http2::Builder::new(Local).serve_connection(io, service_fn(hello)).await;
    } else {
        let _ = http1::Builder::new().serve_connection(io, service_fn(hello)).await;
    }
}

async fn serve(stream: TcpStream) {
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    let _ = builder.serve_connection(TokioIo::new(stream), service_fn(hello)).await;
}

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"Hello, World!")));
    let html = HeaderValue::from_static("text/html; charset=UTF-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    Ok(response)
}
