//! Columns of a table: their types and values, their positions in a row, and their text form. The
//! rows are in `chain`.

use crate::chain::Dimensions;
use crate::sync::words_of;
use crate::table_error::TableError;
use std::fmt;

/// Maximum number of columns of a table.
pub const COLUMNS_MAX: usize = 64;
/// Maximum length of a key, bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// Maximum bytes of a row's columns together.
pub const ROW_BYTES_MAX: usize = 64 << 10;
/// Maximum number of rows.
const ROWS_MAX: usize = 1 << 26;
const COLUMN_NAME_BYTES_MAX: usize = 64;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// An integer of 64 bits.
    Int,
    /// A floating point number of 64 bits.
    Float,
    /// A string of at most this number of bytes.
    Text(usize),
}

impl ColumnKind {
    /// Parses `int`, `float` or `string(40)`.
    pub fn parse(text: &str) -> Option<ColumnKind> {
        match text {
            "int" => Some(ColumnKind::Int),
            "float" => Some(ColumnKind::Float),
            _ => {
                let size = text.strip_prefix("string(")?.strip_suffix(')')?;
                size.parse().ok().filter(|size| *size > 0).map(ColumnKind::Text)
            }
        }
    }

    fn words(self) -> usize {
        match self {
            ColumnKind::Int | ColumnKind::Float => 1,
            // Its length is stored before it.
            ColumnKind::Text(bytes) => 1 + words_of(bytes),
        }
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnKind::Int => to.write_str("int"),
            ColumnKind::Float => to.write_str("float"),
            ColumnKind::Text(bytes) => write!(to, "string({bytes})"),
        }
    }
}

/// Value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// For [`ColumnKind::Int`].
    Int(i64),
    /// For [`ColumnKind::Float`].
    Float(f64),
    /// For [`ColumnKind::Text`].
    Text(&'a [u8]),
}

/// A column and its place in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in PHP.
    pub name: String,
    /// Its type.
    pub kind: ColumnKind,
    /// Index of its first word.
    pub at: usize,
}

impl Column {
    /// Writes `value`, which must fit ([`Definition::fits`]).
    pub(crate) fn put(&self, row: &mut [u64], value: &Value<'_>) {
        match value {
            Value::Int(number) => row[self.at] = number.cast_unsigned(),
            Value::Float(number) => row[self.at] = number.to_bits(),
            Value::Text(text) => {
                row[self.at] = text.len() as u64;
                for (word, bytes) in row[self.at + 1..].iter_mut().zip(text.chunks(8)) {
                    let mut whole = [0; 8];
                    whole[..bytes.len()].copy_from_slice(bytes);
                    *word = u64::from_ne_bytes(whole);
                }
            }
        }
    }

    pub(crate) fn holds(&self, row: &[u64], value: &Value<'_>) -> bool {
        match value {
            Value::Int(number) => row[self.at] == number.cast_unsigned(),
            // Compared as numbers: -0.0 equals 0.0.
            #[allow(clippy::float_cmp)] // The caller compares with exactly this number.
            Value::Float(number) => f64::from_bits(row[self.at]) == *number,
            Value::Text(text) => {
                let mut wanted = vec![0; self.kind.words()];
                Column { at: 0, ..self.clone() }.put(&mut wanted, value);
                let words = 1 + words_of(text.len());
                row[self.at..self.at + words] == wanted[..words]
            }
        }
    }

    /// Sum of the row's number and `by`. `None` if it is too large or not a number.
    pub(crate) fn sum(&self, row: &[u64], by: &Value<'_>) -> Option<Value<'static>> {
        match by {
            Value::Int(by) => row[self.at].cast_signed().checked_add(*by).map(Value::Int),
            Value::Float(by) => Some(Value::Float(f64::from_bits(row[self.at]) + by)),
            Value::Text(_) => None,
        }
    }
}

/// Why the definition of a table is invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WrongDefinition {
    /// Too few or too many rows.
    #[error("a table has 1 to {ROWS_MAX} rows, not {0}")]
    Rows(usize),
    /// Keys too short or too long.
    #[error("keys of a table have room for 1 to {KEY_BYTES_MAX} bytes, not {0}")]
    Keys(usize),
    /// Too few or too many columns.
    #[error("a table has 1 to {COLUMNS_MAX} columns, not {0}")]
    Columns(usize),
    /// An invalid column name.
    #[error(
        "`{0}` is not a valid column name\n\
         hint: use 1 to {COLUMN_NAME_BYTES_MAX} letters, digits and `_`"
    )]
    Name(String),
    /// The same name twice.
    #[error("the column `{0}` is defined twice")]
    Twice(String),
    /// The columns take too many bytes.
    #[error("the columns take {0} bytes, but a row has at most {ROW_BYTES_MAX}")]
    Row(usize),
}

/// The data that determines the layout of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) key_bytes: usize,
    pub(crate) columns: Vec<Column>,
    pub(crate) dimensions: Dimensions,
}

impl Definition {
    pub(crate) fn new(
        rows: usize,
        key_bytes: usize,
        columns: &[(&str, ColumnKind)],
    ) -> Result<Definition, WrongDefinition> {
        if !(1..=ROWS_MAX).contains(&rows) {
            return Err(WrongDefinition::Rows(rows));
        }
        if !(1..=KEY_BYTES_MAX).contains(&key_bytes) {
            return Err(WrongDefinition::Keys(key_bytes));
        }
        if !(1..=COLUMNS_MAX).contains(&columns.len()) {
            return Err(WrongDefinition::Columns(columns.len()));
        }
        let (mut placed, mut at) = (Vec::<Column>::new(), 0_usize);
        for (name, kind) in columns {
            if !is_name(name) {
                return Err(WrongDefinition::Name((*name).to_owned()));
            }
            if placed.iter().any(|column| column.name == *name) {
                return Err(WrongDefinition::Twice((*name).to_owned()));
            }
            placed.push(Column { name: (*name).to_owned(), kind: *kind, at });
            at = at.saturating_add(kind.words());
        }
        if at > ROW_BYTES_MAX / 8 {
            return Err(WrongDefinition::Row(at.saturating_mul(8)));
        }
        let dimensions = Dimensions { rows, key_words: words_of(key_bytes), data_words: at };
        Ok(Definition { key_bytes, columns: placed, dimensions })
    }

    /// Parses the text that [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Option<Definition> {
        let (mut rows, mut key, mut columns) = (0, 0, Vec::new());
        for word in text.split(' ') {
            if let Some(number) = word.strip_prefix("rows=") {
                rows = number.parse().ok()?;
            } else if let Some(number) = word.strip_prefix("key=") {
                key = number.parse().ok()?;
            } else {
                let (name, kind) = word.split_once(':')?;
                columns.push((name, ColumnKind::parse(kind)?));
            }
        }
        Definition::new(rows, key, &columns).ok()
    }

    /// Checks whether a value can be written to the column.
    pub(crate) fn fits(&self, column: usize, value: &Value<'_>) -> Result<(), TableError> {
        let column = self.columns.get(column).ok_or(TableError::Column(column))?;
        match (column.kind, value) {
            (ColumnKind::Int, Value::Int(_)) | (ColumnKind::Float, Value::Float(_)) => Ok(()),
            (ColumnKind::Text(max), Value::Text(text)) if text.len() <= max => Ok(()),
            (ColumnKind::Text(max), Value::Text(text)) => {
                Err(TableError::Text { column: column.name.clone(), max, found: text.len() })
            }
            (kind, _) => {
                Err(TableError::Type { column: column.name.clone(), holds: kind.to_string() })
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=COLUMN_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl fmt::Display for Definition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "rows={} key={}", self.dimensions.rows, self.key_bytes)?;
        self.columns.iter().try_for_each(|column| write!(to, " {}:{}", column.name, column.kind))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn written_definition_is_parsed_back_unchanged() {
        let columns =
            [("hits", ColumnKind::Int), ("rate", ColumnKind::Float), ("by", ColumnKind::Text(17))];
        let definition = Definition::new(100, 20, &columns).expect("a good one");
        assert_eq!(definition.to_string(), "rows=100 key=20 hits:int rate:float by:string(17)");
        assert_eq!(Definition::parse(&definition.to_string()), Some(definition.clone()));
        assert_eq!(definition.dimensions.data_words, 1 + 1 + 1 + 3);
        for garbage in ["", "rows=1", "rows=1 key=1", "rows=0 key=1 a:int", "rows=1 key=1 a:long"] {
            assert_eq!(Definition::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn invalid_definitions_are_rejected() {
        let check = |rows, key, columns: &[(&str, ColumnKind)], wrong: WrongDefinition| {
            assert_eq!(Definition::new(rows, key, columns), Err(wrong));
        };
        let column = ("a", ColumnKind::Int);
        check(0, 8, &[column], WrongDefinition::Rows(0));
        check(1, 0, &[column], WrongDefinition::Keys(0));
        check(1, 8, &[], WrongDefinition::Columns(0));
        check(1, 8, &[column, column], WrongDefinition::Twice("a".into()));
        check(1, 8, &[("a b", ColumnKind::Int)], WrongDefinition::Name("a b".into()));
        let huge = ("a", ColumnKind::Text(ROW_BYTES_MAX));
        check(1, 8, &[huge], WrongDefinition::Row(ROW_BYTES_MAX + 8));
    }
}
