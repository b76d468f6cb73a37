//! Tables that this process has opened, with their columns as C reads them.

use samovar_shared::{ColumnKind, Table};
use std::ffi::{CString, c_char, c_int};

/// A table that this process has opened.
pub(super) struct Opened {
    pub(super) table: Table,
    pub(super) columns: Vec<RawColumn>,
    /// The strings that the columns' names point to.
    _names: Vec<CString>,
}

pub(super) const INT: c_int = 0;
pub(super) const FLOAT: c_int = 1;
pub(super) const TEXT: c_int = 2;

/// `samovar_column` of shared.h.
#[repr(C)]
pub(super) struct RawColumn {
    name: *const c_char,
    len: usize,
    kind: c_int,
    /// Its first word in a row.
    at: usize,
    /// Maximum length of a text.
    bytes: usize,
}

impl Opened {
    pub(super) fn new(table: Table) -> Opened {
        let names: Vec<CString> = table
            .columns()
            .iter()
            .map(|column| CString::new(column.name.as_str()).unwrap_or_default())
            .collect();
        let columns = table.columns().iter().zip(&names).map(|(column, name)| RawColumn {
            name: name.as_ptr(),
            len: column.name.len(),
            kind: match column.kind {
                ColumnKind::Int => INT,
                ColumnKind::Float => FLOAT,
                ColumnKind::Text(_) => TEXT,
            },
            at: column.at,
            bytes: match column.kind {
                ColumnKind::Text(bytes) => bytes,
                ColumnKind::Int | ColumnKind::Float => 0,
            },
        });
        let columns = columns.collect();
        Opened { table, columns, _names: names }
    }
}
