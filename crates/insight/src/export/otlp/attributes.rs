//! Attributes of resources, spans and metrics: a key with a text or a number.

use super::message::{AnyValue, KeyValue, Value};

pub(super) fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::Text(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value) }
}

pub(super) fn number(key: &str, value: u64) -> KeyValue {
    let value = Value::Number(i64::try_from(value).unwrap_or(i64::MAX));
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
