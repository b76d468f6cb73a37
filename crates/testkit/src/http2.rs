//! HTTP/2 in clear, frame by frame (RFC 9113): for what a library would not say, or would not show.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// What a client begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Kinds of frames.
pub const DATA: u8 = 0;
/// A request's or an answer's head.
pub const HEADERS: u8 = 1;
/// The end of a stream, before its time.
pub const RST_STREAM: u8 = 3;
/// What a side is like.
pub const SETTINGS: u8 = 4;
/// No more streams on this connection.
pub const GOAWAY: u8 = 7;
/// A flag: nothing more comes on this stream.
pub const END_STREAM: u8 = 1;
/// A flag: the head is whole.
pub const END_HEADERS: u8 = 4;

/// A header's name and value.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// A frame as it is sent.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields, each as a literal that nobody remembers (RFC 7541, 6.2.2).
pub fn block(fields: &[Field<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            out.push(
                u8::try_from(text.len()).ok().filter(|n| *n < 127).expect("a length of one byte"),
            );
            out.extend_from_slice(text);
        }
    }
    out
}

/// A frame that has come.
#[derive(Clone, Debug)]
pub struct Frame {
    /// [`DATA`] and the others.
    pub kind: u8,
    /// [`END_STREAM`] and the others.
    pub flags: u8,
    /// 0: the connection's own.
    pub stream: u32,
    /// What is in it.
    pub payload: Vec<u8>,
}

/// A connection whose preface has been sent.
#[derive(Debug)]
pub struct Connection(TcpStream);

impl Connection {
    /// Connects, and says what every client says first.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(crate::WATCHDOG))?;
        stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat())?;
        Ok(Connection(stream))
    }

    /// Asks for a path.
    pub fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        let fields: [Field<'_>; 4] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":authority", b"t"),
            (b":path", path.as_bytes()),
        ];
        self.0.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&fields)))
    }

    /// The next frame; `None`: the connection has ended.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Waits for one of that kind; frames before it are forgotten.
    pub fn wait_for(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next_frame()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }
}
