//! Ids of traces and spans in JSON: hexadecimal, as in `traceparent` and in other tools. Rows of an
//! older store have arrays of bytes.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt::{self, Write as _};

pub(crate) fn serialize<const N: usize, S: Serializer>(
    id: &[u8; N],
    to: S,
) -> Result<S::Ok, S::Error> {
    let hex = id.iter().fold(String::with_capacity(2 * N), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    to.serialize_str(&hex)
}

pub(crate) fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<[u8; N], D::Error> {
    from.deserialize_any(Id::<N>)
}

struct Id<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for Id<N> {
    type Value = [u8; N];

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} hexadecimal digits", 2 * N)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<[u8; N], E> {
        let mut id = [0; N];
        if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(E::custom("invalid id"));
        }
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(E::custom)?;
        }
        Ok(id)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut bytes: A) -> Result<[u8; N], A::Error> {
        let mut id = [0; N];
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = bytes.next_element()?.ok_or_else(|| A::Error::invalid_length(at, &self))?;
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Ids {
        #[serde(with = "super")]
        trace_id: [u8; 16],
        #[serde(with = "super")]
        span_id: [u8; 8],
    }

    #[test]
    fn ids_are_hexadecimal_in_json_and_arrays_are_read() {
        let ids = Ids { trace_id: [0xab; 16], span_id: [1; 8] };
        let mut json = serde_json::to_value(&ids).expect("it is plain");
        assert_eq!(json["trace_id"], "ab".repeat(16));
        assert_eq!(json["span_id"], "01".repeat(8));
        let read = |json: &serde_json::Value| serde_json::from_value::<Ids>(json.clone());
        assert_eq!(read(&json).expect("it is its own"), ids);
        json["trace_id"] = vec![0xab_u8; 16].into();
        assert_eq!(read(&json).expect("a row of an older store"), ids);
        for wrong in
            [serde_json::json!("ab"), serde_json::json!([1]), serde_json::json!("zz".repeat(16))]
        {
            json["trace_id"] = wrong;
            assert!(read(&json).is_err(), "{json}");
        }
    }
}
