//! A server whose response is good, bad, slow or missing, depending on the path.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Mutex as Turn;

/// Duration of a response to `/slow`; one request at a time.
pub(crate) const SLOW: Duration = Duration::from_millis(20);
/// Duration of a response to `/late`.
pub(crate) const LATE: Duration = Duration::from_millis(300);
/// Response to `/`.
pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) line: String,
    /// `name: value`, as received.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Connections and requests so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) connections: usize,
    pub(crate) requests: Vec<Seen>,
}

/// A server on its own thread, until the test's process ends.
pub(crate) struct Server {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

#[derive(Clone, Default)]
struct Shared {
    log: Arc<Mutex<Log>>,
    turn: Arc<Turn<()>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let shared = Shared::default();
        let log = Arc::clone(&shared.log);
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                send.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    shared.log.lock().unwrap().connections += 1;
                    // A client that leaves is not an error of the server.
                    let shared = shared.clone();
                    tokio::spawn(async move { shared.serve(stream).await.unwrap_or_default() });
                }
            });
        });
        Server { address: receive.recv().unwrap(), log }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn log(&self) -> Log {
        self.log.lock().unwrap().clone()
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(mut seen) = read_head(&mut stream).await? {
            let path = seen.line.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
            if path != "/refuse" {
                read_body(&mut stream, &mut seen).await?;
            }
            let close = seen.headers.iter().any(|header| header == "Connection: close");
            self.log.lock().unwrap().requests.push(seen);
            if !self.respond(&mut stream, &path).await? || close {
                break;
            }
        }
        Ok(())
    }

    /// Sends the response for `path`. Returns false if the connection ends with it.
    async fn respond(&self, stream: &mut BufReader<TcpStream>, path: &str) -> io::Result<bool> {
        match path {
            "/never" => std::future::pending().await,
            "/late" => tokio::time::sleep(LATE).await,
            "/slow" => {
                let _turn = self.turn.lock().await;
                tokio::time::sleep(SLOW).await;
            }
            _ => {}
        }
        let (pieces, stays) = pieces(path);
        for piece in pieces {
            stream.write_all(piece.as_bytes()).await?;
            stream.flush().await?;
            tokio::task::yield_now().await;
        }
        Ok(stays)
    }
}

/// Pieces of the response, and whether the connection stays open.
fn pieces(path: &str) -> (&'static [&'static str], bool) {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    match path {
        "/pieces" => (&["HTTP/1.1 200 OK\r\nConte", "nt-Length: 5\r\n\r", "\nhel", "lo"], true),
        "/chunked" => {
            (&[CHUNKED, "5\r\nhe", "llo\r\n1", "0\r\n0123456789abcdef\r\n0\r\n\r\n"], true)
        }
        "/interim" => (&["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n", HELLO], true),
        "/empty" => (&["HTTP/1.1 204 No Content\r\n\r\n"], true),
        "/moved" => (&["HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"], true),
        "/busy" => (&["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"], true),
        "/head" => (&["HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"], true),
        "/close" => {
            (&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"], false)
        }
        "/old" => (&["HTTP/1.0 200 OK\r\n\r\nhello"], false),
        "/refuse" => (&["HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n"], false),
        "/hello-and-close" => (&[HELLO], false),
        "/drop" => (&[], false),
        "/cut-head" => (&["HTTP/1.1 200 OK\r\nContent-"], false),
        "/cut" => (&["HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"], false),
        "/cut-chunk" => (&[CHUNKED, "5\r\nhel"], false),
        "/cut-chunks" => (&[CHUNKED, "5\r\nhello\r\n"], false),
        "/excess" => (&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!"], true),
        "/no-http" => (&["SSH-2.0-OpenSSH\r\n"], false),
        _ => (&[HELLO], true),
    }
}

async fn read_head(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Seen>> {
    let mut seen = Seen::default();
    if stream.read_line(&mut seen.line).await? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim_end().is_empty() {
            return Ok(Some(seen));
        }
        seen.headers.push(line.trim_end().to_owned());
    }
}

async fn read_body(stream: &mut BufReader<TcpStream>, seen: &mut Seen) -> io::Result<()> {
    let length = seen.headers.iter().find_map(|header| header.strip_prefix("Content-Length: "));
    seen.body.resize(length.map_or(0, |length| length.parse().unwrap()), 0);
    stream.read_exact(&mut seen.body).await?;
    Ok(())
}
