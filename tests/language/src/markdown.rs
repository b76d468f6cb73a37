//! Splits Markdown into paragraphs, list items, table cells and headings.

use crate::{Area, Piece};

/// What a block of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `# …`
    Heading,
    /// Lines of prose.
    Paragraph,
    /// An item of a list.
    Item,
    /// A row of a table.
    Row,
}

/// A block of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// The line where it begins, from 1.
    pub line: usize,
    /// Its text without code, link targets and markers.
    pub text: String,
}

/// The blocks of a document. Fenced and indented code is left out.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut fence: Option<String> = None;
    let mut is_open = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if let Some(open) = &fence {
            if trimmed.starts_with(open.as_str()) {
                fence = None;
            }
            continue;
        }
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            fence = Some(trimmed[..3].to_owned());
            is_open = false;
            continue;
        }
        let is_code = line.starts_with("    ") && !is_open;
        if trimmed.is_empty() || is_code || trimmed.starts_with("<!--") {
            is_open = false;
            continue;
        }
        let (kind, body) = kind_of(trimmed);
        let clean = without_links(&without_code(body));
        let continues = kind == Kind::Paragraph && is_open;
        match found.last_mut() {
            Some(last) if continues => {
                last.text.push('\n');
                last.text.push_str(clean.trim());
            }
            _ => found.push(Block { kind, line: number + 1, text: clean.trim().to_owned() }),
        }
        is_open = matches!(kind, Kind::Paragraph | Kind::Item);
    }
    found
}

/// The pieces of a document.
pub fn pieces(text: &str) -> Vec<Piece> {
    let piece = |block: Block| Piece { area: Area::Docs, line: block.line, text: block.text };
    blocks(text).into_iter().map(piece).collect()
}

fn kind_of(line: &str) -> (Kind, &str) {
    if line.starts_with('#') {
        return (Kind::Heading, line.trim_start_matches('#'));
    }
    if line.starts_with('|') {
        return (Kind::Row, line);
    }
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if numbered.len() < line.len() && numbered.starts_with(". ") {
        return (Kind::Item, &numbered[2..]);
    }
    for marker in ["- ", "* ", "+ "] {
        if let Some(rest) = line.strip_prefix(marker) {
            return (Kind::Item, rest);
        }
    }
    (Kind::Paragraph, line.strip_prefix("> ").unwrap_or(line))
}

/// A line without its parts in backticks.
pub fn without_code(line: &str) -> String {
    if line.matches('`').count() < 2 {
        return line.to_owned();
    }
    line.split('`').step_by(2).collect::<Vec<_>>().concat()
}

/// `[text](target)` → `text`; images lose both.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let Some(close) = rest[open..].find("](").map(|at| open + at) else { break };
        let Some(end) = rest[close..].find(')').map(|at| close + at) else { break };
        let is_image = rest[..open].ends_with('!');
        out.push_str(rest[..open].strip_suffix('!').unwrap_or(&rest[..open]));
        if !is_image {
            out.push_str(&rest[open + 1..close]);
        }
        rest = &rest[end + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart() {
        let text = "# A head\n\nOne\ntwo.\n\n- item\n  goes on\n- [text](target)\n\n```\ncode\n```\n| a | b |\n";
        let found: Vec<_> = blocks(text).into_iter().map(|b| (b.kind, b.line, b.text)).collect();
        let expected = [
            (Kind::Heading, 1, "A head"),
            (Kind::Paragraph, 3, "One\ntwo."),
            (Kind::Item, 6, "item\ngoes on"),
            (Kind::Item, 8, "text"),
            (Kind::Row, 13, "| a | b |"),
        ];
        assert_eq!(found, expected.map(|(kind, line, text)| (kind, line, text.to_owned())));
    }
}
