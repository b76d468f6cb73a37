//! Text of a file, and its lines.

/// Maximum length of the line text that a finding keeps.
const LINE_TEXT_MAX: usize = 200;

/// Maximum number of bytes of a line that this text is made of.
const LINE_BYTES_MAX: usize = 2_000;

/// A file's text.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a [u8],
    /// Offsets of the first bytes of lines.
    lines: Vec<u32>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut lines = vec![0];
        lines.extend(memchr::memchr_iter(b'\n', text).map(|at| at as u32 + 1));
        Self { text, lines }
    }

    /// Returns line and column, both from 1. The column counts bytes.
    pub(crate) fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        (line as u32, offset - self.lines[line - 1] + 1)
    }

    /// Returns the text of the line at this offset, with single spaces.
    pub(crate) fn line_text(&self, offset: u32) -> String {
        let (line, _) = self.position(offset);
        let start = self.lines[line as usize - 1] as usize;
        let end = self.lines.get(line as usize).map_or(self.text.len(), |next| *next as usize);
        let end = end.min(start + LINE_BYTES_MAX);
        let mut text = String::new();
        for word in String::from_utf8_lossy(&self.text[start..end]).split_whitespace() {
            if !text.is_empty() {
                text.push(' ');
            }
            text.extend(word.chars().take(LINE_TEXT_MAX));
            if text.len() > LINE_TEXT_MAX {
                break;
            }
        }
        text
    }

    /// Number of lines.
    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_with_either_ending() {
        let source = Source::new(b"a\r\nbc\n\nd");
        let positions = [(0, (1, 1)), (3, (2, 1)), (4, (2, 2)), (6, (3, 1)), (7, (4, 1))];
        for (offset, position) in positions {
            assert_eq!(source.position(offset), position);
        }
        assert_eq!(source.line_text(4), "bc");
    }
}
