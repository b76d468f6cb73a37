//! A value of the file as JSON, for the payload of a job.

use std::fmt::Write as _;
use toml_edit::{Item, TableLike, Value};

/// Returns the value as JSON; `None`: a number has no notation in JSON. A date becomes a string.
pub(crate) fn of(item: &Item) -> Option<String> {
    let mut json = String::new();
    put(item, &mut json)?;
    Some(json)
}

fn put(item: &Item, json: &mut String) -> Option<()> {
    match item {
        Item::None => json.push_str("null"),
        Item::Value(value) => put_value(value, json)?,
        Item::Table(table) => put_table(table, json)?,
        Item::ArrayOfTables(tables) => {
            let mut separator = '[';
            for table in tables {
                json.push(separator);
                put_table(table, json)?;
                separator = ',';
            }
            json.push_str(if separator == '[' { "[]" } else { "]" });
        }
    }
    Some(())
}

fn put_value(value: &Value, json: &mut String) -> Option<()> {
    match value {
        Value::String(text) => put_text(text.value(), json),
        Value::Integer(number) => json.push_str(&number.value().to_string()),
        Value::Float(number) => {
            let number = *number.value();
            // `{:?}` has a decimal point or an exponent, so the number stays a float.
            write!(json, "{:?}", Some(number).filter(|number| number.is_finite())?).ok()?;
        }
        Value::Boolean(value) => json.push_str(if *value.value() { "true" } else { "false" }),
        Value::Datetime(date) => put_text(&date.value().to_string(), json),
        Value::Array(array) => {
            json.push('[');
            for (at, value) in array.iter().enumerate() {
                json.push_str(if at == 0 { "" } else { "," });
                put_value(value, json)?;
            }
            json.push(']');
        }
        Value::InlineTable(table) => put_table(table, json)?,
    }
    Some(())
}

fn put_table(table: &dyn TableLike, json: &mut String) -> Option<()> {
    json.push('{');
    for (at, (key, item)) in table.iter().enumerate() {
        json.push_str(if at == 0 { "" } else { "," });
        put_text(key, json);
        json.push(':');
        put(item, json)?;
    }
    json.push('}');
    Some(())
}

fn put_text(text: &str, json: &mut String) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            control if u32::from(control) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_file_become_json() {
        let json = |text: &str| {
            let document = format!("payload = {text}").parse::<toml_edit::DocumentMut>();
            of(&document.expect("a document")["payload"])
        };
        let check = |text: &str, expected: &str| assert_eq!(json(text).as_deref(), Some(expected));
        check("1", "1");
        check("1.0", "1.0");
        check("1e300", "1e300");
        check("true", "true");
        check(r#""a\"\\\n\u00e9""#, r#""a\"\\\u000aé""#);
        check("[1, [\"a\"], {}]", "[1,[\"a\"],{}]");
        check("{ a = 1, \"b c\" = { d = [] } }", r#"{"a":1,"b c":{"d":[]}}"#);
        check("1979-05-27T07:32:00Z", "\"1979-05-27T07:32:00Z\"");
        assert_eq!(json("nan"), None);
        assert_eq!(json("[-inf]"), None);
    }
}
