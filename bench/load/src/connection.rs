//! One connection: sends a request, reads its answer whole, is used again when both sides can.

use crate::answer::Asked;
use crate::input::Input;
use crate::request::Request;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server that closes after its answer may take to do it.
const CLOSE_WAIT: Duration = Duration::from_millis(100);

/// Why a request has no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection to send it on.
    Connect,
    /// The connection ended before any byte of an answer.
    Io,
    /// The answer began and did not end, or is none.
    Incomplete,
    /// It would come too late; `drive` says so.
    Timeout,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// With its head and framing.
    pub(crate) bytes: u64,
}

/// A connection, open or to be opened by the next request.
#[derive(Debug)]
pub(crate) struct Connection {
    server: SocketAddr,
    reuse: bool,
    /// Taken out while a request is under way: one that is given up takes its connection along.
    idle: Option<TcpStream>,
    /// The server is about to close it.
    ending: Option<TcpStream>,
    output: Vec<u8>,
    input: Input,
}

/// What became of a request's bytes.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Whole,
    /// The server answered, or closed, before it had all; perhaps there is an answer to read.
    Stopped,
}

impl Connection {
    /// With `reuse` it serves many requests.
    pub(crate) fn new(server: SocketAddr, reuse: bool) -> Connection {
        let (output, input) = (Vec::new(), Input::new());
        Connection { server, reuse, idle: None, ending: None, output, input }
    }

    /// Opens it before there is a request. A failure is not told: the first request will meet it.
    pub(crate) async fn open(&mut self) {
        self.idle = connect(self.server).await.ok();
    }

    /// Sends a request and reads its answer. Dropped before its end, it closes the connection.
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

    /// Waits for the server to close a connection of no more use. The side that closes first keeps
    /// its port for a minute (`TIME_WAIT`): with a connection per request the client would run out.
    pub(crate) async fn settle(&mut self) {
        if let Some(stream) = self.ending.take() {
            let _ = timeout(CLOSE_WAIT, stream.readable()).await;
        }
    }

    /// The first bytes of the last answer.
    pub(crate) fn sample(&self) -> &[u8] {
        self.input.beginning()
    }
}

async fn connect(server: SocketAddr) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(server).await.map_err(|_| Failure::Connect)?;
    stream.set_nodelay(true).map_err(|_| Failure::Connect)?;
    Ok(stream)
}

/// Whether an idle connection is still one: a server may close it at any time, which is no error.
/// Costs no system call where nothing happened, for tokio knows that from its last look.
fn is_quiet(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Sends all of it, and stops when the server answers or closes meanwhile.
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

/// Reads an answer, and says whether the connection stays open.
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
