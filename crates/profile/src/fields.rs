//! Parser for a worker's output: lines with fields separated by tabs. The input is not trusted.

/// The fields of a line, in order.
pub(crate) struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    pub(crate) fn of(line: &'a str) -> Fields<'a> {
        Fields(line.split('\t'))
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }
}

/// Returns the beginning of the text, at most this number of bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}
