//! The lower limit of the benchmark: a hello world of hyper alone, in the front's kind of runtime.
//!
//! `cargo run --release -p samovar-front --example bare_hello [ADDR]`

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        eprintln!("listening on http://{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(serve(stream));
        }
    })
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
