//! Values of PHP as short texts, from a `zval` in another process's memory.

use crate::error::Error;
use crate::layout::{CLASS_NAME, OBJECT_CLASS, REFERENCE_VALUE, array, string, zval};
use crate::memory::{Memory, half_at, word_at};

/// Maximum number of bytes that are shown of a text.
pub const VALUE_BYTES_MAX: usize = 128;

/// Maximum number of references that are followed to a value.
const REFERENCES_MAX: usize = 4;

/// A value: its type, and 8 bytes that are the value itself or the address of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) kind: u8,
    pub(crate) content: u64,
}

impl Value {
    pub(crate) fn of(bytes: &[u8]) -> Value {
        let kind = bytes.get(zval::TYPE).copied().unwrap_or(zval::UNDEFINED);
        Value { kind, content: word_at(bytes, 0) }
    }

    pub(crate) fn read(memory: &impl Memory, address: u64) -> Result<Option<Value>, Error> {
        let mut bytes = [0; zval::BYTES];
        Ok(memory.fill(address, &mut bytes)?.then(|| Value::of(&bytes)))
    }

    /// The value at the end of references. `None` if there is none.
    pub(crate) fn resolved(mut self, memory: &impl Memory) -> Result<Option<Value>, Error> {
        for _ in 0..REFERENCES_MAX {
            let address = match self.kind {
                zval::REFERENCE => self.content.wrapping_add(REFERENCE_VALUE as u64),
                zval::INDIRECT => self.content,
                _ => return Ok(Some(self)),
            };
            let Some(next) = Value::read(memory, address)? else { return Ok(None) };
            self = next;
        }
        Ok(None)
    }

    /// Whether a later read of the same place shows that this one was whole. Values without data
    /// are their types, and numbers are read at once, so these may have changed meanwhile.
    pub(crate) fn is_confirmed_by(self, later: Value) -> bool {
        match self.kind {
            zval::NULL..=zval::TRUE => true,
            zval::INTEGER | zval::FLOAT => self.kind == later.kind,
            _ => self == later,
        }
    }

    /// Whether it is shown with a text from other memory, which may be reused.
    pub(crate) fn has_text(self) -> bool {
        matches!(self.kind, zval::STRING | zval::OBJECT)
    }

    /// The value as a text. `None` if the variable has no value, or if it cannot be read.
    pub(crate) fn shown(self, memory: &impl Memory) -> Result<Option<String>, Error> {
        Ok(Some(match self.kind {
            zval::NULL => "null".to_owned(),
            zval::FALSE => "false".to_owned(),
            zval::TRUE => "true".to_owned(),
            zval::INTEGER => self.content.cast_signed().to_string(),
            zval::FLOAT => float(f64::from_bits(self.content)),
            zval::STRING => {
                let Some((text, length)) = text(memory, self.content, VALUE_BYTES_MAX)? else {
                    return Ok(None);
                };
                let text = samovar_log::printable(&text);
                if length > VALUE_BYTES_MAX as u64 {
                    format!("\"{text}\"… ({length} bytes)")
                } else {
                    format!("\"{text}\"")
                }
            }
            zval::ARRAY => {
                let mut head = [0; array::BYTES];
                if !memory.fill(self.content, &mut head)? {
                    return Ok(None);
                }
                format!("array({})", half_at(&head, array::COUNT))
            }
            zval::OBJECT => match class(memory, self.content)? {
                Some(name) => format!("object({name})"),
                None => return Ok(None),
            },
            zval::RESOURCE => "resource".to_owned(),
            _ => return Ok(None),
        }))
    }
}

/// A number as PHP writes it.
fn float(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NAN".to_owned(),
        _ if number.is_infinite() => if number > 0.0 { "INF" } else { "-INF" }.to_owned(),
        _ => format!("{number:?}"),
    }
}

fn class(memory: &impl Memory, object: u64) -> Result<Option<String>, Error> {
    let Some(class) = memory.word(object.wrapping_add(OBJECT_CLASS as u64))? else {
        return Ok(None);
    };
    let Some(name) = memory.word(class.wrapping_add(CLASS_NAME as u64))? else { return Ok(None) };
    // The name of an anonymous class continues with a zero byte and a file.
    let named = |(name, _): (String, u64)| name.split('\0').next().unwrap_or_default().to_owned();
    let name = text(memory, name, VALUE_BYTES_MAX)?.map(named);
    Ok(name.map(|name| samovar_log::printable(&name).into_owned()))
}

/// The beginning of a `zend_string`, and its length in bytes.
fn text(
    memory: &impl Memory,
    address: u64,
    bytes_max: usize,
) -> Result<Option<(String, u64)>, Error> {
    let Some(length) = memory.word(address.wrapping_add(string::LEN as u64))? else {
        return Ok(None);
    };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(bytes_max)];
    if !memory.fill(address.wrapping_add(string::VAL as u64), &mut bytes)? {
        return Ok(None);
    }
    if length > bytes_max as u64
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        // The cut is within a character.
        bytes.truncate(error.valid_up_to());
    }
    Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), length)))
}
