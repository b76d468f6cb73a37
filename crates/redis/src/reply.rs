//! Replies of Redis (RESP2).

use std::io::{self, BufRead, Read as _};

/// Maximum bytes of a line: a number, a status or an error.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// Maximum bytes of all texts of a reply.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// Maximum number of values in a reply.
const VALUES_MAX: usize = 2_000_000;
/// Maximum depth of lists.
const DEPTH_MAX: usize = 8;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// There is no value.
    Nil,
    /// A number.
    Number(i64),
    /// A text or a status.
    Text(Vec<u8>),
    /// An error.
    Error(String),
    /// A list.
    List(Vec<Reply>),
}

impl Reply {
    /// Returns the number, also if it is a text.
    pub fn number(&self) -> Option<i64> {
        match self {
            Reply::Number(number) => Some(*number),
            Reply::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Returns the text, if it is UTF-8; an empty one if there is no value.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text(text) => std::str::from_utf8(text).ok(),
            Reply::Nil => Some(""),
            _ => None,
        }
    }

    /// Returns the values of a list.
    pub fn list(&self) -> Option<&[Reply]> {
        match self {
            Reply::List(values) => Some(values),
            _ => None,
        }
    }
}

/// Rest of the limits of a reply.
struct Budget {
    bytes: usize,
    values: usize,
}

/// Defect of a reply. Errors of TLS have the same kind.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Malformed(why))
}

/// Reads a reply.
pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let mut budget = Budget { bytes: REPLY_BYTES_MAX, values: VALUES_MAX };
    read_value(from, &mut budget, DEPTH_MAX)
}

fn read_value(from: &mut impl BufRead, budget: &mut Budget, depth: usize) -> io::Result<Reply> {
    let mut line = Vec::new();
    from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let Some(line) = line.strip_suffix(b"\r\n") else { return Err(invalid("a line has no end")) };
    let Some((kind, rest)) = line.split_first() else { return Err(invalid("an empty line")) };
    let number = || {
        let text = std::str::from_utf8(rest).ok();
        text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(|| invalid("not a number"))
    };
    match kind {
        b'+' => Ok(Reply::Text(rest.to_vec())),
        b'-' => Ok(Reply::Error(String::from_utf8_lossy(rest).into_owned())),
        b':' => number().map(Reply::Number),
        b'$' => read_text(from, budget, number()?),
        b'*' => {
            let Ok(count) = usize::try_from(number()?) else { return Ok(Reply::Nil) };
            if depth == 0 || count > budget.values {
                return Err(invalid("the reply has too many values"));
            }
            budget.values -= count;
            // The list grows with the values received.
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(read_value(from, budget, depth - 1)?);
            }
            Ok(Reply::List(values))
        }
        _ => Err(invalid("an unknown kind of value")),
    }
}

fn read_text(from: &mut impl BufRead, budget: &mut Budget, length: i64) -> io::Result<Reply> {
    let Ok(length) = usize::try_from(length) else { return Ok(Reply::Nil) };
    if length > budget.bytes {
        return Err(invalid("the reply is too large"));
    }
    budget.bytes -= length;
    let mut text = Vec::new();
    from.by_ref().take(length as u64).read_to_end(&mut text)?;
    if text.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut end = [0; 2];
    from.read_exact(&mut end)?;
    if end != *b"\r\n" {
        return Err(invalid("a text has no end"));
    }
    Ok(Reply::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: &str) -> Reply {
        Reply::Text(value.into())
    }

    #[test]
    fn replies_of_all_kinds_are_read() {
        for (bytes, expected) in [
            ("+OK\r\n", text("OK")),
            ("-ERR no\r\n", Reply::Error("ERR no".into())),
            (":-7\r\n", Reply::Number(-7)),
            ("$3\r\na\r\n\r\n", text("a\r\n")),
            ("$-1\r\n", Reply::Nil),
            ("*-1\r\n", Reply::Nil),
            ("*2\r\n:1\r\n*1\r\n$0\r\n\r\n", {
                Reply::List(vec![Reply::Number(1), Reply::List(vec![text("")])])
            }),
        ] {
            assert_eq!(read(&mut bytes.as_bytes()).expect(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn wrong_and_too_large_replies_are_errors() {
        for bytes in [
            "",
            "+OK",
            "?\r\n",
            "\r\n",
            ":x\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
            "$3\r\nab",
            "$1\r\nabc",
            "$99999999999\r\n",
            "*99999999999\r\n",
            &"*1\r\n".repeat(20),
            &format!("+{}\r\n", "x".repeat(5_000)),
        ] {
            assert!(read(&mut bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_reply_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 0..80)
        ) {
            let _ = read(&mut &bytes[..]);
        }
    }
}
