//! Cleartext HTTP/2, frame by frame (RFC 9113), for bytes that a library would not send or would
//! not show.

use crate::wait::WATCHDOG;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The first bytes of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Type of frame: a part of a body.
pub const DATA: u8 = 0;
/// Type of frame: the head of a request or response.
pub const HEADERS: u8 = 1;
/// Type of frame: the premature end of a stream.
pub const RST_STREAM: u8 = 3;
/// Type of frame: the settings of a side.
pub const SETTINGS: u8 = 4;
/// Type of frame: no more streams on this connection.
pub const GOAWAY: u8 = 7;
/// Flag: no more frames follow on this stream.
pub const END_STREAM: u8 = 1;
/// Flag: the head is complete.
pub const END_HEADERS: u8 = 4;

/// Name and value of a header.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// Bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header block of fields, each as a literal without indexing (RFC 7541, 6.2.2).
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

/// A received frame.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Type: [`DATA`] or one of the others.
    pub kind: u8,
    /// Flags: [`END_STREAM`] and the others.
    pub flags: u8,
    /// Stream; 0: the connection itself.
    pub stream: u32,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// A connection whose preface has been sent.
#[derive(Debug)]
pub struct Connection(TcpStream);

impl Connection {
    /// Connects, and sends the preface and settings.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat())?;
        Ok(Connection(stream))
    }

    /// Requests a path.
    pub fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        let fields: [Field<'_>; 4] = [
            (b":method", b"GET"),
            (b":scheme", b"http"),
            (b":authority", b"t"),
            (b":path", path.as_bytes()),
        ];
        self.0.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&fields)))
    }

    /// Ends a stream with the code CANCEL.
    pub fn cancel(&mut self, stream: u32) -> io::Result<()> {
        const CANCEL: u32 = 8;
        self.0.write_all(&frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()))
    }

    /// The next frame; `None` if the connection has ended.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Waits for a frame of that type. Frames before it are discarded.
    pub fn wait_for(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next_frame()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }
}
