//! Text of an nginx file → words, semicolons and braces.

use crate::from::input::FromError;
use std::path::Path;

/// Maximum length of a word, in bytes.
const WORD_BYTES_MAX: usize = 64 * 1024;

const HINT: &str = "check the file with `nginx -t`";

/// A token and its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// `;`
    End,
    /// `{`
    Open,
    /// `}`
    Close,
}

pub(super) struct Lexer<'a> {
    file: &'a Path,
    text: &'a str,
    at: usize,
    pub(super) line: u32,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Lexer<'a> {
        Lexer { file, text, at: 0, line: 1 }
    }

    pub(super) fn error(&self, what: &str) -> FromError {
        FromError::syntax(self.file, self.line, what, HINT)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.line += u32::from(self.peek() == Some(b'\n'));
        self.at += 1;
    }

    /// Returns the next token; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Token>, FromError> {
        loop {
            match self.peek() {
                None => return Ok(None),
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.step();
                    }
                }
                Some(byte) if byte.is_ascii_whitespace() => self.step(),
                Some(_) => break,
            }
        }
        let token = match self.peek() {
            Some(b';') => Token::End,
            Some(b'{') => Token::Open,
            Some(b'}') => Token::Close,
            _ => return Ok(Some(Token::Word(self.word()?))),
        };
        self.step();
        Ok(Some(token))
    }

    fn word(&mut self) -> Result<String, FromError> {
        let mut word = Vec::new();
        let quote = self.peek().filter(|byte| matches!(byte, b'"' | b'\''));
        if quote.is_some() {
            self.step();
        }
        loop {
            let Some(byte) = self.peek() else {
                if quote.is_some() {
                    return Err(self.error("a quoted word has no end"));
                }
                break;
            };
            let is_variable = byte == b'{' && word.last() == Some(&b'$');
            match (byte, quote) {
                (byte, Some(quote)) if byte == quote => {
                    self.step();
                    break;
                }
                (b';' | b'{', None) if !is_variable => break,
                (byte, None) if byte.is_ascii_whitespace() => break,
                (b'\\', _) => {
                    self.step();
                    let escaped = self.peek();
                    match escaped {
                        Some(b'"' | b'\'' | b'\\' | b';' | b'{' | b'}' | b' ') => {}
                        _ => word.push(b'\\'),
                    }
                    if let Some(escaped) = escaped {
                        // `\\` keeps its meaning in a regular expression.
                        if escaped == b'\\' {
                            word.push(b'\\');
                        }
                        word.push(escaped);
                        self.step();
                    }
                }
                (byte, _) => {
                    word.push(byte);
                    self.step();
                    if is_variable {
                        while self.peek().is_some_and(|byte| byte != b'}' && byte != b'\n') {
                            word.extend(self.peek());
                            self.step();
                        }
                    }
                }
            }
            if word.len() > WORD_BYTES_MAX {
                return Err(self.error("a word is longer than 64 KiB"));
            }
        }
        // The word ends at ASCII bytes, so it is UTF-8 as the text is.
        Ok(String::from_utf8_lossy(&word).into_owned())
    }

    /// Skips a block of Lua after its `{`, up to the `}` that closes it. Strings and comments may
    /// contain braces.
    pub(super) fn skip_code(&mut self) -> Result<(), FromError> {
        let mut depth = 1_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b'"' | b'\'' => self.skip_string(byte),
                b'-' if self.text.as_bytes()[self.at..].starts_with(b"--") => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.step();
                    }
                    continue;
                }
                _ => {}
            }
            self.step();
            if depth == 0 {
                return Ok(());
            }
        }
        Err(self.error("a block of code has no end"))
    }

    /// Goes to the end of a string in its line.
    fn skip_string(&mut self, quote: u8) {
        self.step();
        while let Some(byte) = self.peek() {
            if byte == quote || byte == b'\n' {
                return;
            }
            self.step();
            if byte == b'\\' && self.peek().is_some() {
                self.step();
            }
        }
    }
}
