//! Text → tokens of XML: the part of the language that the logs of frameworks use.

use std::collections::BTreeMap;

/// Maximum number of characters of an entity such as `&quot;`.
const ENTITY_CHARS_MAX: usize = 12;

/// A part of the text.
pub(super) enum Token<'a> {
    Open { name: &'a str, attributes: BTreeMap<&'a str, String>, is_empty: bool },
    Close(&'a str),
    Text(String),
}

/// A reader of tokens.
pub(super) struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader { rest: text }
    }

    /// Returns the next token; `None` at the end of the text.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        loop {
            let rest = self.rest;
            if rest.is_empty() {
                return Ok(None);
            }
            if let Some(data) = rest.strip_prefix("<![CDATA[") {
                let (text, after) = data.split_once("]]>").ok_or("CDATA has no end")?;
                self.rest = after;
                return Ok(Some(Token::Text(text.to_owned())));
            }
            if rest.starts_with("<?") || rest.starts_with("<!") {
                let end = if rest.starts_with("<!--") { "-->" } else { ">" };
                self.rest = rest.split_once(end).ok_or("a declaration has no end")?.1;
                continue;
            }
            if let Some(tag) = rest.strip_prefix("</") {
                let (name, after) = tag.split_once('>').ok_or("a tag has no end")?;
                self.rest = after;
                return Ok(Some(Token::Close(name.trim())));
            }
            if let Some(tag) = rest.strip_prefix('<') {
                return self.open(tag).map(Some);
            }
            let end = rest.find('<').unwrap_or(rest.len());
            self.rest = &rest[end..];
            return Ok(Some(Token::Text(unescape(&rest[..end]))));
        }
    }

    fn open(&mut self, tag: &'a str) -> Result<Token<'a>, String> {
        let is_end = |c: char| c.is_whitespace() || c == '/' || c == '>';
        let end = tag.find(is_end).ok_or("a tag has no end")?;
        let (name, mut rest) = tag.split_at(end);
        let mut attributes = BTreeMap::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix("/>") {
                self.rest = after;
                return Ok(Token::Open { name, attributes, is_empty: true });
            }
            if let Some(after) = rest.strip_prefix('>') {
                self.rest = after;
                return Ok(Token::Open { name, attributes, is_empty: false });
            }
            let (key, after) = rest.split_once('=').ok_or("an attribute has no value")?;
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            let quote = quote.ok_or("an attribute has no quotes")?;
            let (value, after) = after[1..].split_once(quote).ok_or("a value has no end")?;
            attributes.insert(key.trim(), unescape(value));
            rest = after;
        }
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(ENTITY_CHARS_MAX).find(|(_, c)| *c == ';');
        let found = end.and_then(|(end, _)| Some((entity(&rest[1..end])?, end + 1)));
        let (c, len) = found.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    let number = |text: &str, radix| u32::from_str_radix(text, radix).ok().and_then(char::from_u32);
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => number(&hex[1..], 16),
            decimal => number(decimal, 10),
        },
    }
}
