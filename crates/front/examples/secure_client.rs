//! A benchmark client over TLS: sequential full handshakes, or concurrent requests on one HTTP/2
//! connection. Prints their number and the duration in seconds as JSON.
//!
//! `cargo run --release -p samovar-front --example secure_client` prints its arguments.

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::cell::Cell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

type Failure = Box<dyn Error>;

/// The server, the end of the run, and the count.
#[derive(Clone)]
struct Asked {
    address: SocketAddr,
    connector: TlsConnector,
    until: Instant,
    count: Rc<Cell<u64>>,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, address, authority, beside, seconds] = &args[..] else {
        return Err(
            "usage: secure_client handshakes|requests ADDRESS AUTHORITY.pem CONCURRENCY SECONDS"
                .into(),
        );
    };
    let (beside, seconds): (usize, f64) = (beside.parse()?, seconds.parse()?);
    let begun = Instant::now();
    let asked = Asked {
        address: address.parse()?,
        connector: TlsConnector::from(Arc::new(config(authority)?)),
        until: begun + Duration::from_secs_f64(seconds),
        count: Rc::default(),
    };
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        match what.as_str() {
            "handshakes" => all_of(beside, || shake_hands(asked.clone())).await,
            "requests" => {
                let (sender, connection) = h2::client::handshake(asked.connect().await?).await?;
                tokio::task::spawn_local(connection);
                all_of(beside, || ask(asked.clone(), sender.clone())).await
            }
            other => Err(format!("unknown mode `{other}`: use `handshakes` or `requests`").into()),
        }
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("{{\"count\": {}, \"seconds\": {seconds:.3}}}", asked.count.get());
    Ok(())
}

fn config(authority: &str) -> Result<ClientConfig, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Each handshake is a full one.
    config.resumption = Resumption::disabled();
    Ok(config)
}

impl Asked {
    async fn connect(&self) -> Result<TlsStream<TcpStream>, Failure> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(self.connector.connect(ServerName::try_from("localhost")?, stream).await?)
    }

    /// Counts one, and returns whether there is time for another one.
    fn counted(&self) -> bool {
        self.count.set(self.count.get() + 1);
        Instant::now() < self.until
    }
}

/// Runs `count` tasks concurrently, and waits for all of them.
async fn all_of<F>(count: usize, task: impl Fn() -> F) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let tasks: Vec<_> = (0..count).map(|_| tokio::task::spawn_local(task())).collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn shake_hands(asked: Asked) -> Result<(), Failure> {
    loop {
        drop(asked.connect().await?);
        if !asked.counted() {
            return Ok(());
        }
    }
}

async fn ask(asked: Asked, sender: SendRequest<Bytes>) -> Result<(), Failure> {
    loop {
        let request = Request::get("https://localhost/").body(())?;
        let (response, _) = sender.clone().ready().await?.send_request(request, true)?;
        let response = response.await?;
        if response.status() != 200 {
            return Err(format!("{}", response.status()).into());
        }
        let mut body = response.into_body();
        while let Some(piece) = body.data().await {
            let _ = body.flow_control().release_capacity(piece?.len());
        }
        if !asked.counted() {
            return Ok(());
        }
    }
}
