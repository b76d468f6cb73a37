//! Bytes from a pipe, cut at any position → blocks of whole lines.

/// Longer lines are passed on in pieces. PHP's longest message is shorter, even if every character
/// must be escaped (`MESSAGE_BYTES_MAX` in crates/worker/src/log.rs, six times that as JSON).
const LINE_BYTES_MAX: usize = 256 << 10;

/// Beginning of a line whose end has not arrived yet.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Adds bytes and returns the lines that are complete now, with their line ends.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(whole);
        let mut block = Vec::new();
        if !lines.is_empty() {
            block = std::mem::take(&mut self.0);
            block.extend_from_slice(lines);
        }
        self.0.extend_from_slice(rest);
        if self.0.len() >= LINE_BYTES_MAX {
            block.extend(self.end().unwrap_or_default());
        }
        (!block.is_empty()).then_some(block)
    }

    /// Ends the current line, and returns it if it is not empty.
    pub(crate) fn end(&mut self) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push(b'\n');
        Some(std::mem::take(&mut self.0))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_returns_only_complete_lines() {
        let mut lines = Lines::default();
        let mut take = |bytes: &[u8]| lines.take(bytes);
        assert_eq!(take(b"one\n"), Some(b"one\n".to_vec()));
        assert_eq!(take(b"tw"), None);
        assert_eq!(take(b"o\n\nthree\nfo"), Some(b"two\n\nthree\n".to_vec()));
        assert_eq!(take(b"ur"), None);
        assert_eq!(lines.end(), Some(b"four\n".to_vec()));
        assert_eq!(lines.end(), None);
        assert!(lines.is_empty());
    }

    #[test]
    fn line_without_end_is_split_into_pieces() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; 64 << 10];
        let blocks: Vec<_> = (0..9).filter_map(|_| lines.take(&piece)).collect();
        assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [LINE_BYTES_MAX + 1; 2]);
        assert_eq!(lines.end().map(|line| line.len()), Some(piece.len() + 1));
    }
}
