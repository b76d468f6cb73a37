//! Encodes a JSON text as the value that PHP's `json_decode($text, true)` returns.

use crate::encoding::{FALSE, FLOAT, INT, LIST, MAP, NULL, STRING, TRUE};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;

/// Encodes the value of a JSON text. Arrays are nested at most as deep as `serde_json` allows,
/// which is not deeper than a value may be.
pub fn from_json(text: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::from_slice::<Value>(text).map(|value| value.0)
}

/// An encoded value.
struct Value(Vec<u8>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        from.deserialize_any(Encoder)
    }
}

struct Encoder;

fn word(tag: u8, word: u64) -> Value {
    Value([&[tag][..], &word.to_ne_bytes()].concat())
}

fn text(text: &str) -> Option<Vec<u8>> {
    let len = u32::try_from(text.len()).ok()?;
    Some([&[STRING][..], &len.to_ne_bytes(), text.as_bytes()].concat())
}

fn array(tag: u8, count: usize, next: i64, parts: &[Vec<u8>]) -> Option<Value> {
    let count = u32::try_from(count).ok()?;
    let mut bytes = vec![tag];
    bytes.extend(count.to_ne_bytes());
    bytes.extend(next.to_ne_bytes());
    for part in parts {
        bytes.extend(part);
    }
    Some(Value(bytes))
}

/// The integer that PHP converts a key to.
fn index(key: &str) -> Option<i64> {
    let index: i64 = key.parse().ok()?;
    (index.to_string() == key).then_some(index)
}

impl<'de> Visitor<'de> for Encoder {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value(vec![NULL]))
    }

    fn visit_bool<E>(self, is: bool) -> Result<Value, E> {
        Ok(Value(vec![if is { TRUE } else { FALSE }]))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(word(INT, number.cast_unsigned()))
    }

    #[allow(clippy::cast_precision_loss)] // As PHP does with integers that are too large for it.
    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(match i64::try_from(number) {
            Ok(number) => word(INT, number.cast_unsigned()),
            Err(_) => word(FLOAT, (number as f64).to_bits()),
        })
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(word(FLOAT, number.to_bits()))
    }

    fn visit_str<E: Error>(self, said: &str) -> Result<Value, E> {
        text(said).map(Value).ok_or_else(|| E::custom("a string of 4 GiB or more"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(Value(part)) = from.next_element()? {
            parts.push(part);
        }
        array(LIST, parts.len(), i64::try_from(parts.len()).unwrap_or(i64::MAX), &parts)
            .ok_or_else(|| A::Error::custom("an array of too many elements"))
    }

    /// If a key occurs again, the last value replaces the first at its position.
    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut next = 0_i64;
        while let Some((key, Value(value))) = from.next_entry::<String, Value>()? {
            let mut part = match index(&key) {
                Some(index) => {
                    next = next.max(index.saturating_add(1));
                    word(INT, index.cast_unsigned()).0
                }
                None => text(&key).ok_or_else(|| A::Error::custom("a key of 4 GiB or more"))?,
            };
            part.extend(value);
            if let Some(place) = places.get(&key) {
                parts[*place] = part;
            } else {
                places.insert(key, parts.len());
                parts.push(part);
            }
        }
        array(MAP, parts.len(), next, &parts)
            .ok_or_else(|| A::Error::custom("an object of too many members"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn json_value_matches_php_json_decode() {
        let encoded = |json: &str| from_json(json.as_bytes()).unwrap();
        assert_eq!(encoded("null"), [NULL]);
        assert_eq!(encoded("true"), [TRUE]);
        assert_eq!(encoded("-7"), word(INT, (-7_i64).cast_unsigned()).0);
        assert_eq!(
            encoded("18446744073709551615"),
            word(FLOAT, 18_446_744_073_709_551_615_f64.to_bits()).0
        );
        assert_eq!(encoded("1.5e3"), word(FLOAT, 1500_f64.to_bits()).0);
        assert_eq!(encoded(r#""\u00e9""#), text("é").unwrap());
        let one = [word(INT, 5).0, vec![TRUE]].concat();
        assert_eq!(encoded(r#"{"5": true}"#), array(MAP, 1, 6, &[one]).unwrap().0);
        let twice = [
            [text("b").unwrap(), vec![NULL]].concat(),
            [text("05").unwrap(), vec![FALSE]].concat(),
        ];
        let twice = array(MAP, 2, 0, &twice).unwrap().0;
        assert_eq!(encoded(r#"{"b": 1, "05": false, "b": null}"#), twice, "the order stays");
        assert_eq!(encoded("[]"), array(LIST, 0, 0, &[]).unwrap().0);
        for wrong in ["", "{", "[1,]", "1 2", "'a'", &"[".repeat(1000)] {
            assert!(from_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let deep = format!("{}1{}", "[".repeat(127), "]".repeat(127));
        assert!(crate::layout::lay_out(&encoded(&deep), 1 << 20).is_ok());
    }
}
