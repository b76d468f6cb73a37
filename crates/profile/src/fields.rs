//! What a worker writes line by line: fields between tabs, none of which is believed.

/// The fields of a line, one after the other.
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

/// The text's beginning, of at most so many bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}
