//! `Samovar\Table`: values as C has them, and rows that are lent to C.

use super::open_table::{FLOAT, INT, Opened, RawColumn};
use super::problem::{Thrown, Why};
use super::state::{SharedState, act};
use crate::bytes::slice;
use samovar_shared::{ColumnKind, Table, TableError, Value};
use std::ffi::{c_char, c_int};

/// `samovar_definition` of shared.h.
#[repr(C)]
struct RawDefinition {
    name: *const c_char,
    len: usize,
    kind: *const c_char,
    kind_len: usize,
}

/// `samovar_value` of shared.h.
#[repr(C)]
struct RawValue {
    column: usize,
    kind: c_int,
    /// An integer, or the bits of a float.
    bits: u64,
    text: *const c_char,
    len: usize,
}

impl RawValue {
    /// # Safety
    /// Its text must have its length, and live as long as the result.
    unsafe fn value<'a>(&self) -> Value<'a> {
        match self.kind {
            INT => Value::Int(self.bits.cast_signed()),
            FLOAT => Value::Float(f64::from_bits(self.bits)),
            // SAFETY: promised by the caller.
            _ => Value::Text(unsafe { slice(self.text, self.len) }),
        }
    }
}

/// Keeps a table and returns its number. A table that is already open is found again, so that a
/// process that opens it in each request has it once.
fn keep(place: &mut SharedState, table: Table) -> usize {
    if let Some(at) = place.tables.iter().position(|kept| kept.table.object() == table.object()) {
        return at;
    }
    place.tables.push(Opened::new(table));
    place.tables.len() - 1
}

/// Calls `f` with a table. Returns -1 on failure.
fn with_table(
    table: u32,
    f: impl FnOnce(&mut Table, &samovar_shared::Client) -> Result<i64, TableError>,
) -> i64 {
    act(|place| {
        let SharedState { client, tables, .. } = place;
        let opened = tables.get_mut(table as usize).ok_or(TableError::Column(0))?;
        Ok(f(&mut opened.table, client)?)
    })
    .unwrap_or(-1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_open(
    name: *const c_char,
    len: usize,
    rows: usize,
    key_bytes: usize,
    columns: *const RawDefinition,
    count: usize,
) -> i64 {
    // SAFETY: shared.h: `name` has `len` bytes.
    let name = unsafe { slice(name, len) };
    // SAFETY: shared.h: `count` definitions; the pointer is not null even for none.
    let columns = unsafe { std::slice::from_raw_parts(columns, count) };
    let opened = act(|place| {
        let mut wanted = Vec::with_capacity(columns.len());
        for column in columns {
            // SAFETY: shared.h: `name` has `len` bytes.
            let name = unsafe { slice(column.name, column.len) };
            // SAFETY: shared.h: `kind` has `kind_len` bytes.
            let kind = unsafe { slice(column.kind, column.kind_len) };
            wanted.push((text(name)?, kind_of(text(kind)?)?));
        }
        let table = Table::open(&place.client, name, rows, key_bytes, &wanted)?;
        Ok(keep(place, table))
    });
    opened.map_or(-1, usize::cast_signed) as i64
}

fn text(bytes: &[u8]) -> Result<&str, Why> {
    let wrong = || "columns have names and types of letters".to_owned();
    std::str::from_utf8(bytes).map_err(|_| Why(Thrown::Value, wrong()))
}

fn kind_of(text: &str) -> Result<ColumnKind, Why> {
    let wrong = || {
        let text = format!("a column holds `int`, `float` or `string(40)`, not `{text}`");
        Why(Thrown::Value, text)
    };
    ColumnKind::parse(text).ok_or_else(wrong)
}

/// Returns the columns of a table, and stores their number in `count`.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_columns(table: u32, count: *mut usize) -> *const RawColumn {
    let found = act(|place| {
        let opened = place.tables.get(table as usize).ok_or(TableError::Column(0))?;
        Ok((opened.columns.as_ptr(), opened.columns.len()))
    });
    let (columns, len) = found.unwrap_or((std::ptr::null(), 0));
    // SAFETY: shared.h: `count` points to a number.
    unsafe { *count = len };
    columns
}

/// Returns the row that was found last. Valid until the next call.
#[unsafe(no_mangle)]
extern "C" fn samovar_table_row(table: u32) -> *const u64 {
    act(|place| {
        let opened = place.tables.get(table as usize).ok_or(TableError::Column(0))?;
        Ok(opened.table.row().as_ptr())
    })
    .unwrap_or(std::ptr::null())
}

/// Returns the key that was found last, and stores its length in `len`.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_key(table: u32, len: *mut usize) -> *const c_char {
    let found = act(|place| {
        let opened = place.tables.get(table as usize).ok_or(TableError::Column(0))?;
        Ok((opened.table.key().as_ptr(), opened.table.key().len()))
    });
    let (key, bytes) = found.unwrap_or((std::ptr::null(), 0));
    // SAFETY: shared.h: `len` points to a number.
    unsafe { *len = bytes };
    key.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_get(table: u32, key: *const c_char, len: usize) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_table(table, |table, client| table.get(client, key).map(i64::from))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_set(
    table: u32,
    key: *const c_char,
    len: usize,
    values: *const RawValue,
    count: usize,
) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    // SAFETY: shared.h: `count` values; the pointer is not null even for none.
    let values = unsafe { std::slice::from_raw_parts(values, count) };
    // SAFETY: shared.h: each text has its length, and lives during the call.
    let values: Vec<_> =
        values.iter().map(|value| (value.column, unsafe { value.value() })).collect();
    with_table(table, |table, client| table.set(client, key, &values).map(|()| 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_add(
    table: u32,
    key: *const c_char,
    len: usize,
    by: *const RawValue,
) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    // SAFETY: shared.h: one value.
    let by = unsafe { &*by };
    // SAFETY: shared.h: its text has its length, and lives during the call.
    let value = unsafe { by.value() };
    with_table(table, |table, client| table.add(client, key, by.column, value).map(|()| 0))
}

/// `both` holds the expected value and the new value, both of one column.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_compare_and_set(
    table: u32,
    key: *const c_char,
    len: usize,
    both: *const [RawValue; 2],
) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    // SAFETY: shared.h: two values.
    let [expected, to] = unsafe { &*both };
    let column = to.column;
    // SAFETY: shared.h: its text has its length, and lives during the call.
    let expected = unsafe { expected.value() };
    // SAFETY: as above.
    let to = unsafe { to.value() };
    with_table(table, |table, client| {
        table.compare_and_set(client, key, column, expected, to).map(i64::from)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_table_delete(table: u32, key: *const c_char, len: usize) -> i64 {
    // SAFETY: shared.h: `key` has `len` bytes.
    let key = unsafe { slice(key, len) };
    with_table(table, |table, client| table.delete(client, key).map(i64::from))
}

#[unsafe(no_mangle)]
extern "C" fn samovar_table_count(table: u32) -> i64 {
    with_table(table, |table, client| Ok(table.count(client).cast_signed() as i64))
}

/// Returns the number of the first row from `cursor` on, or -2 if there is none.
#[unsafe(no_mangle)]
extern "C" fn samovar_table_next(table: u32, cursor: u32) -> i64 {
    with_table(table, |table, client| Ok(table.next(client, cursor)?.map_or(-2, i64::from)))
}
