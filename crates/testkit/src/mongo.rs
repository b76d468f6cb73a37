//! The part of a server that `MongoDB`'s drivers need. It says hello as a router of a cluster does,
//! replies to each command, and records values that no two writes may share.
//!
//! `OP_QUERY` (the hello) and `OP_MSG`:
//! <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>. Values are found by
//! their names in the bytes of a command, which contains no other bytes that look like them.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

const OP_REPLY: i32 = 1;
const OP_QUERY: i32 = 2004;
const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES_MAX: usize = 1 << 20;

const DOUBLE: u8 = 1;
const TEXT: u8 = 2;
const BINARY: u8 = 5;
const OBJECT_ID: u8 = 7;
const BOOL: u8 = 8;
const INT: u8 = 16;
const LONG: u8 = 18;

const UUID_BYTES: usize = 16;
const OBJECT_ID_BYTES: usize = 12;

/// A server that runs as long as the test.
#[derive(Debug)]
pub struct Mongo {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    writes: usize,
    /// Session and number of each write. A server treats the second write of an equal pair as a
    /// retry of the first, and drops it.
    transactions: HashSet<Vec<u8>>,
    ids: HashSet<Vec<u8>>,
    repeated: Vec<String>,
}

impl Mongo {
    /// Starts a server.
    pub fn start() -> Mongo {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let all = Arc::clone(&seen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let seen = Arc::clone(&all);
                std::thread::spawn(move || serve(client, &seen));
            }
        });
        Mongo { address, seen }
    }

    /// URL for `new MongoDB\Driver\Manager()`.
    pub fn url(&self) -> String {
        format!("mongodb://{}/?retryWrites=true", self.address)
    }

    /// Number of writes that it has processed.
    pub fn writes(&self) -> usize {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).writes
    }

    /// Values that two writes have shared.
    pub fn repeated(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).repeated.clone()
    }
}

impl Seen {
    fn note(&mut self, command: &[u8]) {
        if value(command, TEXT, "insert").is_none() {
            return;
        }
        self.writes += 1;
        if let Some(id) = value(command, OBJECT_ID, "_id").and_then(|at| at.get(..OBJECT_ID_BYTES))
            && !self.ids.insert(id.to_vec())
        {
            self.repeated.push(format!("the id {id:02x?}"));
        }
        // The length, the kind, the bytes.
        let session = value(command, BINARY, "id").and_then(|at| at.get(5..5 + UUID_BYTES));
        let number = value(command, LONG, "txnNumber").and_then(|at| at.get(..8));
        if let (Some(session), Some(number)) = (session, number)
            && !self.transactions.insert([session, number].concat())
        {
            self.repeated.push(format!("the session {session:02x?} with {number:02x?}"));
        }
    }
}

fn serve(mut client: TcpStream, seen: &Mutex<Seen>) {
    while let Ok((id, code, body)) = receive(&mut client) {
        // A lock poisoned by a failed test is still usable.
        seen.lock().unwrap_or_else(PoisonError::into_inner).note(&body);
        let document = respond(&body);
        let reply = match code {
            OP_QUERY => message(id, OP_REPLY, &[&[0; 16], &1i32.to_le_bytes()[..], &document]),
            OP_MSG => message(id, OP_MSG, &[&[0; 5], &document]),
            _ => return,
        };
        if client.write_all(&reply).is_err() {
            return;
        }
    }
}

fn receive(client: &mut TcpStream) -> io::Result<(i32, i32, Vec<u8>)> {
    let mut header = [0; HEADER_BYTES];
    client.read_exact(&mut header)?;
    let word =
        |n: usize| i32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let len = usize::try_from(word(0)).unwrap_or(0).saturating_sub(HEADER_BYTES);
    if len > MESSAGE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; len];
    client.read_exact(&mut body)?;
    Ok((word(4), word(12), body))
}

fn message(responses: i32, code: i32, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let len = i32::try_from(HEADER_BYTES + body.len()).expect("a short answer");
    let header = [len, 0, responses, code].map(i32::to_le_bytes).concat();
    [header, body].concat()
}

/// The bytes after the name of that element.
fn value<'a>(command: &'a [u8], kind: u8, name: &str) -> Option<&'a [u8]> {
    let key = [&[kind], name.as_bytes(), &[0]].concat();
    let at = command.windows(key.len()).position(|part| part == key)?;
    command.get(at + key.len()..)
}

/// The hello of a router, a number of rows, and the value under `echo`.
fn respond(command: &[u8]) -> Vec<u8> {
    let mut elements = Vec::new();
    let mut put = |kind: u8, name: &str, value: &[u8]| {
        elements.push(kind);
        elements.extend_from_slice(name.as_bytes());
        elements.push(0);
        elements.extend_from_slice(value);
    };
    put(DOUBLE, "ok", &1f64.to_le_bytes());
    put(INT, "n", &1i32.to_le_bytes());
    put(BOOL, "isWritablePrimary", &[1]);
    put(BOOL, "ismaster", &[1]);
    put(TEXT, "msg", &text(b"isdbgrid\0"));
    put(INT, "maxBsonObjectSize", &(16i32 << 20).to_le_bytes());
    put(INT, "maxMessageSizeBytes", &(48i32 << 20).to_le_bytes());
    put(INT, "maxWriteBatchSize", &100_000i32.to_le_bytes());
    put(INT, "logicalSessionTimeoutMinutes", &30i32.to_le_bytes());
    put(INT, "minWireVersion", &0i32.to_le_bytes());
    put(INT, "maxWireVersion", &17i32.to_le_bytes());
    if let Some(said) = value(command, TEXT, "echo").and_then(|at| at.get(4..)) {
        let end = said.iter().position(|byte| *byte == 0).map_or(0, |end| end + 1);
        put(TEXT, "echo", &text(&said[..end]));
    }
    let len = i32::try_from(elements.len() + 5).expect("a short answer");
    [&len.to_le_bytes(), &elements[..], &[0]].concat()
}

/// A text with its length and NUL.
fn text(bytes: &[u8]) -> Vec<u8> {
    let len = i32::try_from(bytes.len()).expect("a short text");
    [&len.to_le_bytes(), bytes].concat()
}
