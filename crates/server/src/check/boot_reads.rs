//! Reads of request data in the text of a front controller, above the call that takes requests. A
//! boot has no request. The running boot finds all reads, also those of other files
//! (`crates/worker/csrc/outside/request_reads.c`).

use std::path::Path;

/// Maximum size of a front controller that is examined.
const BYTES_MAX: u64 = 1 << 20;
const INPUTS: [&str; 5] = ["$_GET", "$_POST", "$_COOKIE", "$_FILES", "$_REQUEST"];
const FUNCTIONS: [&str; 7] = [
    "apache_request_headers",
    "filter_has_var",
    "filter_input",
    "filter_input_array",
    "frankenphp_request_headers",
    "getallheaders",
    "session_start",
];
/// Entries of `$_SERVER` that only a request has, as in `request_reads.c`; also `HTTP_*`.
const ENTRIES: [&str; 17] = [
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "HTTPS",
    "PATH_INFO",
    "PHP_AUTH_PW",
    "PHP_AUTH_USER",
    "QUERY_STRING",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
];

/// A read: the data, by its name in the finding `request`, and the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BootRead {
    pub(super) name: String,
    pub(super) line: usize,
}

/// Returns the reads of a front controller; none if it takes no requests itself.
pub(super) fn of_file(file: &Path) -> Vec<BootRead> {
    let small = file.metadata().is_ok_and(|found| found.len() <= BYTES_MAX);
    let text = small.then(|| std::fs::read(file).ok()).flatten();
    text.map(|text| of_text(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

fn of_text(php: &str) -> Vec<BootRead> {
    let tokens = tokens(php);
    let Some(end) = tokens.iter().enumerate().position(|(n, _)| takes_requests(&tokens, n)) else {
        return Vec::new();
    };
    let boot = &tokens[..end];
    let mut found = Vec::new();
    let mut later = Later::default();
    for n in 0..boot.len() {
        if later.passes(boot, n) {
            continue;
        }
        let name = read_at(boot, n);
        found.extend(name.map(|name| BootRead { name, line: boot[n].line }));
    }
    found
}

/// Returns whether the call that begins here takes requests.
fn takes_requests(tokens: &[Token<'_>], at: usize) -> bool {
    let name = tokens[at].text.trim_start_matches('\\');
    let is_ours = match name.rsplit_once('\\') {
        Some(("Samovar", function)) => matches!(function, "checkpoint" | "consume" | "serve"),
        Some(_) => false,
        None => name == "frankenphp_handle_request" || is_imported(&tokens[..at], name),
    };
    is_ours && tokens.get(at + 1).is_some_and(|next| next.text == "(")
}

/// Returns whether the name is imported: `use function Samovar\checkpoint;`.
fn is_imported(tokens: &[Token<'_>], name: &str) -> bool {
    let full = format!("Samovar\\{name}");
    matches!(name, "checkpoint" | "consume" | "serve")
        && tokens.windows(2).any(|pair| pair[0].text == "function" && pair[1].text == full)
}

/// Returns the request data that is read at this token.
fn read_at(tokens: &[Token<'_>], at: usize) -> Option<String> {
    let text = tokens[at].text;
    let next = |n: usize| tokens.get(at + n).map_or("", |token| token.text);
    let is_member = at > 0 && matches!(tokens[at - 1].text, "->" | "?->" | "::" | "function");
    if FUNCTIONS.contains(&text.trim_start_matches('\\')) && next(1) == "(" && !is_member {
        return Some(format!("{}()", text.trim_start_matches('\\')));
    }
    if is_written(&tokens[at + 1..]) {
        return None;
    }
    if INPUTS.contains(&text) {
        return Some(text.to_owned());
    }
    let entry = next(2).trim_matches(['\'', '"']);
    let is_entry = text == "$_SERVER" && next(1) == "[" && next(3) == "]";
    // `isset($_SERVER['REQUEST_METHOD'])` asks whether there is a request at all.
    let asks_for_any =
        entry == "REQUEST_METHOD" && at > 1 && tokens[at - 2].text == "isset" && next(4) == ")";
    let is_of_request = !asks_for_any && (entry.starts_with("HTTP_") || ENTRIES.contains(&entry));
    (is_entry && is_of_request).then(|| format!("$_SERVER['{entry}']"))
}

/// Returns whether an assignment follows the keys of a variable. `??=` sets a default.
fn is_written(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0;
    for token in tokens {
        match token.text {
            "[" => depth += 1,
            "]" if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            text => return matches!(text, "=" | "??="),
        }
    }
    false
}

/// Code that is declared, and runs later: bodies of functions, classes and closures.
#[derive(Default)]
struct Later {
    /// Whether each open brace begins such a body.
    braces: Vec<bool>,
    /// Number of open parentheses and brackets.
    nested: usize,
    /// Whether the next brace begins a body.
    declares: bool,
    /// Number of them around an arrow function.
    arrow: Option<usize>,
}

impl Later {
    /// Takes a token. Returns whether it runs later.
    fn passes(&mut self, tokens: &[Token<'_>], at: usize) -> bool {
        let is_constant = at > 0 && matches!(tokens[at - 1].text, "::" | "->" | "?->");
        match tokens[at].text {
            "function" | "class" | "interface" | "trait" | "enum" if !is_constant => {
                self.declares = true;
            }
            "fn" if !is_constant => self.arrow = self.arrow.or(Some(self.nested)),
            "{" => self.braces.push(std::mem::take(&mut self.declares)),
            "}" => {
                self.braces.pop();
            }
            "(" | "[" => self.nested += 1,
            ")" | "]" => {
                if self.arrow == Some(self.nested) {
                    self.arrow = None;
                }
                self.nested = self.nested.saturating_sub(1);
            }
            ";" => {
                self.declares = false;
                self.arrow = None;
            }
            "," if self.arrow == Some(self.nested) => self.arrow = None,
            _ => {}
        }
        self.arrow.is_some() || self.declares || self.braces.contains(&true)
    }
}

// ---- tokens ------------------------------------------------------------------------------------

/// A name, variable, literal or operator, without comments.
#[derive(Debug)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

fn tokens(php: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut line = 1;
    // The text between two PHP sections is output.
    while let Some(start) = php[at..].find("<?") {
        line += php[at..at + start].matches('\n').count();
        at += start + 2;
        while at < php.len() && !php[at..].starts_with("?>") {
            let len = token_len(&php[at..]);
            let text = &php[at..at + len];
            let is_blank = text.trim().is_empty() || text.starts_with("//");
            let is_comment = text.starts_with("/*") || (text.starts_with('#') && text != "#[");
            if !is_blank && !is_comment {
                found.push(Token { text, line });
            }
            line += text.matches('\n').count();
            at += len;
        }
    }
    found
}

/// Returns the length of the token at the start of the text, which is not empty.
fn token_len(text: &str) -> usize {
    let first = text.chars().next().map_or(1, char::len_utf8);
    let until = |end: &str, from: usize| {
        text[from..].find(end).map_or(text.len(), |found| from + found + end.len())
    };
    let of_line = || text.find("?>").unwrap_or(text.len()).min(until("\n", 0));
    if text.starts_with("#[") {
        return 2;
    }
    if text.starts_with("//") || text.starts_with('#') {
        return of_line();
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    if text.starts_with("<<<") {
        return heredoc_len(text);
    }
    if text.starts_with(['\'', '"', '`']) {
        return quoted_len(text);
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '\\' || !c.is_ascii();
    if text.starts_with(is_name) || text.starts_with('$') {
        return first + text[first..].find(|c| !is_name(c)).unwrap_or(text.len() - first);
    }
    let operators = ["??=", "===", "!==", "?->", "==", "!=", "=>", "<=", ">=", "->", "::", "??"];
    operators.iter().find(|op| text.starts_with(**op)).map_or(first, |op| op.len())
}

fn quoted_len(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    for (n, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            _ if byte == quote => return n + 1,
            _ => {}
        }
    }
    text.len()
}

/// The text ends with its label on a line of its own, after blanks.
fn heredoc_len(text: &str) -> usize {
    let label = text[3..].trim_start_matches([' ', '\'', '"']);
    let len = label.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(label.len());
    let label = &label[..len];
    let mut at = text.find('\n').unwrap_or(text.len());
    for line in text[at..].split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        if !label.is_empty() && line.trim_start().starts_with(label) {
            return at + blanks + len;
        }
        at += line.len();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::of_text;

    fn reads(php: &str) -> Vec<(String, usize)> {
        of_text(php).into_iter().map(|read| (read.name, read.line)).collect()
    }

    #[test]
    fn reads_above_the_call_are_found() {
        for (code, expected) in [
            ("$a = $_GET['page'] ?? 1;", "$_GET"),
            ("if (isset($_COOKIE['user'])) { }", "$_COOKIE"),
            ("if (true) { f($_POST); }", "$_POST"),
            ("$a = $_SERVER['HTTP_HOST'];", "$_SERVER['HTTP_HOST']"),
            ("$a = $_SERVER[\"REQUEST_URI\"];", "$_SERVER['REQUEST_URI']"),
            ("$a = \\getallheaders();", "getallheaders()"),
            ("session_start();", "session_start()"),
            ("$f = fn ($x) => $x; $a = $_GET;", "$_GET"),
            ("array_map(fn ($x) => $x, $_FILES);", "$_FILES"),
            ("echo A::class; $a = $_REQUEST;", "$_REQUEST"),
        ] {
            for call in ["Samovar\\checkpoint();", "\\Samovar\\serve(f(...));"] {
                let php = format!("<?php\n// $_GET\n{code}\n{call}\n$b = $_GET['b'];");
                assert_eq!(reads(&php), [(expected.to_owned(), 3)], "{php}");
            }
        }
        let imported = "<?php use function Samovar\\checkpoint;\n$a = $_GET;\ncheckpoint();";
        assert_eq!(reads(imported), [("$_GET".to_owned(), 2)]);
        let html = "a\nb $_GET <?php ?>\n<?= $_GET['x'] ?>\n<?php Samovar\\checkpoint();";
        assert_eq!(reads(html), [("$_GET".to_owned(), 3)]);
        let looped = "<?php $_GET;\nwhile (frankenphp_handle_request(f(...))) {}";
        assert_eq!(reads(looped), [("$_GET".to_owned(), 1)]);
    }

    #[test]
    fn other_code_is_no_read() {
        for code in [
            "function f() { return $_GET; }",
            "$f = function () { if (true) { return $_GET; } };",
            "$f = fn () => $_GET;",
            "f(fn () => [$_GET, $_POST], 1);",
            "class A { function f() { return $_COOKIE; } }",
            "$a = new class { public function f() { return $_COOKIE; } };",
            "echo '$_GET', \"it's $_GET[a]\"; # $_GET",
            "/* $_GET */ $a = <<<'END'\n  $_GET\n  END;",
            "$_GET['a'] ??= 1; $_SERVER['HTTP_HOST'] = 'x'; $_POST = [];",
            "$a = $_SERVER['SCRIPT_NAME']; $b = $_SERVER['APP_ENV'];",
            "if (isset($_SERVER['REQUEST_METHOD'])) { }",
            "$session->session_start(); Session::session_start();",
            "#[Attribute] function session_start() { return $_GET; }",
        ] {
            let php = format!("<?php {code}\nSamovar\\checkpoint(); $b = $_GET;");
            assert_eq!(reads(&php), [], "{php}");
        }
        assert_eq!(reads("<?php $a = $_GET;"), [], "no call");
        assert_eq!(reads("<?php $a = $_GET; // Samovar\\checkpoint();"), [], "no call");
    }

    #[test]
    fn broken_text_ends() {
        for php in ["<?php '", "<?php <<<", "<?php /*", "<?php \"\\", "<?", "<?php $", "<?php é{"]
        {
            assert_eq!(reads(php), [], "{php}");
        }
    }
}
