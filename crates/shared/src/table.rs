//! Rows of fixed columns under keys. [`Table`] adds the columns to the chains below it.

use crate::chain::{Chains, Dimensions, Refused};
use crate::client::Client;
use crate::columns::{Column, ColumnKind, Definition, Value, WrongDefinition};
use crate::directory::{Entry, Kind, OpenError, Wanted};
use crate::table_error::TableError;

/// Why a table cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum TableOpenError {
    /// Its definition is invalid.
    #[error(transparent)]
    Definition(#[from] WrongDefinition),
    /// The object cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A process's handle of a table, with a buffer for the row that it works on.
#[derive(Debug)]
pub struct Table {
    object: u32,
    name: String,
    is: Definition,
    row: Vec<u64>,
    key: Vec<u8>,
}

impl Table {
    /// Opens the table of that name; a new one is empty.
    pub fn open(
        client: &Client,
        name: &[u8],
        rows: usize,
        key_bytes: usize,
        columns: &[(&str, ColumnKind)],
    ) -> Result<Table, TableOpenError> {
        let is = Definition::new(rows, key_bytes, columns)?;
        let definition = is.to_string();
        let words = is.dimensions.words();
        let wanted = Wanted { kind: Kind::Table, name, definition: &definition, words };
        let object = client.open(&wanted)?;
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Table { object, name, row: vec![0; is.dimensions.data_words], is, key: Vec::new() })
    }

    /// Number of its object: the same for the same table.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Its columns, with their positions in a row.
    pub fn columns(&self) -> &[Column] {
        &self.is.columns
    }

    /// The row found last.
    pub fn row(&self) -> &[u64] {
        &self.row
    }

    /// The key found last by [`Table::next`].
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    fn refused(name: &str, rows: usize, why: Refused) -> TableError {
        match why {
            Refused::Full => TableError::Full { name: name.to_owned(), rows },
            Refused::Busy => TableError::Busy(name.to_owned()),
        }
    }

    fn check(&self, key: &[u8]) -> Result<(), TableError> {
        let (max, found) = (self.is.key_bytes, key.len());
        if found == 0 || found > max {
            return Err(TableError::Key { name: self.name.clone(), max, found });
        }
        Ok(())
    }

    /// Finds a row and copies it to [`Table::row`]. Returns false if there is none.
    pub fn get(&mut self, client: &Client, key: &[u8]) -> Result<bool, TableError> {
        self.check(key)?;
        let chains = chains(client, self.object, self.is.dimensions);
        let found = chains.map_or(Ok(false), |chains| {
            chains.read(client.me(self.object), client.hash(key), key, &mut self.row)
        });
        found.map_err(|_| TableError::Busy(self.name.clone()))
    }

    /// Writes some columns. In a new row, columns that are not named are 0 or empty.
    pub fn set(
        &mut self,
        client: &Client,
        key: &[u8],
        values: &[(usize, Value<'_>)],
    ) -> Result<(), TableError> {
        for (column, value) in values {
            self.is.fits(*column, value)?;
        }
        self.change(client, key, |is, row, _| {
            for (column, value) in values {
                is.columns[*column].put(row, value);
            }
            (true, ())
        })
    }

    /// Adds to a number, which starts at 0. The new row is in [`Table::row`].
    pub fn add(
        &mut self,
        client: &Client,
        key: &[u8],
        column: usize,
        by: Value<'_>,
    ) -> Result<(), TableError> {
        self.is.fits(column, &by)?;
        let added = self.change(client, key, |is, row, _| {
            let sum = is.columns[column].sum(row, &by);
            sum.inspect(|sum| is.columns[column].put(row, sum));
            (sum.is_some(), sum.is_some())
        })?;
        if added {
            return Ok(());
        }
        let column = &self.is.columns[column];
        Err(match by {
            Value::Int(_) => TableError::Overflow(column.name.clone()),
            _ => TableError::Type { column: column.name.clone(), holds: column.kind.to_string() },
        })
    }

    /// Writes a column of an existing row if it holds `expected`.
    pub fn compare_and_set(
        &mut self,
        client: &Client,
        key: &[u8],
        column: usize,
        expected: Value<'_>,
        to: Value<'_>,
    ) -> Result<bool, TableError> {
        self.is.fits(column, &expected)?;
        self.is.fits(column, &to)?;
        self.change(client, key, |is, row, is_new| {
            let is_it = !is_new && is.columns[column].holds(row, &expected);
            if is_it {
                is.columns[column].put(row, &to);
            }
            (is_it, is_it)
        })
    }

    fn change<R>(
        &mut self,
        client: &Client,
        key: &[u8],
        change: impl Fn(&Definition, &mut [u64], bool) -> (bool, R),
    ) -> Result<R, TableError> {
        self.check(key)?;
        let Table { object, name, is, row, .. } = self;
        let rows = is.dimensions.rows;
        let chains = chains(client, *object, is.dimensions)
            .ok_or_else(|| Self::refused(name, rows, Refused::Busy))?;
        let key = (client.hash(key), key);
        let changed = chains.update(client.me(*object), key, row, |row, new| change(is, row, new));
        changed.map_err(|why| Self::refused(name, rows, why))
    }

    /// Removes a row. Returns false if there is none.
    pub fn delete(&mut self, client: &Client, key: &[u8]) -> Result<bool, TableError> {
        self.check(key)?;
        let chains = chains(client, self.object, self.is.dimensions);
        let deleted = chains.map_or(Ok(false), |chains| {
            chains.delete(client.me(self.object), client.hash(key), key)
        });
        deleted.map_err(|_| TableError::Busy(self.name.clone()))
    }

    /// Number of rows in use.
    pub fn count(&self, client: &Client) -> usize {
        chains(client, self.object, self.is.dimensions).map_or(0, Chains::count)
    }

    /// Finds the first row from `cursor` on and returns its number. The row is in [`Table::row`]
    /// and [`Table::key`].
    ///
    /// Each row is consistent. Rows that other processes insert or remove in the meantime may be
    /// seen or not.
    pub fn next(&mut self, client: &Client, cursor: u32) -> Result<Option<u32>, TableError> {
        let Some(chains) = chains(client, self.object, self.is.dimensions) else { return Ok(None) };
        let next = chains.next(client.me(self.object), cursor, &mut self.key, &mut self.row);
        next.map_err(|_| TableError::Busy(self.name.clone()))
    }
}

/// The words of a table; `None` if they are fewer than it needs.
fn chains(client: &Client, object: u32, is: Dimensions) -> Option<Chains<'_>> {
    let words = Entry::of(client.shared(), object).words(client.shared())?;
    (words.len() >= is.words()).then(|| Chains::new(words, is))
}

/// Numbers of rows in use and of all rows, for a process that only reads.
pub(crate) fn fill(words: &[std::sync::atomic::AtomicU64], definition: &str) -> Option<(u64, u64)> {
    let is = Definition::parse(definition)?.dimensions;
    let chains = (words.len() >= is.words()).then(|| Chains::new(words, is))?;
    Some((chains.count() as u64, is.rows as u64))
}
