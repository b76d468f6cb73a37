//! One connection: sends a request and reads its complete response. It is used again if both sides
//! allow it.

use crate::failure::Failure;
use crate::input::Input;
use crate::request::Request;
use crate::response::Asked;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Maximum wait for a server that closes after its response.
const CLOSE_WAIT: Duration = Duration::from_millis(100);

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Bytes of its head, framing and body.
    pub(crate) bytes: u64,
}

/// A connection, open or to be opened by the next request.
#[derive(Debug)]
pub(crate) struct Connection {
    server: SocketAddr,
    reuse: bool,
    /// Taken out while a request is in flight: an abandoned request also drops its connection.
    idle: Option<TcpStream>,
    /// The server is about to close it.
    ending: Option<TcpStream>,
    output: Vec<u8>,
    input: Input,
}

/// Result of sending a request.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Whole,
    /// The server responded or closed before it had received everything; there may be a response to
    /// read.
    Stopped,
}

impl Connection {
    /// Creates a connection. With `reuse` it serves many requests.
    pub(crate) fn new(server: SocketAddr, reuse: bool) -> Connection {
        let (output, input) = (Vec::new(), Input::new());
        Connection { server, reuse, idle: None, ending: None, output, input }
    }

    /// Opens the connection before there is a request. A failure is not reported: the first request
    /// will fail, too.
    pub(crate) async fn open(&mut self) {
        self.idle = connect(self.server).await.ok();
    }

    /// Sends a request and reads its response. If the future is dropped before its end, the
    /// connection is closed.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        number: u64,
    ) -> Result<Reply, Failure> {
        let mut stream = match self.idle.take().filter(is_quiet) {
            Some(stream) => stream,
            None => connect(self.server).await?,
        };
        let body = request.copy_out(number, &mut self.output);
        self.input.begin();
        let mut sent = send(&stream, &self.output, &mut self.input).await;
        if sent == Sent::Whole {
            sent = send(&stream, body, &mut self.input).await;
        }
        let (reply, keep_alive) = receive(&mut stream, request.asked(), &mut self.input).await?;
        if keep_alive && self.reuse && sent == Sent::Whole {
            self.idle = Some(stream);
        } else {
            self.ending = Some(stream);
        }
        Ok(reply)
    }

    /// Waits for the server to close a connection that is no longer used. The side that closes
    /// first keeps its port for a minute (`TIME_WAIT`): with one connection per request the client
    /// would run out of ports.
    pub(crate) async fn settle(&mut self) {
        if let Some(stream) = self.ending.take() {
            let _ = timeout(CLOSE_WAIT, stream.readable()).await;
        }
    }

    /// First bytes of the last response.
    pub(crate) fn sample(&self) -> &[u8] {
        self.input.beginning()
    }
}

async fn connect(server: SocketAddr) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(server).await.map_err(|_| Failure::Connect)?;
    stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
    Ok(stream)
}

/// Whether an idle connection is still usable: a server may close it at any time, which is not an
/// error. If nothing happened, this costs no system call, because tokio knows that from its last
/// check.
fn is_quiet(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Sends everything; stops if the server responds or closes in the meantime.
async fn send(stream: &TcpStream, mut bytes: &[u8], input: &mut Input) -> Sent {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let Ok(ready) = stream.ready(Interest::READABLE | Interest::WRITABLE).await else {
                    return Sent::Stopped;
                };
                if ready.is_readable() && !input.is_none_yet(stream) {
                    return Sent::Stopped;
                }
            }
            Err(_) => return Sent::Stopped,
        }
    }
    Sent::Whole
}

/// Reads a response, and returns whether the connection stays open.
async fn receive(
    stream: &mut TcpStream,
    asked: Asked,
    input: &mut Input,
) -> Result<(Reply, bool), Failure> {
    let head = input.read_head(stream, asked).await?;
    let (status, keep_alive) = (head.status, head.keep_alive);
    input.read_body(stream, head).await?;
    Ok((Reply { status, bytes: input.received() }, keep_alive))
}
