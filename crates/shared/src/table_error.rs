//! Errors of operations on a table: `table` and `columns` return them.

/// Why an operation failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TableError {
    /// All rows are in use.
    #[error(
        "the table `{name}` is full: it has {rows} rows\nhint: delete rows, or define the table \
         with more rows"
    )]
    Full {
        /// The table's name.
        name: String,
        /// Its number of rows.
        rows: usize,
    },
    /// A process that holds a row does not continue.
    #[error("a stopped process holds a row of the table `{0}`")]
    Busy(String),
    /// The key is empty or too long.
    #[error("a key of the table `{name}` has 1 to {max} bytes, not {found}")]
    Key {
        /// The table's name.
        name: String,
        /// Maximum length of a key, bytes.
        max: usize,
        /// Length of the key, bytes.
        found: usize,
    },
    /// A text is too long for its column.
    #[error("the column `{column}` holds {max} bytes, not {found}")]
    Text {
        /// The column's name.
        column: String,
        /// Its size, bytes.
        max: usize,
        /// Length of the text, bytes.
        found: usize,
    },
    /// There is no such column.
    #[error("there is no column {0}")]
    Column(usize),
    /// The column is of another type.
    #[error("the column `{column}` holds {holds}")]
    Type {
        /// The column's name.
        column: String,
        /// The type that it holds.
        holds: String,
    },
    /// The sum does not fit an integer of 64 bits.
    #[error("the sum in column `{0}` does not fit into an integer")]
    Overflow(String),
}
