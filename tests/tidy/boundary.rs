//! Compares the functions and structs that cross the boundary of Rust and C: the linker checks
//! only their names.

use crate::tree::{files, none, read};
use std::collections::BTreeMap;

const RUST: &str = "crates/worker/src/";
const C: &str = "crates/worker/csrc/";

/// Callbacks that C gets as a pointer. They have no prototype.
const CALLBACKS: [&str; 1] = ["look"];

/// The struct that the build generates for C.
const GENERATED: &str = "samovar_options";

/// Classes of the return value and of the parameters, or of the fields.
type Shape = Vec<String>;

/// Returns the text of all files below the folder with this extension.
fn text_of(folder: &str, extension: &str) -> String {
    let is_ours = |file: &String| file.starts_with(folder) && file.ends_with(extension);
    files().iter().filter(|file| is_ours(file)).map(|file| read(file)).collect()
}

/// Removes the comments of a C text.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.split_once("*/").map_or("", |(_, rest)| rest);
    }
    kept
}

/// All headers without comments. Enums without negative values are `unsigned` in C.
fn headers() -> String {
    let mut headers = without_comments(&text_of(C, ".h"));
    let parts = headers.split("typedef enum {").skip(1);
    let name = |part: &str| Some(part.split_once("} ")?.1.split_once(';')?.0.to_owned());
    let names: Vec<_> = parts.filter_map(name).collect();
    for name in names {
        headers = headers.replace(&format!("{name} "), "uint32_t ");
    }
    headers
}

/// Class of a value: its size and kind. Bytes are one class, because C has `char` and `void` for
/// them; structs are another.
fn class_of(base: &str) -> &'static str {
    match base {
        "c_int" | "i32" | "int" | "int32_t" => "i32",
        "c_uint" | "u32" | "uint32_t" | "unsigned" => "u32",
        "i64" | "int64_t" | "zend_long" => "i64",
        "u64" | "uint64_t" => "u64",
        "usize" | "size_t" | "uintptr_t" => "usize",
        "f64" | "double" => "f64",
        "bool" => "bool",
        "u8" | "c_char" | "c_void" | "uint8_t" | "char" | "void" => "byte",
        _ => "data",
    }
}

fn rust_class(written: &str) -> String {
    let written = written.trim();
    let (prefix, pointee) = match written.split_at_checked(1) {
        Some(("*", rest)) => match rest.split_once(' ') {
            Some(("const", rest)) => ("const pointer to ", rest),
            Some((_, rest)) => ("pointer to ", rest),
            None => ("pointer to ", ""),
        },
        _ => ("", written),
    };
    if prefix.is_empty() && written == "()" {
        return "nothing".to_owned();
    }
    if pointee.starts_with('*') {
        return "pointer to pointer".to_owned();
    }
    format!("{prefix}{}", class_of(pointee.rsplit("::").next().unwrap_or(pointee)))
}

/// `declared`: a type, with the name of the parameter if `is_named`.
fn c_class(declared: &str, is_named: bool) -> String {
    let stars = declared.matches(['*', '[']).count();
    let (before, _) = declared.split_once(['*', '[']).unwrap_or((declared, ""));
    let is_const = before.split_whitespace().any(|word| word == "const");
    let mut words: Vec<_> = before.split_whitespace().collect();
    words.retain(|word| !matches!(*word, "const" | "struct" | "extern" | "volatile" | "static"));
    if is_named && !declared.contains('*') {
        words.pop();
    }
    let base = class_of(words.last().copied().unwrap_or_default());
    match (stars, base) {
        (0, "byte") => "nothing".to_owned(),
        (0, base) => base.to_owned(),
        (1, base) if is_const => format!("const pointer to {base}"),
        (1, base) => format!("pointer to {base}"),
        _ => "pointer to pointer".to_owned(),
    }
}

/// Splits at commas and drops empty parts.
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Shape of a function from the text behind its name: `(…) -> …`.
fn rust_function(text: &str) -> Option<Shape> {
    let (parameters, rest) = text.strip_prefix('(')?.split_once(')')?;
    let end = rest.find(['{', ';'])?;
    let result = rest[..end].trim().strip_prefix("->").unwrap_or("()");
    let types = items(parameters).filter_map(|item| item.split_once(':').map(|(_, of)| of));
    Some(std::iter::once(result).chain(types).map(rust_class).collect())
}

/// All functions that Rust gives to C or takes from it, by name.
fn rust_functions(text: &str) -> BTreeMap<String, Shape> {
    let mut found = BTreeMap::new();
    for part in text.split("extern \"C\" ").skip(1) {
        let declared = match part.strip_prefix('{') {
            Some(block) => block.split_once("\n}").map_or(block, |(block, _)| block),
            None => part.split_once('{').map_or(part, |(head, _)| &part[..=head.len()]),
        };
        for function in declared.split("fn ").skip(1) {
            let Some(end) = function.find('(') else { continue };
            if let Some(shape) = rust_function(&function[end..]) {
                found.insert(function[..end].to_owned(), shape);
            }
        }
    }
    found
}

/// Shape of the prototype of that name.
fn c_function(headers: &str, name: &str) -> Option<Shape> {
    let call = format!("{name}(");
    let at = headers.match_indices(&call).map(|(at, _)| at).find(|at| {
        headers[..*at].ends_with([' ', '*']) && {
            let line = headers[..*at].rsplit([';', '}', '{', '\n']).next().unwrap_or_default();
            !line.trim().is_empty() && !line.contains("return")
        }
    })?;
    let result = headers[..at].rsplit([';', '}', '{', '\n']).next()?;
    let parameters = headers[at + call.len()..].split_once(')')?.0;
    let parameters =
        items(parameters).filter(|item| *item != "void").map(|item| c_class(item, true));
    Some(std::iter::once(c_class(result, false)).chain(parameters).collect())
}

/// Structs of Rust with C's layout, by the name that their comment gives: `` `name` of file.h ``.
fn rust_structs(text: &str) -> BTreeMap<String, Shape> {
    let mut found = BTreeMap::new();
    let parts: Vec<_> = text.split("#[repr(C)]").collect();
    for pair in parts.windows(2) {
        let documented = pair[0].rsplit("\n\n").next().unwrap_or_default();
        let name = documented.split("/// `").nth(1).and_then(|rest| rest.split_once('`'));
        let (Some((name, _)), Some((_, rest))) = (name, pair[1].split_once('{')) else { continue };
        let fields = rest.split_once('}').map_or("", |(fields, _)| fields);
        let fields = fields.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let fields: Shape = (fields.filter_map(|line| line.split_once(": ")))
            .map(|(_, of)| rust_class(of.trim_end_matches(',')))
            .collect();
        if name.starts_with("samovar_") && !fields.is_empty() {
            found.insert(name.to_owned(), fields);
        }
    }
    found
}

/// Shape of `typedef struct { … } name;`. Several names of one declaration are several fields.
fn c_struct(headers: &str, name: &str) -> Option<Shape> {
    let end = headers.find(&format!("}} {name};"))?;
    let fields = headers[..end].rsplit('{').next()?;
    let mut shape = Shape::new();
    for declaration in fields.split(';').map(str::trim).filter(|one| !one.is_empty()) {
        let mut names = declaration.split(',');
        let first = names.next()?;
        shape.push(c_class(first, true));
        let of = first.split('*').next().unwrap_or(first);
        let of = if first.contains('*') { of } else { of.rsplit_once(' ')?.0 };
        shape.extend(names.map(|one| c_class(&format!("{of} {one}"), true)));
    }
    Some(shape)
}

fn compare(rust: &BTreeMap<String, Shape>, c: impl Fn(&str) -> Option<Shape>) -> Vec<String> {
    let one = |(name, shape): (&String, &Shape)| match c(name) {
        None => Some(format!("{name}: no declaration in {C}")),
        Some(other) if other != *shape => Some(format!(
            "{name}\n    in Rust: {}\n    in C: {}",
            shape.join(", "),
            other.join(", ")
        )),
        Some(_) => None,
    };
    rust.iter().filter_map(one).collect()
}

#[test]
fn functions_have_same_shape_in_rust_and_c() {
    let headers = headers();
    let mut functions = rust_functions(&text_of(RUST, ".rs"));
    functions.retain(|name, _| !CALLBACKS.contains(&name.as_str()));
    assert!(functions.len() > 100, "{functions:?}");
    none(
        "functions that differ in Rust and in C",
        &compare(&functions, |name| c_function(&headers, name)),
    );
}

#[test]
fn structs_have_same_shape_in_rust_and_c() {
    let headers = headers();
    let mut structs = rust_structs(&text_of(RUST, ".rs"));
    structs.remove(GENERATED);
    assert!(structs.len() >= 8, "{structs:?}");
    none(
        "structs that differ in Rust and in C",
        &compare(&structs, |name| c_struct(&headers, name)),
    );
}
