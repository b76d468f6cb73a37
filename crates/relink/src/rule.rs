//! Selects the libraries to change, and the calls that stay as they are.
//!
//! Calls into one of these libraries become direct, and calls to libc's functions for memory and
//! strings. All other calls stay in the table, because tools that observe a process intercept them
//! there (input and output, memory, threads), possibly later. None of these calls is so fast that a
//! jump would matter.

use crate::functions;
use crate::object::{Entry, Object};
use crate::plan::{Code64, Plan, Slot, plan};
use std::collections::HashMap;
use std::ops::Range;

/// A library and the plan for its text.
pub(crate) struct Planned {
    pub(crate) range: Range<u64>,
    pub(crate) plan: Plan,
}

/// A library to be changed, and its table.
struct Concerned<'a> {
    object: &'a Object,
    entries: HashMap<u64, Entry>,
}

/// Plans for the library that contains `code`, and for those that call it.
pub(crate) fn plans(objects: &[Object], code: u64) -> Result<Vec<Planned>, String> {
    let refused = |name: &str, why: &str| format!("{name}: {why}");
    let library = objects
        .iter()
        .find(|object| object.has(code))
        .ok_or_else(|| refused("libphp", "it was not found in memory"))?;
    if objects.first().is_some_and(|program| std::ptr::eq(program, library)) {
        // It is the code that runs now.
        return Err(refused("libphp", "it is part of the program"));
    }
    let entries = library.entries().ok_or_else(|| {
        refused(&library.name, "its table of addresses may still change, or has an unknown format")
    })?;
    let mut concerned = vec![Concerned { object: library, entries }];
    let others = objects.iter().skip(1).filter(|object| !std::ptr::eq(*object, library));
    for object in others {
        // A library that is bound lazily, or not understood, stays as it is.
        if let Some(entries) = object.entries()
            && entries.values().any(|entry| library.has(entry.target))
        {
            concerned.push(Concerned { object, entries });
        }
    }
    let mut found = Vec::new();
    for (n, one) in concerned.iter().enumerate() {
        match planned(one, &concerned) {
            Ok(planned) => found.push(planned),
            Err(why) if n == 0 => return Err(refused(&one.object.name, &why)),
            Err(_) => {}
        }
    }
    Ok(found)
}

fn planned(one: &Concerned, all: &[Concerned]) -> Result<Planned, String> {
    let object = one.object;
    let range = object.text().ok_or("its code is not one readable segment")?;
    let text = object.read(range.clone()).ok_or("its code cannot be read")?;
    let functions = functions::of(object).ok_or("its unwind table has an unknown format")?;
    let slots = one.entries.iter().map(|(at, entry)| (*at, slot(entry, all))).collect();
    let code = Code64 { at: range.start, text: &text, functions: &functions, slots: &slots };
    let plan = plan(&code).map_err(|doubt| doubt.to_string())?;
    Ok(Planned { range, plan })
}

fn slot(entry: &Entry, all: &[Concerned]) -> Slot {
    let is_ours = all.iter().any(|one| one.object.has(entry.target));
    let is_direct = entry.target != 0 && (is_ours || is_plain(&entry.symbol));
    Slot { target: entry.target, is_direct }
}

/// Functions of libc that only read memory and write to their arguments.
fn is_plain(symbol: &str) -> bool {
    const PLAIN: [&str; 22] = [
        "memchr",
        "memcmp",
        "memcpy",
        "memmove",
        "memrchr",
        "memset",
        "strcasecmp",
        "strchr",
        "strcmp",
        "strlen",
        "strncasecmp",
        "strncmp",
        "strnlen",
        "strpbrk",
        "strrchr",
        "strstr",
        "strcpy",
        "strncpy",
        "strspn",
        "strcspn",
        "stpcpy",
        "rawmemchr",
    ];
    let plain = symbol.strip_prefix("__").and_then(|name| name.strip_suffix("_chk"));
    PLAIN.contains(&plain.unwrap_or(symbol))
}
