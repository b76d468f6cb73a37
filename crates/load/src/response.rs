//! Parses a response: finds the end of its head and body (RFC 9112). Pure; `connection` does the
//! reads.

use crate::failure::Failure::{self, Malformed};
use httparse::{ParserConfig, Status};
use std::mem::MaybeUninit;

const HEADERS_MAX: usize = 128;
/// Maximum number of digits in a chunk's length; 16 could exceed 64 bits.
const HEX_DIGITS_MAX: u8 = 15;

/// The part of the request that determines the form of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// HEAD: the response has no body, regardless of its head.
    Head,
    Body,
}

/// Head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Its length, with the empty line.
    pub(crate) length: usize,
    pub(crate) framing: Framing,
    /// Whether the connection may be used again.
    pub(crate) keep_alive: bool,
}

/// How the end of the body is determined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After this number of bytes.
    Length(u64),
    Chunked(Chunk),
    /// At the end of the connection: it is unknown whether the body is complete.
    UntilClose,
}

/// Position of the next byte in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeLineFeed { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataLineFeed,
    TrailerStart,
    Trailer,
    LastLineFeed,
    End,
}

/// Progress of a body by some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) used: usize,
    pub(crate) ended: bool,
}

impl Head {
    /// Parses a head; `None` while it is incomplete.
    pub(crate) fn parse(bytes: &[u8], asked: Asked) -> Result<Option<Head>, Failure> {
        let mut fields = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let config = ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut fields);
        let Status::Complete(length) = parsed.map_err(failure)? else { return Ok(None) };
        let status = response.code.ok_or(Malformed)?;
        let mut seen = Seen { keep_alive: response.version == Some(1), ..Seen::default() };
        for field in response.headers.iter() {
            seen.field(field.name, field.value)?;
        }
        let framing = seen.framing(status, asked);
        let keep_alive = seen.keep_alive && framing != Framing::UntilClose;
        Ok(Some(Head { status, length, framing, keep_alive }))
    }

    /// Whether this is an interim response: the final response follows.
    pub(crate) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }
}

/// More fields than this client reads are no error of the server.
fn failure(error: httparse::Error) -> Failure {
    match error {
        httparse::Error::TooManyHeaders => Failure::HeadLimit,
        _ => Malformed,
    }
}

/// Header fields that determine the framing.
#[derive(Debug, Default)]
struct Seen {
    keep_alive: bool,
    length: Option<u64>,
    coded: bool,
    chunked: bool,
}

impl Seen {
    fn field(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        if name.eq_ignore_ascii_case("content-length") {
            let text = str::from_utf8(value).map_err(|_| Malformed)?;
            // `parse` alone is not enough: it accepts a plus sign.
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let length = digits.then(|| text.parse().ok()).flatten().ok_or(Malformed)?;
            if self.length.replace(length).is_some_and(|other| other != length) {
                return Err(Malformed);
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            self.coded = true;
            let last = words(value).last();
            self.chunked = last.is_some_and(|word| word.eq_ignore_ascii_case(b"chunked"));
        } else if name.eq_ignore_ascii_case("connection") {
            for word in words(value) {
                if word.eq_ignore_ascii_case(b"close") {
                    self.keep_alive = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") {
                    self.keep_alive = true;
                }
            }
        }
        Ok(())
    }

    /// Determines the framing (RFC 9112, 6.3).
    fn framing(&self, status: u16, asked: Asked) -> Framing {
        if asked == Asked::Head || (100..200).contains(&status) || matches!(status, 204 | 304) {
            Framing::Length(0)
        } else if self.chunked {
            Framing::Chunked(Chunk::START)
        } else if self.coded {
            Framing::UntilClose
        } else {
            self.length.map_or(Framing::UntilClose, Framing::Length)
        }
    }
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

impl Framing {
    /// Takes bytes of the body, up to its end.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Progress, Failure> {
        match self {
            Framing::Length(left) => {
                let used = take_of(left, bytes);
                Ok(Progress { used, ended: *left == 0 })
            }
            Framing::Chunked(chunk) => chunk.take(bytes),
            Framing::UntilClose => Ok(Progress { used: bytes.len(), ended: false }),
        }
    }
}

/// Number of the bytes that belong to the rest; subtracts it from `left`.
fn take_of(left: &mut u64, bytes: &[u8]) -> usize {
    let used = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= used as u64;
    used
}

impl Chunk {
    const START: Chunk = Chunk::Size { size: 0, digits: 0 };

    fn take(&mut self, bytes: &[u8]) -> Result<Progress, Failure> {
        let mut used = 0;
        while used < bytes.len() && *self != Chunk::End {
            if let Chunk::Data { left } = self {
                used += take_of(left, &bytes[used..]);
                if *left == 0 {
                    *self = Chunk::DataReturn;
                }
            } else {
                *self = self.after(bytes[used])?;
                used += 1;
            }
        }
        Ok(Progress { used, ended: *self == Chunk::End })
    }

    /// The position after a byte that is not data.
    fn after(self, byte: u8) -> Result<Chunk, Failure> {
        Ok(match (self, byte) {
            (Chunk::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                if digits == HEX_DIGITS_MAX {
                    return Err(Malformed);
                }
                Chunk::Size { size: size << 4 | digit, digits: digits + 1 }
            }
            (Chunk::Size { digits: 0, .. }, _) => return Err(Malformed),
            (Chunk::Size { size, .. } | Chunk::Extension { size }, b'\r') => {
                Chunk::SizeLineFeed { size }
            }
            (Chunk::Size { size, .. }, b';' | b' ' | b'\t') => Chunk::Extension { size },
            (Chunk::Extension { size }, _) if byte != b'\n' => Chunk::Extension { size },
            (Chunk::SizeLineFeed { size: 0 } | Chunk::Trailer, b'\n') => Chunk::TrailerStart,
            (Chunk::SizeLineFeed { size }, b'\n') => Chunk::Data { left: size },
            (Chunk::DataReturn, b'\r') => Chunk::DataLineFeed,
            (Chunk::DataLineFeed, b'\n') => Chunk::START,
            (Chunk::TrailerStart, b'\r') => Chunk::LastLineFeed,
            (Chunk::TrailerStart | Chunk::Trailer, _) => Chunk::Trailer,
            (Chunk::LastLineFeed, b'\n') => Chunk::End,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Chunk, Failure, Framing, HEADERS_MAX, Head, Malformed, Progress};

    fn head(lines: &str) -> Head {
        let text = format!("HTTP/{lines}\r\n\r\nbody");
        let head = Head::parse(text.as_bytes(), Asked::Body).unwrap().unwrap();
        assert_eq!(head.length, text.len() - "body".len());
        head
    }

    #[test]
    fn framing_follows_from_status_and_headers() {
        for (lines, framing) in [
            ("1.1 200 OK\r\nContent-Length: 5", Framing::Length(5)),
            ("1.1 200 OK\r\ncontent-length: 5\r\nContent-Length: 5", Framing::Length(5)),
            ("1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked", Framing::Chunked(Chunk::START)),
            (
                "1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
                Framing::Chunked(Chunk::START),
            ),
            ("1.1 200 OK\r\nTransfer-Encoding: gzip", Framing::UntilClose),
            ("1.1 200 OK", Framing::UntilClose),
            ("1.1 204 No Content", Framing::Length(0)),
            ("1.1 304 Not Modified\r\nContent-Length: 5", Framing::Length(0)),
            ("1.1 100 Continue", Framing::Length(0)),
        ] {
            assert_eq!(head(lines).framing, framing, "{lines}");
        }
        let to_head = Head::parse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Asked::Head);
        assert_eq!(to_head.unwrap().unwrap().framing, Framing::Length(0));
    }

    #[test]
    fn keep_alive_follows_from_version_and_headers() {
        for (lines, keep_alive) in [
            ("1.1 200 OK\r\nContent-Length: 5", true),
            ("1.1 200 OK\r\nContent-Length: 5\r\nConnection: Upgrade, Close", false),
            ("1.1 200 OK", false),
            ("1.0 200 OK\r\nContent-Length: 5", false),
            ("1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive", true),
        ] {
            assert_eq!(head(lines).keep_alive, keep_alive, "{lines}");
        }
    }

    #[test]
    fn partial_head_is_incomplete() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(Head::parse(&text[..end], Asked::Body), Ok(None), "{end}");
        }
    }

    #[test]
    fn invalid_head_is_malformed() {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        ] {
            assert_eq!(Head::parse(text.as_bytes(), Asked::Body), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn many_fields_are_the_limit_of_this_client() {
        for (count, is_limit) in [(1, false), (HEADERS_MAX, false), (HEADERS_MAX + 1, true)] {
            let text = format!("HTTP/1.1 204 No Content\r\n{}\r\n", "a: b\r\n".repeat(count));
            let head = Head::parse(text.as_bytes(), Asked::Body);
            assert_eq!(head == Err(Failure::HeadLimit), is_limit, "{count}: {head:?}");
        }
    }

    #[test]
    fn body_of_known_length_ends_after_its_bytes() {
        let mut framing = Framing::Length(5);
        assert_eq!(framing.take(b"abc"), Ok(Progress { used: 3, ended: false }));
        assert_eq!(framing.take(b"deHTTP"), Ok(Progress { used: 2, ended: true }));
    }

    #[test]
    fn chunked_body_is_parsed_in_any_pieces() {
        let body = b"5\r\nhello\r\n1A ;a=\"b\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nA: b\r\n\r\n";
        for piece in 1..=body.len() {
            let mut framing = Framing::Chunked(Chunk::START);
            let mut pieces = body.chunks(piece).peekable();
            while let Some(bytes) = pieces.next() {
                let ended = pieces.peek().is_none();
                let expected = Progress { used: bytes.len(), ended };
                assert_eq!(framing.take(bytes), Ok(expected), "pieces of {piece}");
            }
        }
    }

    #[test]
    fn bytes_after_last_chunk_are_not_consumed() {
        let mut framing = Framing::Chunked(Chunk::START);
        assert_eq!(framing.take(b"0\r\n\r\nHTTP"), Ok(Progress { used: 5, ended: true }));
    }

    #[test]
    fn invalid_chunks_are_malformed() {
        for body in ["\r\n", "x", "5\nhello", "5\r\nhello!", "1;\n", "1234567812345678"] {
            let mut framing = Framing::Chunked(Chunk::START);
            assert_eq!(framing.take(body.as_bytes()), Err(Malformed), "{body:?}");
        }
    }
}
