//! parse: filters the bytes that hyper gets, and keeps details that it would not pass on.
//!
//! hyper refuses targets that nginx passes on (raw quotes and braces, bytes that are not UTF-8),
//! drops a fragment, and does not report a length together with a transfer coding. So each byte of
//! a request line's target that hyper might refuse is replaced by a harmless one. It is then called
//! covered. The original target is passed separately ([`Note`]). These rules keep this safe:
//!
//! * No byte is added, removed or moved, and no byte that separates messages is covered. Only hyper
//!   determines where a message ends, and the result is the same as for the original bytes. There
//!   are two exceptions: a `Content-Length` and a chunk size that are too large for hyper or for
//!   our limits. These requests are refused, and their connections are closed.
//! * The start of a head is known, not guessed. hyper gets each head alone, without the bytes after
//!   it. Its result about the body ([`Screen::parsed`]) determines where the next head starts.
//! * A line is inspected when it is complete, so it does not matter how it was split into packets.
//! * After the first unexpected input, all bytes pass unchanged ([`Position::Through`]). A head
//!   that hyper finds in them is refused, because it was not inspected.
//! * A line of chunks or trailers that contains a CR or LF other than the CR LF at its end is not
//!   passed on ([`Position::Broken`]): hyper reads a line feed there as part of a trailer, other
//!   servers read it as the end.
//! * A head with more headers than hyper has room for is stopped before them. `http1` then lets a
//!   hyper with more room continue.
//! * A first line that starts HTTP/2 is kept, with all bytes after it. `watched` then ends hyper's
//!   HTTP/1.1.

use super::fastcgi::fastcgi_params::FastcgiParams;
use bytes::Bytes;

/// Start of HTTP/2, up to its first line end.
const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// Replacement for a covered byte.
const COVER: u8 = b'_';
/// hyper can hold any number with fewer digits.
const WILD_DIGITS_MIN: usize = 20;
/// Larger lengths have a special meaning in hyper.
const LENGTH_MAX: u64 = u64::MAX - 2;
/// Number of nines in a length that hyper can hold and that every limit refuses.
const REFUSED_DIGITS: usize = 19;

/// Details of a request that hyper does not pass on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The original target from its path on, if bytes of it are covered.
    pub(crate) target: Option<Bytes>,
    /// Reason why the request must be refused.
    pub(crate) doubt: Option<&'static str>,
    /// Parameters from a web server, received over FastCGI.
    pub(crate) told: Option<Box<FastcgiParams>>,
}

/// How hyper delimits the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    /// Chunks, with the maximum number of bytes in all of them.
    Chunks(u64),
}

/// Position of the next byte in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before a request line.
    Start,
    Headers,
    /// hyper has got a head, and has not returned its result yet.
    Given,
    /// In a body, with the number of bytes left.
    Body(u64),
    /// Before the line of a chunk's size, with the number of bytes still allowed.
    Size(u64),
    /// In a chunk, with the number of bytes left including its line end, and the number allowed
    /// after it.
    Chunk(u64, u64),
    Trailers,
    /// Nothing is inspected any more.
    Through,
    /// The client speaks HTTP/2: nothing passes.
    Preface,
    /// A line of chunks or trailers contains a character that some servers read as its end: nothing
    /// passes.
    Broken,
}

/// The screen of one connection.
#[derive(Debug)]
pub(super) struct Screen {
    position: Position,
    note: Note,
    lengths: u32,
    has_coding: bool,
    is_too_large: bool,
    /// Number of headers of the head that arrives.
    headers: usize,
    /// Number of headers that hyper can hold in this head.
    headers_room: usize,
    head_bytes: usize,
    head_bytes_max: usize,
    /// No line has arrived yet, so the first one may be that of HTTP/2.
    may_be_preface: bool,
}

impl Screen {
    /// hyper gets heads of `head_bytes_max` bytes and more, and refuses them.
    pub(super) fn new(head_bytes_max: usize, has_http2: bool) -> Screen {
        Screen {
            position: Position::Start,
            note: Note::default(),
            lengths: 0,
            has_coding: false,
            is_too_large: false,
            headers: 0,
            headers_room: usize::MAX,
            head_bytes: 0,
            head_bytes_max,
            may_be_preface: has_http2,
        }
    }

    /// Sets the number of headers that hyper can hold. A head that has more is stopped before them.
    pub(super) fn limit_headers(&mut self, room: usize) {
        self.headers = self.headers.min(self.headers_room);
        self.headers_room = room;
    }

    /// Whether the head has more headers than hyper can hold.
    pub(super) fn is_crowded(&self) -> bool {
        self.headers > self.headers_room
    }

    /// Number of headers of the head that arrives, or of the last one.
    pub(super) fn headers(&self) -> usize {
        self.headers
    }

    /// Covers bytes of `bytes` where necessary, and returns how many of them may pass now. `bytes`
    /// follow those that have passed. The rest must be offered again, with the bytes after it, when
    /// hyper requests more.
    pub(super) fn pass(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &mut bytes[at..];
            at += match self.position {
                Position::Through => rest.len(),
                Position::Preface | Position::Broken => return at,
                // Bytes after a head wait for hyper's result.
                Position::Given if at > 0 => return at,
                // hyper requests more of a head that is complete here.
                Position::Given => self.give_up(rest),
                Position::Body(left) => {
                    let passed = left.min(rest.len() as u64);
                    let left = left - passed;
                    self.position = if left == 0 { Position::Start } else { Position::Body(left) };
                    passed as usize
                }
                Position::Chunk(left, allowed) => {
                    let passed = left.min(rest.len() as u64);
                    let left = left - passed;
                    self.position = if left == 0 {
                        Position::Size(allowed)
                    } else {
                        Position::Chunk(left, allowed)
                    };
                    passed as usize
                }
                // Not HTTP, for example TLS: do not wait for the end of a line.
                Position::Start if !is_text(rest[0]) => self.give_up(rest),
                Position::Start | Position::Headers | Position::Size(_) | Position::Trailers => {
                    match memchr::memchr(b'\n', rest) {
                        Some(end) if self.is_preface(&rest[..=end]) => {
                            self.position = Position::Preface;
                            return at;
                        }
                        Some(end) if self.is_divided(&rest[..=end]) => {
                            self.position = Position::Broken;
                            return at;
                        }
                        Some(end) if self.exceeds_room(&rest[..=end]) => return at,
                        Some(end) => self.line(&mut rest[..=end]),
                        // Together with the bytes that hyper has, no more than the maximum size of
                        // a head is held.
                        None if self.head_bytes + rest.len() < self.head_bytes_max => return at,
                        None => self.give_up(rest),
                    }
                }
            };
        }
        at
    }

    /// Counts a header that hyper has no room for. Such a header is counted again when it is
    /// offered again.
    fn exceeds_room(&mut self, line: &[u8]) -> bool {
        let exceeds = self.position == Position::Headers
            && self.headers >= self.headers_room
            && !matches!(line, b"\n" | b"\r\n");
        if exceeds {
            self.headers = self.headers_room + 1;
        }
        exceeds
    }

    /// Only the first line can start HTTP/2.
    fn is_preface(&mut self, line: &[u8]) -> bool {
        std::mem::take(&mut self.may_be_preface) && line == PREFACE_LINE
    }

    /// Whether a line of chunks or trailers has a CR or LF that does not belong to its end.
    fn is_divided(&self, line: &[u8]) -> bool {
        matches!(self.position, Position::Size(_) | Position::Trailers)
            && line.strip_suffix(b"\r\n").is_none_or(|text| memchr::memchr(b'\r', text).is_some())
    }

    /// Whether the body must be aborted, because its line ends are ambiguous.
    pub(super) fn is_broken(&self) -> bool {
        self.position == Position::Broken
    }

    /// Whether the client speaks HTTP/2. No byte has passed then.
    pub(super) fn has_preface(&self) -> bool {
        self.position == Position::Preface
    }

    /// Whether hyper has got a whole head and has not accepted it.
    pub(super) fn has_given_head(&self) -> bool {
        self.position == Position::Given
    }

    /// Whether hyper has bytes of a head and has not accepted it.
    pub(super) fn awaits_result(&self) -> bool {
        matches!(self.position, Position::Headers | Position::Given | Position::Through)
    }

    /// Whether the connection continues with HTTP/2, or with another hyper.
    pub(super) fn is_continued(&self) -> bool {
        self.has_preface() || self.is_crowded()
    }

    /// Called when hyper has parsed the head that it got.
    pub(super) fn parsed(&mut self, framing: Framing) -> Note {
        self.position = match (self.position, framing) {
            (Position::Given, Framing::Length(0)) => Position::Start,
            (Position::Given, Framing::Length(bytes)) => Position::Body(bytes),
            (Position::Given, Framing::Chunks(allowed)) => Position::Size(allowed),
            _ => {
                self.note.doubt = Some("unexpected request head");
                Position::Through
            }
        };
        std::mem::take(&mut self.note)
    }

    /// Called when no more bytes follow: the rest may pass.
    pub(super) fn end(&mut self) {
        self.position = Position::Through;
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_inside_head(&self) -> bool {
        self.position == Position::Headers
    }

    /// Whether a chunk was refused because of its size.
    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    fn give_up(&mut self, rest: &[u8]) -> usize {
        self.position = Position::Through;
        rest.len()
    }

    fn line(&mut self, line: &mut [u8]) -> usize {
        let is_blank = matches!(&*line, b"\n" | b"\r\n");
        match self.position {
            Position::Start if is_blank => {}
            Position::Start => self.begin(line),
            Position::Headers if is_blank => self.complete(),
            Position::Headers => self.header(line),
            Position::Size(allowed) => self.size(line, allowed),
            Position::Trailers if is_blank => self.position = Position::Start,
            _ => {}
        }
        self.head_bytes = if self.is_inside_head() { self.head_bytes + line.len() } else { 0 };
        line.len()
    }

    fn begin(&mut self, line: &mut [u8]) {
        (self.lengths, self.has_coding, self.headers) = (0, false, 0);
        self.note = Note { target: cover_target(line), ..Note::default() };
        self.position = Position::Headers;
    }

    fn header(&mut self, line: &mut [u8]) {
        self.headers += 1;
        match line[0] {
            b'c' | b'C' if is_named(line, b"content-length") => {
                self.lengths += 1;
                cover_length(&mut line[b"content-length:".len()..]);
            }
            b't' | b'T' if is_named(line, b"transfer-encoding") => self.has_coding = true,
            _ => {}
        }
    }

    fn complete(&mut self) {
        self.position = Position::Given;
        self.note.doubt = match (self.lengths, self.has_coding) {
            (0 | 1, false) | (0, true) => None,
            (_, true) => Some("Content-Length and Transfer-Encoding in one request"),
            (_, false) => Some("more than one Content-Length"),
        };
    }

    fn size(&mut self, line: &mut [u8], allowed: u64) {
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let size = line[..digits].iter().try_fold(0u64, |size, byte| {
            let digit = char::from(*byte).to_digit(16)?;
            size.checked_mul(16)?.checked_add(u64::from(digit))
        });
        self.position = match size {
            _ if digits == 0 => Position::Through,
            Some(0) => Position::Trailers,
            Some(size) if size <= allowed => Position::Chunk(size + 2, allowed - size),
            _ => {
                self.is_too_large = true;
                // This is not a digit, so hyper ends the body here.
                line[0] = COVER;
                Position::Through
            }
        };
    }
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || matches!(byte, b'\r' | b'\n')
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
}

/// Whether hyper or the `http` crate may refuse or change a byte in a path or query that nginx
/// passes on.
const fn is_covered(byte: u8) -> bool {
    matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80..)
}

/// [`is_covered`] for every byte, because targets are inspected byte by byte.
static COVERED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_covered(byte as u8);
        byte += 1;
    }
    table
};

/// Covers bytes of a request line's target. Returns the original target if any were covered.
fn cover_target(line: &mut [u8]) -> Option<Bytes> {
    let start = memchr::memchr(b' ', line)? + 1;
    let end = start + memchr::memchr(b' ', &line[start..])?;
    let start = start + path_start(&line[start..end])?;
    let target = &mut line[start..end];
    if !target.iter().any(|byte| COVERED[usize::from(*byte)]) {
        return None;
    }
    let as_it_came = Bytes::copy_from_slice(target);
    target.iter_mut().filter(|byte| is_covered(**byte)).for_each(|byte| *byte = COVER);
    Some(as_it_came)
}

/// Returns the start of the path, in origin-form (`/a`) or absolute-form (`http://host/a`).
fn path_start(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let authority = memchr::memmem::find(target, b"://")? + 3;
    let end = authority + memchr::memchr3(b'/', b'?', b'#', &target[authority..])?;
    (target[end] == b'/').then_some(end)
}

/// Lowers a length that hyper cannot hold to one that every limit refuses. `value`: the line after
/// the colon.
fn cover_length(value: &mut [u8]) {
    let from = value.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let digits = value[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits < WILD_DIGITS_MIN {
        return;
    }
    let digits = &mut value[from..from + digits];
    let length = digits
        .iter()
        .try_fold(0u64, |length, byte| length.checked_mul(10)?.checked_add(u64::from(byte - b'0')));
    if length.is_none_or(|length| length > LENGTH_MAX) {
        let (zeros, nines) = digits.split_at_mut(digits.len() - REFUSED_DIGITS);
        zeros.fill(b'0');
        nines.fill(b'9');
    }
}

#[cfg(test)]
mod tests;
