//! parse: what hyper gets to see of the bytes that arrive, and what it would not tell.
//!
//! hyper refuses targets that nginx passes on (raw quotes and braces, bytes that are no UTF-8), drops a fragment, and
//! is silent about a length beside a transfer coding. So in a request line each byte of the target that it might refuse
//! is covered by a harmless one, and the target as it came goes beside it ([`Note`]). What keeps this safe:
//!
//! * No byte is added, removed or moved, and none that divides a message is covered: hyper alone says where a message
//!   ends, and it would say the same of the bytes as they came. Two numbers are the exception, a `Content-Length` and
//!   a chunk's size that are too large for it or for us: these requests are refused, and their connections closed.
//! * Where a head begins is known, not guessed: it is given to hyper alone, without the bytes behind it, and hyper's
//!   word about its body ([`Screen::parsed`]) says where the next one begins.
//! * A line is looked at when all of it is there, so it does not matter how it was cut into packets.
//! * After the first surprise everything passes as it comes ([`Position::Through`]), and a head that hyper finds there
//!   is refused: nobody has looked at it.
//! * A line of chunks or trailers that another end than CR LF divides is given to nobody ([`Position::Broken`]): hyper takes
//!   a line feed there for a part of a trailer, others for its end.
//! * A first line that begins HTTP/2 is kept, with all behind it: `watched` ends hyper's HTTP/1.1 then.

use super::fastcgi::told::Told;
use bytes::Bytes;

/// How HTTP/2 begins, up to its first line end.
const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// What stands for a covered byte.
const COVER: u8 = b'_';
/// Fewer digits than these are a number that hyper can hold.
const WILD_DIGITS_MIN: usize = 20;
/// Larger ones mean something else to hyper.
const LENGTH_MAX: u64 = u64::MAX - 2;
/// A length that hyper can hold and no limit allows: 19 nines.
const REFUSED_DIGITS: usize = 19;

/// What the head has said that hyper does not pass on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The target from its path on, where bytes of it are covered.
    pub(crate) target: Option<Bytes>,
    /// Why the request must be refused.
    pub(crate) doubt: Option<&'static str>,
    /// What a web server has told of it, by FastCGI.
    pub(crate) told: Option<Box<Told>>,
}

/// How hyper delimits the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    /// And the most bytes that the chunks may have together.
    Chunks(u64),
}

/// Where in a message the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before a request line.
    Start,
    Headers,
    /// A head has been given to hyper, whose word is waited for.
    Given,
    /// So many bytes of a body.
    Body(u64),
    /// Before a line with a chunk's size. So many bytes are allowed yet.
    Size(u64),
    /// Bytes of a chunk and its line end, and bytes allowed behind it.
    Chunk(u64, u64),
    Trailers,
    /// Nothing is looked at any more.
    Through,
    /// This is HTTP/2: nothing passes.
    Preface,
    /// Between chunks or trailers stands what ends a line for some: nothing passes.
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
    head_bytes: usize,
    head_bytes_max: usize,
    /// No line has come yet, and it may be HTTP/2's.
    may_be_preface: bool,
}

impl Screen {
    /// Heads of `head_bytes_max` and more are for hyper to refuse.
    pub(super) fn new(head_bytes_max: usize, has_http2: bool) -> Screen {
        Screen {
            position: Position::Start,
            note: Note::default(),
            lengths: 0,
            has_coding: false,
            is_too_large: false,
            head_bytes: 0,
            head_bytes_max,
            may_be_preface: has_http2,
        }
    }

    /// Covers what must be covered of `bytes`, which follow those that have passed, and returns how many of them
    /// may pass now. What may not is to be offered again, with what comes behind it, when hyper asks for more.
    pub(super) fn pass(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &mut bytes[at..];
            at += match self.position {
                Position::Through => rest.len(),
                Position::Preface | Position::Broken => return at,
                // What is behind a head waits for hyper's word.
                Position::Given if at > 0 => return at,
                // It wants more of what we think is complete.
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
                // TLS and the like: nobody waits for the end of its line.
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
                        Some(end) => self.line(&mut rest[..=end]),
                        // Together with what hyper has of it, no more is held than a head may have.
                        None if self.head_bytes + rest.len() < self.head_bytes_max => return at,
                        None => self.give_up(rest),
                    }
                }
            };
        }
        at
    }

    /// The first line alone can say that all of it is HTTP/2.
    fn is_preface(&mut self, line: &[u8]) -> bool {
        std::mem::take(&mut self.may_be_preface) && line == PREFACE_LINE
    }

    /// Whether a line of chunks or trailers has a CR or LF that is not of its end.
    fn is_divided(&self, line: &[u8]) -> bool {
        matches!(self.position, Position::Size(_) | Position::Trailers)
            && line.strip_suffix(b"\r\n").is_none_or(|text| memchr::memchr(b'\r', text).is_some())
    }

    /// Whether the body is to be broken off: what divides it means one thing to some and another to others.
    pub(super) fn is_broken(&self) -> bool {
        self.position == Position::Broken
    }

    /// Whether the client speaks HTTP/2: no byte has passed.
    pub(super) fn has_preface(&self) -> bool {
        self.position == Position::Preface
    }

    /// hyper has parsed the head that it was given.
    pub(super) fn parsed(&mut self, framing: Framing) -> Note {
        self.position = match (self.position, framing) {
            (Position::Given, Framing::Length(0)) => Position::Start,
            (Position::Given, Framing::Length(bytes)) => Position::Body(bytes),
            (Position::Given, Framing::Chunks(allowed)) => Position::Size(allowed),
            _ => {
                self.note.doubt = Some("a head where none was to be");
                Position::Through
            }
        };
        std::mem::take(&mut self.note)
    }

    /// Nothing more will come: all that is left may pass.
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
        (self.lengths, self.has_coding) = (0, false);
        self.note = Note { target: cover_target(line), ..Note::default() };
        self.position = Position::Headers;
    }

    fn header(&mut self, line: &mut [u8]) {
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
            (_, true) => Some("a length beside a transfer coding"),
            (_, false) => Some("more than one length"),
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
                // No digit: hyper ends the body here.
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

/// What hyper or the `http` crate may refuse or change in a path or query, and nginx passes on.
const fn is_covered(byte: u8) -> bool {
    matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80..)
}

/// [`is_covered`] of every byte: a target is looked at byte by byte.
static COVERED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = is_covered(byte as u8);
        byte += 1;
    }
    table
};

/// Covers bytes of a request line's target; returns it as it was, if there were any.
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

/// Where the path begins, in origin-form (`/a`) or absolute-form (`http://host/a`).
fn path_start(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let authority = memchr::memmem::find(target, b"://")? + 3;
    let end = authority + memchr::memchr3(b'/', b'?', b'#', &target[authority..])?;
    (target[end] == b'/').then_some(end)
}

/// Lowers a length that hyper cannot hold to one that every limit refuses. `value`: from the colon to the line's end.
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
