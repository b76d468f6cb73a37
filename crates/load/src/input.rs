//! Input of a connection: reads until a response is complete, and keeps no more than one read of
//! it.

use crate::failure::Failure;
use crate::response::{Asked, Framing, Head};
use std::io::{self, ErrorKind};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Maximum bytes of one read, and maximum length of a head.
const READ_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of interim responses (100 Continue, 103 Early Hints); more before one response
/// are an error.
const INTERIM_RESPONSES_MAX: usize = 16;

/// The bytes of one response at a time.
#[derive(Debug)]
pub(crate) struct Input {
    buffer: Box<[u8]>,
    filled: usize,
    received: u64,
}

impl Input {
    pub(crate) fn new() -> Input {
        // Zeroed by the kernel, page by page as responses need them: many connections are cheap.
        Input { buffer: vec![0; READ_BYTES_MAX].into(), filled: 0, received: 0 }
    }

    /// Prepares for the next response.
    pub(crate) fn begin(&mut self) {
        (self.filled, self.received) = (0, 0);
    }

    /// Bytes of the response, including interim responses.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The bytes of the last read: the whole response if it took one read.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Checks for bytes that arrived early. Returns true if there are none and the connection has
    /// not ended.
    pub(crate) fn is_none_yet(&mut self, stream: &TcpStream) -> bool {
        match stream.try_read(&mut self.buffer[self.filled..]) {
            Ok(count) => {
                self.add(count);
                false
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// Reads more. Returns false at the end of the connection.
    async fn more(&mut self, stream: &mut TcpStream) -> io::Result<bool> {
        let count = stream.read(&mut self.buffer[self.filled..]).await?;
        self.add(count);
        Ok(count > 0)
    }

    fn add(&mut self, count: usize) {
        self.filled += count;
        self.received += count as u64;
    }

    /// Reads until the head is complete, and skips interim responses.
    pub(crate) async fn read_head(
        &mut self,
        stream: &mut TcpStream,
        asked: Asked,
    ) -> Result<Head, Failure> {
        let mut interim = 0;
        loop {
            match Head::parse(&self.buffer[..self.filled], asked) {
                Ok(Some(head)) if !head.is_interim() => return Ok(head),
                Ok(Some(head)) if interim < INTERIM_RESPONSES_MAX => {
                    interim += 1;
                    self.buffer.copy_within(head.length..self.filled, 0);
                    self.filled -= head.length;
                }
                Ok(None) if self.filled < self.buffer.len() => {
                    if !self.more(stream).await.unwrap_or(false) {
                        return Err(self.cut_off());
                    }
                }
                Ok(None) => return Err(Failure::HeadLimit),
                Ok(Some(_)) => return Err(Failure::Malformed),
                Err(failure) => return Err(failure),
            }
        }
    }

    fn cut_off(&self) -> Failure {
        if self.received == 0 { Failure::Io } else { Failure::Incomplete }
    }

    /// Reads until the body is complete.
    pub(crate) async fn read_body(
        &mut self,
        stream: &mut TcpStream,
        head: Head,
    ) -> Result<(), Failure> {
        let mut framing = head.framing;
        let mut from = head.length;
        loop {
            let rest = &self.buffer[from..self.filled];
            let progress = framing.take(rest)?;
            if progress.ended {
                // Bytes after the end were not requested: then the end is not where the head
                // announced it.
                let exact = progress.used == rest.len();
                return if exact { Ok(()) } else { Err(Failure::Malformed) };
            }
            (from, self.filled) = (0, 0);
            match self.more(stream).await {
                Ok(true) => {}
                Ok(false) if framing == Framing::UntilClose => return Ok(()),
                Ok(false) | Err(_) => return Err(Failure::Incomplete),
            }
        }
    }
}
