//! Syntax tree of a file, also of a file with syntax that PHP has removed.
//!
//! The parser knows the syntax of the newest PHP. If it finds errors, this module searches the
//! tokens for offsets in braces (`$text{0}`), and parses the text with brackets at these places. It
//! also removes `&` before arguments. Offsets of bytes stay the same.

use bumpalo::Bump;
use mago_database::file::FileId;
use mago_syntax::ast::Program;
use mago_syntax::error::ParseError;
use mago_syntax::lexer::Lexer;
use mago_syntax::parser::parse_file_content;
use mago_syntax::settings::LexerSettings;
use mago_syntax::token::TokenKind;

/// Maximum number of times that a file is parsed again.
const ROUNDS_MAX: usize = 8;
/// Maximum length of an offset in braces.
const OFFSET_TOKENS_MAX: usize = 200;

/// A parsed file.
pub(crate) struct Parsed<'a> {
    pub(crate) program: &'a Program<'a>,
    /// Positions of the braces of offsets, in pairs.
    pub(crate) curly_offsets: Vec<(u32, u32)>,
    /// Positions of `&` before arguments.
    pub(crate) references: Vec<u32>,
}

/// Parses a file.
pub(crate) fn parse<'a>(arena: &'a Bump, text: &[u8]) -> Parsed<'a> {
    let id = FileId::zero();
    let program = parse_file_content(arena, id, text);
    let mut parsed = Parsed { program, curly_offsets: Vec::new(), references: Vec::new() };
    if program.errors.is_empty() {
        return parsed;
    }
    let mut changed = text.to_vec();
    let found = curly_offsets(text);
    if !found.is_empty() {
        for (open, close) in &found {
            changed[*open as usize] = b'[';
            changed[*close as usize] = b']';
        }
        let second = parse_file_content(arena, id, &changed);
        if second.errors.len() < parsed.program.errors.len() {
            parsed.program = second;
            parsed.curly_offsets = found;
        } else {
            changed = text.to_vec();
        }
    }
    for _ in 0..ROUNDS_MAX {
        let found = references(&changed, parsed.program);
        if found.is_empty() {
            break;
        }
        for at in &found {
            changed[*at as usize] = b' ';
        }
        let next = parse_file_content(arena, id, &changed);
        if next.errors.len() >= parsed.program.errors.len() {
            break;
        }
        parsed.program = next;
        parsed.references.extend(found);
    }
    parsed
}

/// Positions of `&` that the parser rejects at the start of an argument.
fn references(text: &[u8], program: &Program<'_>) -> Vec<u32> {
    let ampersands = program.errors.iter().filter_map(|error| match error {
        ParseError::UnexpectedToken(_, TokenKind::Ampersand, span) => Some(span.start.offset),
        _ => None,
    });
    let starts_argument = |at: &u32| {
        let before = text.get(..*at as usize).unwrap_or_default().trim_ascii_end();
        before.ends_with(b"(") || before.ends_with(b",")
    };
    ampersands.filter(starts_argument).collect()
}

/// Number of errors that the parser finds.
pub(crate) fn error_count(text: &[u8]) -> usize {
    let arena = Bump::new();
    parse_file_content(&arena, FileId::zero(), text).errors.len()
}

struct Small {
    kind: TokenKind,
    start: u32,
    end: u32,
}

/// Searches for `{` directly after a variable, a closing bracket or a property, with an expression
/// up to its `}`.
fn curly_offsets(text: &[u8]) -> Vec<(u32, u32)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 1;
    while at < tokens.len() {
        if tokens[at].kind == TokenKind::LeftBrace
            && is_offset_of(&tokens, at)
            && let Some(close) = end_of_offset(&tokens, at)
        {
            found.push((tokens[at].start, tokens[close].start));
        }
        at += 1;
    }
    found
}

/// Whether the token before a brace ends an expression that has offsets.
fn is_offset_of(tokens: &[Small], brace: usize) -> bool {
    let before = &tokens[brace - 1];
    if before.end != tokens[brace].start {
        return false;
    }
    match before.kind {
        TokenKind::Variable | TokenKind::RightBracket => true,
        // `$a{0}{1}`: the first one is an offset itself.
        TokenKind::RightBrace => brace > 2 && tokens[brace - 3].kind == TokenKind::LeftBrace,
        TokenKind::Identifier => brace > 1 && tokens[brace - 2].kind == TokenKind::MinusGreaterThan,
        _ => false,
    }
}

/// Returns the matching brace of an offset: only an expression is between them.
fn end_of_offset(tokens: &[Small], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open).take(OFFSET_TOKENS_MAX) {
        match token.kind {
            TokenKind::LeftBrace => depth += 1,
            TokenKind::RightBrace => {
                depth -= 1;
                if depth == 0 {
                    return (at > open + 1).then_some(at);
                }
            }
            TokenKind::Semicolon => return None,
            _ => {}
        }
    }
    None
}

fn tokens(text: &[u8]) -> Vec<Small> {
    let input = mago_syntax_core::input::Input::new(FileId::zero(), text);
    let mut lexer = Lexer::new(input, LexerSettings::default());
    let mut tokens = Vec::new();
    while let Some(Ok(token)) = lexer.advance() {
        if token.kind.is_trivia() {
            continue;
        }
        let start = token.start.offset;
        tokens.push(Small { kind: token.kind, start, end: start + token.value.len() as u32 });
    }
    tokens
}
