//! Statements of SQL without their literals, which are data of users.
//!
//! Strings, numbers and placeholders become `?`, a list of them becomes one `?`, comments are
//! dropped, and white space is folded. So all executions of one statement have one text:
//!
//! | text | normalised |
//! |---|---|
//! | `SELECT * FROM t WHERE id = 7 -- x` | `SELECT * FROM t WHERE id = ?` |
//! | `… WHERE id IN (1, 2, 3)` | `… WHERE id IN (?)` |
//! | `INSERT INTO t VALUES (1, 'a'), (2, 'b')` | `INSERT INTO t VALUES (?)` |
//!
//! In case of doubt text counts as a literal. Where two readings would find different literals, the
//! rest of the statement is cut off. Workers normalise before they report, and the server
//! normalises each reported text again: the normal form of a normal form is that form.

/// Maximum bytes of a normalised statement. The end of a longer one is cut off.
pub const STATEMENT_BYTES_MAX: usize = 1000;

/// Maximum bytes of a statement that are read.
const INPUT_BYTES_MAX: usize = 32 * 1024;
/// Maximum depth of parentheses up to which equal groups are folded.
const DEPTH_MAX: usize = 16;
/// Maximum bytes of a quoted name. A longer one counts as a string.
const NAME_BYTES_MAX: usize = 64;
/// Maximum length of the prefix of a string, such as `E` or `U&`. Prefixes with `_` may be longer.
const PREFIX_BYTES_MAX: usize = 1;
/// Mark of a text whose end was cut off.
const CUT: &[u8] = " …".as_bytes();

/// Words after which a name in double quotes may stand, for databases that also accept strings
/// there.
const BEFORE_NAMES: [&[u8]; 41] = [
    b"select",
    b"distinct",
    b"all",
    b"from",
    b"join",
    b"into",
    b"update",
    b"table",
    b"by",
    b"where",
    b"and",
    b"or",
    b"on",
    b"not",
    b"as",
    b"set",
    b"index",
    b"exists",
    b"using",
    b"references",
    b"column",
    b"having",
    b"add",
    b"drop",
    b"rename",
    b"to",
    b"key",
    b"view",
    b"constraint",
    b"savepoint",
    b"release",
    b"case",
    b"with",
    b"recursive",
    b"returning",
    b"conflict",
    b"collate",
    b"trigger",
    b"ignore",
    b"replace",
    b"delete",
];

/// Rules by which a statement is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Not known: the rest is cut off where databases differ.
    Unknown = 0,
    /// MySQL and MariaDB: `"` begins a string, and a backslash escapes.
    Mysql = 1,
    /// PostgreSQL: `"` begins a name; dollar quotes; a backslash escapes in `E''` only.
    Pgsql = 2,
    /// SQLite: `"` begins a name, or a string where no name fits.
    Sqlite = 3,
}

impl Dialect {
    /// Returns the dialect with this number; another number is an unknown one.
    #[must_use]
    pub fn of(number: u32) -> Dialect {
        match number {
            1 => Dialect::Mysql,
            2 => Dialect::Pgsql,
            3 => Dialect::Sqlite,
            _ => Dialect::Unknown,
        }
    }
}

/// Writes the normal form of a statement into `to`, up to its length. Returns the number of bytes
/// written. Allocates no memory.
pub fn normalise_sql(text: &[u8], dialect: Dialect, to: &mut [u8]) -> usize {
    let was_cut = text.len() > INPUT_BYTES_MAX;
    let room = to.len().saturating_sub(CUT.len());
    let mut reader = Reader {
        text: &text[..text.len().min(INPUT_BYTES_MAX)],
        at: 0,
        dialect,
        to,
        room,
        len: 0,
        is_cut: false,
        spaced: false,
        last: Last::Nothing,
        between: false,
        sign: None,
        depth: 0,
        groups: [Group::default(); DEPTH_MAX],
    };
    while !reader.is_cut && reader.token() {}
    reader.is_cut |= was_cut;
    reader.end()
}

/// The token before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    /// A word after which a name may stand.
    BeforeName,
    /// `VALUES` or `IN`: a list of values may follow.
    BeforeValues,
    Word,
    Name,
    Literal,
    Open,
    Close,
    Comma,
    Dot,
    Operator,
}

/// An open parenthesis, and the last group that was closed at the same depth.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    begin: usize,
    is_values: bool,
    last_begin: usize,
    last_end: usize,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    dialect: Dialect,
    to: &'a mut [u8],
    room: usize,
    len: usize,
    is_cut: bool,
    /// Whether white space precedes the next token.
    spaced: bool,
    last: Last,
    /// Whether the next `AND` belongs to a `BETWEEN`.
    between: bool,
    /// State before a sign that belongs to the next number.
    sign: Option<(usize, Last, bool)>,
    depth: usize,
    groups: [Group; DEPTH_MAX],
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

fn begins_word(b: u8) -> bool {
    is_word(b) && !b.is_ascii_digit() && b != b'$'
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Returns the index of the first byte at or after `from` that is not of this kind.
    fn after(&self, from: usize, is_of_kind: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        rest.iter().position(|b| !is_of_kind(*b)).map_or(self.text.len(), |n| from + n)
    }

    /// Reads a token. Returns false at the end.
    fn token(&mut self) -> bool {
        let Some(&first) = self.text.get(self.at) else { return false };
        match first {
            0..=b' ' | 0x7f => {
                self.at += 1;
                self.spaced = true;
            }
            b'-' if self.peek(1) == b'-' && self.is_dash_comment() => self.line_comment(),
            b'#' if self.dialect == Dialect::Mysql => self.line_comment(),
            b'/' if self.peek(1) == b'*' => self.comment(),
            b'\'' => self.string(self.dialect == Dialect::Mysql),
            b'"' if self.dialect == Dialect::Mysql => self.string(true),
            b'"' | b'`' => self.name(first),
            b'[' if self.dialect == Dialect::Sqlite => self.name(b']'),
            b'[' if self.dialect == Dialect::Unknown => self.bracket(),
            b'$' => self.dollar(),
            b'?' => {
                self.at = self.after(self.at + 1, |b| b.is_ascii_digit());
                self.literal();
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() && !self.is_after_value() => self.number(),
            b':' if begins_word(self.peek(1)) => {
                self.at = self.after(self.at + 1, is_word);
                self.literal();
            }
            b':' if self.peek(1) == b':' => {
                self.at += 2;
                self.put(b"::", Last::Operator);
            }
            _ if begins_word(first) => self.word(),
            _ => self.mark(first),
        }
        true
    }

    /// MySQL requires white space after the dashes.
    fn is_dash_comment(&self) -> bool {
        self.dialect != Dialect::Mysql || self.peek(2) <= b' '
    }

    fn is_after_value(&self) -> bool {
        !self.spaced && matches!(self.last, Last::Word | Last::Name | Last::Literal | Last::Close)
    }

    fn line_comment(&mut self) {
        self.at = self.after(self.at, |b| b != b'\n');
        self.spaced = true;
    }

    /// PostgreSQL's comments are nested, those of others are not.
    fn comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth = if self.dialect == Dialect::Pgsql { depth + 1 } else { 1 };
                    self.at += 2;
                    if depth == 1 && self.dialect == Dialect::Unknown && self.is_nested() {
                        self.is_cut = true;
                        return;
                    }
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        break;
                    }
                }
                _ if self.at >= self.text.len() => break,
                _ => self.at += 1,
            }
        }
        self.spaced = true;
    }

    /// Returns whether the comment that has begun contains the begin of another one.
    fn is_nested(&self) -> bool {
        let rest = &self.text[self.at..];
        let end = rest.windows(2).position(|two| two == b"*/").unwrap_or(rest.len());
        rest[..end].windows(2).any(|two| two == b"/*")
    }

    fn string(&mut self, escapes: bool) {
        let quote = self.peek(0);
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                None => break,
                Some(b'\\') if escapes => self.at += 2,
                Some(b'\\') if self.dialect == Dialect::Unknown && self.peek(1) == quote => {
                    // Where the string ends depends on the database.
                    self.literal();
                    self.is_cut = true;
                    return;
                }
                Some(b) if *b == quote => {
                    self.at += 1;
                    if self.peek(0) != quote {
                        break;
                    }
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        self.literal();
    }

    /// Reads a quoted name, which ends with `end`.
    fn name(&mut self, end: u8) {
        let begin = self.at;
        let close = self.after(begin + 1, |b| b != end);
        let content = &self.text[begin + 1..close];
        let is_plain = |b: &u8| is_word(*b) || matches!(*b, b' ' | b'.' | b'-');
        let is_name = close < self.text.len()
            && self.text.get(close + 1) != Some(&end)
            && content.len() <= NAME_BYTES_MAX
            && content.iter().all(is_plain);
        if !is_name || (end == b'"' && !self.fits_name(close)) {
            self.at = close;
            // A doubled quote is a part of it.
            while self.at < self.text.len() {
                self.at += 1;
                if self.peek(0) != end {
                    break;
                }
                self.at = self.after(self.at + 1, |b| b != end);
            }
            return self.literal();
        }
        self.at = close + 1;
        let text = self.text;
        self.put(&text[begin..=close], Last::Name);
    }

    /// Returns whether a text in double quotes that ends at `close` is a name. PostgreSQL has no
    /// others. Elsewhere it may be a string.
    fn fits_name(&self, close: usize) -> bool {
        if self.dialect == Dialect::Pgsql || self.text.get(close + 1) == Some(&b'.') {
            return true;
        }
        match self.last {
            Last::Dot | Last::BeforeName | Last::Close => true,
            Last::Comma | Last::Open => {
                let group = self.depth.checked_sub(1).and_then(|at| self.groups.get(at));
                self.depth == 0 || group.is_some_and(|group| !group.is_values)
            }
            _ => false,
        }
    }

    /// Reads `[a name]`, or the bracket of something else.
    fn bracket(&mut self) {
        let close = self.after(self.at + 1, |b| b != b']');
        if self.text[self.at + 1..close].iter().any(|b| matches!(b, b'\'' | b'"' | b'`')) {
            self.is_cut = true;
        } else {
            self.mark(b'[');
        }
    }

    /// Reads a placeholder, or a string between `$tag$` and `$tag$`.
    fn dollar(&mut self) {
        let begin = self.at;
        let tag = self.after(begin + 1, |b| is_word(b) && b != b'$');
        let is_quote = self.text.get(tag) == Some(&b'$')
            && !self.text[begin + 1].is_ascii_digit()
            && matches!(self.dialect, Dialect::Pgsql | Dialect::Unknown);
        self.at = tag.max(begin + 1);
        if is_quote {
            let quote = &self.text[begin..=tag];
            let rest = &self.text[tag + 1..];
            let end = rest.windows(quote.len()).position(|window| window == quote);
            self.at = end.map_or(self.text.len(), |end| tag + 1 + end + quote.len());
        }
        self.literal();
    }

    fn number(&mut self) {
        let begin = self.at;
        let is_hex = self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'X');
        loop {
            let next = self.after(self.at, |b| is_word(b) || b == b'.');
            self.at = next;
            let is_exponent = !is_hex
                && next > begin
                && matches!(self.text[next - 1], b'e' | b'E')
                && matches!(self.peek(0), b'+' | b'-')
                && self.peek(1).is_ascii_digit();
            if !is_exponent {
                break;
            }
            self.at += 1;
        }
        self.literal();
    }

    fn word(&mut self) {
        let begin = self.at;
        self.at = self.after(begin, is_word);
        let text = self.text;
        let word = &text[begin..self.at];
        if self.peek(0) == b'\'' && (word.len() <= PREFIX_BYTES_MAX || word[0] == b'_') {
            let escapes = match self.dialect {
                Dialect::Mysql => true,
                Dialect::Pgsql => word.eq_ignore_ascii_case(b"e"),
                Dialect::Sqlite | Dialect::Unknown => false,
            };
            return self.string(escapes);
        }
        let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
        let last = match word.len() {
            2 if is(b"in") => Last::BeforeValues,
            6 if is(b"values") => Last::BeforeValues,
            7 if is(b"between") => {
                self.between = true;
                Last::Word
            }
            3 if self.between && is(b"and") => {
                self.between = false;
                Last::Word
            }
            2..=10 if BEFORE_NAMES.iter().any(|known| is(known)) => Last::BeforeName,
            _ => Last::Word,
        };
        self.put(word, last);
    }

    fn mark(&mut self, mark: u8) {
        self.at += 1;
        match mark {
            b'(' => self.open(),
            b')' => self.close(),
            b',' => {
                self.spaced = false;
                self.put(b",", Last::Comma);
                self.spaced = true;
            }
            b'.' => self.put(b".", Last::Dot),
            b'+' | b'-' => {
                let is_sign = matches!(self.last, Last::Open | Last::Comma | Last::Operator);
                let before = (self.len, self.last, self.spaced);
                self.put(&[mark], Last::Operator);
                self.sign = is_sign.then_some(before);
            }
            _ => self.put(&[mark], Last::Operator),
        }
    }

    fn open(&mut self) {
        let is_values = self.last == Last::BeforeValues
            || (self.last == Last::Comma && self.group().is_some_and(|group| group.is_values));
        self.put(b"(", Last::Open);
        let begin = self.len - 1;
        if let Some(group) = self.groups.get_mut(self.depth) {
            group.begin = begin;
            group.is_values = is_values;
        }
        self.depth += 1;
        if let Some(inner) = self.groups.get_mut(self.depth) {
            *inner = Group::default();
        }
    }

    /// Returns the group at the current depth that was closed last, or that will be opened next.
    fn group(&self) -> Option<&Group> {
        self.groups.get(self.depth)
    }

    /// Ends a group, and drops it if it equals the one before it in a list.
    fn close(&mut self) {
        self.spaced = false;
        self.put(b")", Last::Close);
        if self.depth == 0 {
            return;
        }
        self.depth -= 1;
        let end = self.len;
        let Some(group) = self.groups.get_mut(self.depth) else { return };
        let Group { begin, last_begin, last_end, .. } = *group;
        let is_next = last_end > last_begin && begin == last_end + 2;
        if is_next && self.to[last_begin..last_end] == self.to[begin.min(end)..end] {
            self.len = last_end;
        } else {
            (group.last_begin, group.last_end) = (begin, end);
        }
    }

    /// Writes the placeholder of a literal, unless it continues a list of them.
    fn literal(&mut self) {
        if let Some(before) = self.sign.take() {
            (self.len, self.last, self.spaced) = before;
        }
        if self.to[..self.len].ends_with(b"?,") {
            self.len -= 1;
            self.spaced = false;
            self.last = Last::Literal;
            return;
        }
        self.put(b"?", Last::Literal);
    }

    fn put(&mut self, token: &[u8], last: Last) {
        let is_glued = self.len == 0 || self.last == Last::Open;
        let space = usize::from(self.spaced && !is_glued);
        self.spaced = false;
        self.sign = None;
        if self.len + space + token.len() > self.room {
            self.is_cut = true;
            return;
        }
        if space > 0 {
            self.to[self.len] = b' ';
        }
        let begin = self.len + space;
        self.len = begin + token.len();
        self.to[begin..self.len].copy_from_slice(token);
        self.last = last;
    }

    fn end(mut self) -> usize {
        while matches!(self.to[..self.len].last(), Some(b';' | b' ')) {
            self.len -= 1;
        }
        if self.is_cut && self.len + CUT.len() <= self.to.len() {
            self.to[self.len..self.len + CUT.len()].copy_from_slice(CUT);
            self.len += CUT.len();
        }
        self.len
    }
}

#[cfg(test)]
mod tests;
