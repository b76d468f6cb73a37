//! Reads declarations from Rust source text: structs with documented fields, string literals.

/// A documented field.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) doc: String,
    pub(super) is_flattened: bool,
}

/// A struct: its name, documentation and public fields.
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) fields: Vec<Field>,
}

/// The public structs of a file, in order.
pub(super) fn structs(text: &str) -> Vec<Struct> {
    let mut found: Vec<Struct> = Vec::new();
    let (mut doc, mut is_flattened, mut is_inside) = (String::new(), false, false);
    for line in text.lines() {
        let line = line.trim();
        if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more.strip_prefix(' ').unwrap_or(more));
            doc.push('\n');
        } else if line.starts_with("#[") {
            is_flattened |= line.contains("flatten");
        } else if let Some(name) =
            line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {"))
        {
            let doc = std::mem::take(&mut doc);
            found.push(Struct { name: name.to_owned(), doc, fields: Vec::new() });
            is_inside = true;
        } else if line == "}" {
            is_inside = false;
        } else if let (true, Some(field)) = (is_inside, line.strip_prefix("pub ")) {
            if let (Some((name, kind)), Some(of)) = (field.split_once(": "), found.last_mut()) {
                let kind = kind.trim_end_matches(',').to_owned();
                let doc = std::mem::take(&mut doc);
                of.fields.push(Field { name: name.to_owned(), kind, doc, is_flattened });
            }
            is_flattened = false;
        } else {
            (doc, is_flattened) = (String::new(), false);
        }
    }
    found
}

/// A counter of `crates/wire/src/counters.rs`.
pub(super) struct Counter {
    /// `pool_counters` or `server_counters`.
    pub(super) table: String,
    pub(super) key: String,
    pub(super) doc: String,
    pub(super) kind: String,
    pub(super) metric: String,
}

/// The rows of the tables of counters: `key: Kind, "metric";` after their documentation.
pub(super) fn counters(text: &str) -> Vec<Counter> {
    let (mut found, mut table, mut doc) = (Vec::new(), String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("macro_rules! ") {
            name.trim_end_matches([' ', '{']).clone_into(&mut table);
        } else if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more);
        } else {
            let row = line.strip_suffix("\";").and_then(|row| row.split_once(": "));
            let of = row.and_then(|(key, rest)| Some((key, rest.split_once(", \"")?)));
            if let Some((key, (kind, metric))) = of {
                found.push(Counter {
                    table: table.clone(),
                    key: key.to_owned(),
                    doc: doc.trim().to_owned(),
                    kind: kind.to_lowercase(),
                    metric: metric.to_owned(),
                });
            }
            doc.clear();
        }
    }
    found
}

/// The string literals of a file's code, unescaped, in order.
pub(super) fn literals(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let (mut found, mut rest) = (Vec::new(), code.as_str());
    while let Some(begin) = rest.find('"') {
        let is_char = rest[..begin].ends_with('\'') && rest[begin + 1..].starts_with('\'');
        rest = &rest[begin + 1..];
        if is_char {
            continue;
        }
        let mut literal = String::new();
        let mut chars = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => literal.push('\n'),
                    Some((_, '\n')) => {
                        let blanks = rest[at + 2..].chars().take_while(|c| c.is_whitespace());
                        for _ in 0..blanks.count() {
                            chars.next();
                        }
                    }
                    Some((_, other)) => literal.push(other),
                    None => {}
                },
                other => literal.push(other),
            }
        }
        found.push(literal);
        rest = &rest[end..];
    }
    found
}

#[test]
fn fields_keep_their_documentation() {
    let text = "/// One.\n#[derive(Debug)]\npub struct One {\n    /// Its name.\n    \
        pub name: String,\n    #[serde(flatten)]\n    pub rest: Two,\n}\n";
    let found = structs(text);
    assert_eq!((found.len(), found[0].name.as_str(), found[0].doc.as_str()), (1, "One", "One.\n"));
    let fields: Vec<_> = found[0]
        .fields
        .iter()
        .map(|f| (f.name.as_str(), f.kind.as_str(), f.is_flattened))
        .collect();
    assert_eq!(fields, [("name", "String", false), ("rest", "Two", true)]);
    assert_eq!(found[0].fields[0].doc, "Its name.\n");
}

#[test]
fn literals_are_unescaped_and_joined() {
    let text = "// \"no\"\nf(\"a\\nb\", '\"', \"c \\\n      d\")";
    assert_eq!(literals(text), ["a\nb", "c d"]);
}

#[test]
fn counters_are_read_from_their_rows() {
    let text = "macro_rules! pool_counters {\n    /// Open ones.\n    open: Gauge, \"opened\";\n";
    let found = counters(text);
    assert_eq!((found.len(), found[0].table.as_str()), (1, "pool_counters"));
    let row = (found[0].key.as_str(), found[0].doc.as_str(), found[0].metric.as_str());
    assert_eq!(row, ("open", "Open ones.", "opened"));
}
