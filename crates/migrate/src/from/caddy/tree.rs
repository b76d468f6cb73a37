//! Text of a Caddyfile → directives with their blocks. `import` is replaced by snippets and
//! files.

use crate::from::directive::Directive;
use crate::from::draft::Draft;
use crate::from::input::{self, FromError};
use crate::from::origin::Origin;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum depth of blocks.
const DEPTH_MAX: usize = 32;
/// Maximum depth of imports.
const IMPORT_DEPTH_MAX: usize = 16;
/// Maximum number of directives, with those of imports.
const DIRECTIVES_MAX: usize = 50_000;
/// Maximum length of a word, in bytes.
const WORD_BYTES_MAX: usize = 64 * 1024;

const HINT: &str = "check the file with `caddy validate`";

/// Words of a line.
#[derive(Debug)]
struct Line {
    number: u32,
    words: Vec<String>,
    text: String,
}

/// Reads a file. The name of a site is the list of its addresses, separated by spaces; that of the
/// global options is empty.
pub(super) fn read(
    file: &Path,
    text: &str,
    draft: &mut Draft,
) -> Result<Vec<Directive>, FromError> {
    let lines = lines(file, text)?;
    let mut reader = Reader { file, lines, at: 0 };
    let mut top = reader.block(0)?;
    // A file with one site needs no braces.
    let is_open = |d: &Directive| d.block.is_some() || d.name == "import";
    if let Some(first) = top.first()
        && !top.iter().all(is_open)
        && (first.block.is_none() || !first.name.is_empty())
    {
        let mut address = top.remove(0);
        address.block = Some(top);
        top = vec![address];
    }
    let mut snippets = BTreeMap::new();
    let mut sites = Vec::new();
    for d in top {
        match d.name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
            Some(name) => {
                snippets.insert(name.to_owned(), d.block.unwrap_or_default());
            }
            None => sites.push(d),
        }
    }
    let mut imports = Imports { draft, snippets, count: 0, main: file };
    imports.expand(sites, 0)
}

/// Splits the text into lines of words.
fn lines(file: &Path, text: &str) -> Result<Vec<Line>, FromError> {
    let mut lines = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let (mut number, mut start) = (1_u32, 1_u32);
    let source: Vec<&str> = text.lines().collect();
    let mut chars = text.chars().peekable();
    let finish = |words: &mut Vec<String>, start: u32, lines: &mut Vec<Line>| {
        if !words.is_empty() {
            let text = source.get(start as usize - 1).copied().unwrap_or_default().to_owned();
            lines.push(Line { number: start, words: std::mem::take(words), text });
        }
    };
    while let Some(c) = chars.next() {
        if c == '\n' {
            finish(&mut words, start, &mut lines);
            number += 1;
            continue;
        }
        if c.is_whitespace() {
            continue;
        }
        if words.is_empty() {
            start = number;
        }
        let mut word = String::new();
        match c {
            '#' => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
                continue;
            }
            '\\' if chars.peek() == Some(&'\n') => {
                chars.next();
                number += 1;
                continue;
            }
            '"' | '`' => loop {
                let error = |what| Err(FromError::syntax(file, start, what, HINT));
                match chars.next() {
                    None => return error("a quoted word has no end"),
                    Some(end) if end == c => break,
                    Some('\\') if c == '"' && chars.peek() == Some(&'"') => {
                        word.push('"');
                        chars.next();
                    }
                    Some(inner) => {
                        number += u32::from(inner == '\n');
                        word.push(inner);
                    }
                }
                if word.len() > WORD_BYTES_MAX {
                    return error("a word is longer than 64 KiB");
                }
            },
            c => {
                word.push(c);
                while let Some(next) = chars.next_if(|c| !c.is_whitespace()) {
                    word.push(next);
                }
            }
        }
        if word.len() > WORD_BYTES_MAX {
            return Err(FromError::syntax(file, start, "a word is longer than 64 KiB", HINT));
        }
        words.push(replaced(&word));
    }
    finish(&mut words, start, &mut lines);
    Ok(lines)
}

/// Replaces `{$NAME:default}` by the default.
fn replaced(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find("{$") {
        let Some(end) = rest[at..].find('}') else { break };
        out.push_str(&rest[..at]);
        let variable = &rest[at + 2..at + end];
        out.push_str(variable.split_once(':').map_or("", |(_, default)| default));
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

struct Reader<'a> {
    file: &'a Path,
    lines: Vec<Line>,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, line: u32, what: &str) -> FromError {
        FromError::syntax(self.file, line, what, HINT)
    }

    /// Reads the lines up to the `}` that closes the block.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, FromError> {
        let mut directives = Vec::new();
        let mut last = 1;
        while let Some(line) = self.lines.get_mut(self.at) {
            let (number, text) = (line.number, std::mem::take(&mut line.text));
            let mut words = std::mem::take(&mut line.words);
            self.at += 1;
            last = number;
            // An empty variable leaves an empty word.
            words.retain(|word| !word.is_empty());
            if words.is_empty() {
                continue;
            }
            if words == ["}"] {
                if depth == 0 {
                    return Err(self.error(number, "`}` closes no block"));
                }
                return Ok(directives);
            }
            let is_open = words.last().is_some_and(|word| word == "{");
            if is_open {
                words.pop();
            }
            let block = if is_open {
                if depth == DEPTH_MAX {
                    return Err(self.error(number, "blocks are nested more than 32 deep"));
                }
                Some(self.block(depth + 1)?)
            } else {
                None
            };
            let name = if words.is_empty() { String::new() } else { words.remove(0) };
            let origin = Origin::new(self.file, number, &text);
            directives.push(Directive { name, args: words, block, origin });
        }
        if depth > 0 {
            return Err(self.error(last, "a block has no `}`"));
        }
        Ok(directives)
    }
}

struct Imports<'a> {
    draft: &'a mut Draft,
    snippets: BTreeMap<String, Vec<Directive>>,
    count: usize,
    main: &'a Path,
}

impl Imports<'_> {
    fn expand(
        &mut self,
        directives: Vec<Directive>,
        depth: usize,
    ) -> Result<Vec<Directive>, FromError> {
        let mut all = Vec::new();
        for mut d in directives {
            self.count += 1;
            let error = |what| FromError::syntax(&d.origin.file, d.origin.line, what, HINT);
            if self.count > DIRECTIVES_MAX {
                return Err(error("there are more than 50000 directives"));
            }
            if d.name == "import" {
                if depth == IMPORT_DEPTH_MAX {
                    return Err(error("imports are nested more than 16 deep, or in a circle"));
                }
                let inner = self.imported(&d)?;
                all.extend(self.expand(inner, depth + 1)?);
                continue;
            }
            if let Some(block) = d.block.take() {
                d.block = Some(self.expand(block, depth)?);
            }
            all.push(d);
        }
        Ok(all)
    }

    fn imported(&mut self, d: &Directive) -> Result<Vec<Directive>, FromError> {
        let name = d.arg(0);
        if let Some(snippet) = self.snippets.get(name) {
            if d.args.len() > 1 {
                self.draft.differs(&d.origin, "arguments of a snippet are not replaced");
            }
            return Ok(snippet.clone());
        }
        let files: Vec<PathBuf> = input::matching(self.main, name);
        if files.is_empty() && !name.contains('*') {
            self.draft.missing(&d.origin, "the file or snippet does not exist here");
        }
        let mut all = Vec::new();
        for file in files {
            let text = input::read(&file)?;
            let lines = lines(&file, &text)?;
            let mut reader = Reader { file: &file, lines, at: 0 };
            for d in reader.block(0)? {
                match d.name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
                    Some(name) => {
                        self.snippets.insert(name.to_owned(), d.block.unwrap_or_default());
                    }
                    None => all.push(d),
                }
            }
        }
        Ok(all)
    }
}
