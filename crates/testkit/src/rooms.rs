//! Checks the imports between the files of a crate: the folders of a crate have an order, and files
//! have no import cycles.
//!
//! A test of the crate lists its rooms, the top-level modules, lowest first. The source text
//! counts: `crate::…`, `super::…`, `self::…`, in `use` and elsewhere, and a file's own `mod` lines.
//! Tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum depth of folders.
const DEPTH_MAX: usize = 16;

type Module = Vec<String>;

/// Panics with every import that goes up, and every cycle of files.
///
/// `src` is the crate's source folder. `rooms` lists all its top-level modules, a lower one before
/// those that import it.
pub fn check(src: impl AsRef<Path>, rooms: &[&str]) {
    let files = read(src.as_ref());
    let graph = graph(&files);
    let mut wrong = Vec::new();
    let rank = |module: &Module| {
        let room = module.first()?;
        Some(rooms.iter().position(|known| known == room).unwrap_or(usize::MAX))
    };
    for (from, imports) in &graph {
        if rank(from) == Some(usize::MAX) {
            wrong.push(format!("{} is in none of the rooms {rooms:?}", from.join("::")));
        }
        let up = |to: &&Module| rank(from).is_some_and(|from| rank(to).is_some_and(|to| to > from));
        wrong.extend(
            imports.iter().filter(up).map(|to| format!("{} imports {}", show(from), show(to))),
        );
    }
    wrong.extend(circles(&graph).iter().map(|circle| {
        format!("a circle: {}", circle.iter().map(show).collect::<Vec<_>>().join(", "))
    }));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn show(module: &Module) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

/// Text of every module that is a file, without comments and tests.
fn read(src: &Path) -> BTreeMap<Module, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![(src.to_owned(), Module::new())];
    while let Some((folder, module)) = folders.pop() {
        assert!(module.len() < DEPTH_MAX, "{} is too deep", folder.display());
        for entry in std::fs::read_dir(&folder).expect("the crate's sources").flatten() {
            let path = entry.path();
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name");
            let is_root = module.is_empty() && (name == "lib" || name == "main");
            let own = if is_root { vec![] } else { [&module[..], &[name.to_owned()]].concat() };
            if name == "tests" {
                continue;
            }
            if path.is_dir() {
                folders.push((path, own));
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.insert(own, code(&std::fs::read_to_string(&path).expect("our own file")));
            }
        }
    }
    files
}

fn code(text: &str) -> String {
    // Without its `cfg`: that of some tests also excludes the model checker.
    let text = text.split("\nmod tests").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn graph(files: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let modules: BTreeSet<&Module> = files.keys().collect();
    let imports = |(module, text): (&Module, &String)| {
        let named = paths(text).into_iter().filter_map(|path| absolute(module, &path));
        // The longest prefix that is a file: the rest is an item in it.
        let file = |path: Module| {
            (0..=path.len()).rev().map(|n| path[..n].to_vec()).find(|start| modules.contains(start))
        };
        let found: BTreeSet<Module> = named.filter_map(file).filter(|to| to != module).collect();
        (module.clone(), found)
    };
    files.iter().map(imports).collect()
}

/// The path relative to the crate's root; `None` if it leads out of the crate.
fn absolute(module: &Module, path: &[String]) -> Option<Module> {
    let mut rest = path.iter().skip(1).cloned().peekable();
    let mut base = match path.first()?.as_str() {
        "crate" => vec![],
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    while rest.next_if(|part| part == "super").is_some() {
        base.pop()?;
    }
    Some(base.into_iter().chain(rest).collect())
}

/// Every path that begins with `crate`, `self` or `super`, with braces expanded; `mod x;` is
/// `self::x`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate", "self", "super"] {
        for (at, _) in text.match_indices(&format!("{start}::")) {
            let before = text[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                expand(&mut text[at..].chars().peekable(), &[], &mut found);
            }
        }
    }
    for line in text.lines() {
        let words = line.trim_end().strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        if let Some((visibility, name)) = words
            && (visibility.is_empty() || visibility.starts_with("pub"))
        {
            found.push(vec!["self".to_owned(), name.to_owned()]);
        }
    }
    found
}

/// Reads a path, and the content of its braces, appended to `prefix`.
fn expand(
    text: &mut std::iter::Peekable<std::str::Chars<'_>>,
    prefix: &[String],
    found: &mut Vec<Vec<String>>,
) {
    let mut path = prefix.to_vec();
    loop {
        let mut word = String::new();
        while let Some(c) = text.next_if(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
        }
        if word.is_empty() && text.next_if_eq(&'{').is_some() {
            loop {
                while text.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
                if text.next_if_eq(&'}').is_some() || text.peek().is_none() {
                    return;
                }
                let known = found.len();
                expand(text, &path, found);
                // Skips an alias, and everything else that this parser does not understand.
                while text.next_if(|c| !matches!(c, ',' | '}')).is_some() {}
                if found.len() == known {
                    return;
                }
            }
        }
        if !word.is_empty() {
            path.push(word);
        }
        let is_longer = text.next_if_eq(&':').is_some() && text.next_if_eq(&':').is_some();
        if !is_longer {
            found.push(path);
            return;
        }
    }
}

/// Files that reach themselves; those that reach each other form one set.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            let more = graph.get(&module).into_iter().flatten();
            next.extend(more.filter(|to| seen.insert((*to).clone())).cloned());
        }
        seen
    };
    let reached: BTreeMap<&Module, _> = graph.keys().map(|from| (from, reach(from))).collect();
    let back = |from: &Module, to: &Module| reached.get(to).is_some_and(|all| all.contains(from));
    let circle = |from: &&Module| -> BTreeSet<Module> {
        reached[*from].iter().filter(|to| back(from, to)).cloned().collect()
    };
    graph.keys().map(|from| circle(&from)).filter(|circle| !circle.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a file's folder")).expect("our own");
            std::fs::write(path, text).expect("our own");
        }
        folder
    }

    fn complaint(files: &[(&str, &str)], rooms: &[&str]) -> String {
        let folder = folder(files);
        let checked = std::panic::catch_unwind(|| check(folder.path(), rooms));
        checked.err().map_or(String::new(), |said| *said.downcast::<String>().expect("a text"))
    }

    #[test]
    fn downward_imports_are_accepted() {
        let files = [
            ("lib.rs", "mod low;\nmod high;\npub use low::A;\n"),
            (
                "low.rs",
                "mod inner;\n// use crate::high\nuse std::fmt;\n#[cfg(all(test, not(loom)))]\n\
                 mod tests { use crate::high; }",
            ),
            ("low/inner.rs", "use crate::low::other;\n"),
            ("high.rs", "use crate::low::{\n    A,\n    inner::{B, C as D},\n};\n"),
            ("tests.rs", "use crate::high;\n"),
        ];
        assert_eq!(complaint(&files[..2], &["low", "high"]), "");
        let expected = "a circle: low, low::inner";
        assert_eq!(
            complaint(&files, &["low", "high"]),
            expected,
            "`other` is an item of its parent"
        );
    }

    #[test]
    fn upward_imports_are_reported() {
        let files = [
            ("main.rs", "mod low;\nmod high;\n"),
            ("low.rs", "pub(crate) fn f() { crate::high::g() }"),
            ("high.rs", "fn g() {}"),
        ];
        assert_eq!(complaint(&files, &["low", "high"]), "low imports high");
        assert_eq!(complaint(&files, &["high", "low"]), "");
        assert_eq!(complaint(&files, &["high"]), "low is in none of the rooms [\"high\"]");
    }

    #[test]
    fn cycles_through_relative_paths_are_found() {
        let files = [
            ("lib.rs", "mod a;\n"),
            ("a.rs", "mod b;\npub(crate) mod c;\n"),
            ("a/b.rs", "use super::c::X;"),
            ("a/c.rs", "use super::{b::Y, c};"),
        ];
        assert_eq!(complaint(&files, &["a"]), "a circle: a::b, a::c");
    }

    #[test]
    fn braces_in_paths_are_expanded() {
        let text = "use crate::{a::{B, self}, c as d, e::f};";
        let shown: Vec<_> = paths(text).iter().map(|path| path.join("::")).collect();
        assert_eq!(shown, ["crate::a::B", "crate::a::self", "crate::c", "crate::e::f"]);
    }
}
