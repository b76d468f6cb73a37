//! Apache's `.htaccess` → draft. The folder of the file is the document root. `reader` has the open
//! sections and the tables, `rewrite` converts the rules of `mod_rewrite`.

mod reader;
mod rewrite;

use super::draft::{Block, Draft, Value};
use super::glob;
use super::input::FromError;
use super::origin::Origin;
use super::shared::{self, folder_of, header, is_script, unquoted};
use reader::{Reader, Section};
use std::path::Path;

/// Maximum depth of sections.
const DEPTH_MAX: usize = 32;

const HINT: &str = "check the file with `apachectl configtest`";

/// Directives without a counterpart, by the start of their name, and the advice.
const ADVICE: &[(&str, &str)] = &[
    ("deny from", "no rules for addresses: use a firewall, or check REMOTE_ADDR in PHP"),
    ("require not", "no rules for addresses: use a firewall, or check REMOTE_ADDR in PHP"),
    ("auth", "no access control with passwords: check access in PHP, or in a proxy in front"),
    ("expiresbytype", "set `Cache-Control` by file name: `path = \"*.css\"` and `headers`"),
    ("expiresdefault", "set `Cache-Control` in a [[location]]"),
    ("addtype", "media types follow the file name: set `Content-Type` in `headers`"),
    ("addcharset", "set `Content-Type` in `headers`"),
    ("adddefaultcharset", "set `Content-Type` in `headers`"),
    ("addencoding", "see `compression.precompressed`"),
    ("addhandler", "only .php files run"),
    ("sethandler", "only .php files run"),
    ("browsermatch", "decide it in PHP"),
    ("setenvif", "decide it in PHP"),
    ("passenv", "the server's environment reaches PHP"),
    ("limitrequestbody", "set `limits.body_bytes_max`"),
    ("rewritemap", "no maps: decide it in PHP"),
];

/// Directives that Samovar needs no setting for.
const BUILT_IN: &[&str] = &[
    "rewriteengine",
    "rewritebase",
    "rewriteoptions",
    "options",
    "directoryslash",
    "fileetag",
    "expiresactive",
    "serversignature",
    "acceptpathinfo",
    "multiviewsmatch",
    "satisfy",
    "contentdigest",
    "cgipassauth",
    "setoutputfilter",
    "deflatecompressionlevel",
    "indexignore",
    "followsymlinks",
];

pub(crate) fn convert(draft: &mut Draft, file: &Path, text: &str) -> Result<(), FromError> {
    let folder = folder_of(&std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let mut reader = Reader {
        draft,
        file,
        folder,
        sections: Vec::new(),
        conditions: Vec::new(),
        has_front: None,
        blocks: Vec::new(),
        rules: Vec::new(),
        order: None,
        denies_last: false,
        control: None,
        denial: None,
    };
    let mut joined = String::new();
    let mut start = 1;
    for (number, raw) in text.lines().enumerate() {
        if joined.is_empty() {
            start = number as u32 + 1;
        }
        let code = raw.trim();
        if let Some(part) = code.strip_suffix('\\') {
            joined.push_str(part);
            continue;
        }
        joined.push_str(code);
        let line = std::mem::take(&mut joined);
        if !line.is_empty() && !line.starts_with('#') {
            reader.line(&line, start)?;
        }
    }
    if let Some(section) = reader.sections.last() {
        let what = format!("<{}> has no end", section.name);
        return Err(FromError::syntax(file, start, what, HINT));
    }
    reader.finish();
    Ok(())
}

impl Reader<'_> {
    fn finish(mut self) {
        self.end_order(0);
        let root = Origin::new(self.file, 1, ".htaccess");
        let origin = self.has_front.clone().unwrap_or(root);
        self.draft.set("", "root", Value::text(&self.folder), &origin);
        let mut blocks = self.blocks;
        blocks.extend(self.rules.into_iter().rev());
        // After the tables of `<Files>`, which apply instead.
        if let Some(control) = &self.control {
            let mut block = Block::location(&[], &[], control);
            self.draft.guard(&mut block, control);
            blocks.push(block);
        } else if let Some(denial) = &self.denial {
            let mut block = Block::location(&[], &[String::from("/*")], denial);
            block.set("deny", Value::plain(true), denial);
            blocks.push(block);
        }
        if self.has_front.is_none() {
            let mut block = Block::location(&[], &[], &origin);
            block.set("fallback", Value::text("none"), &origin);
            blocks.push(block);
        }
        for block in blocks {
            self.draft.push(block);
        }
    }

    fn line(&mut self, line: &str, number: u32) -> Result<(), FromError> {
        let origin = Origin::new(self.file, number, line);
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            self.end_order(self.sections.len());
            return match self.sections.pop() {
                Some(section) if section.name == name => Ok(()),
                _ => {
                    let what = format!("`</{name}>` closes no section");
                    Err(FromError::syntax(self.file, number, what, HINT))
                }
            };
        }
        if let Some(section) = line.strip_prefix('<') {
            return self.open(section, &origin);
        }
        let words = words(line);
        let Some((name, args)) = words.split_first() else { return Ok(()) };
        let name = name.to_ascii_lowercase();
        if self.sections.iter().any(|section| section.is_unknown) {
            let advice = if is_denial(&name, args) || is_control(&name, args) {
                "the files are open now: write a [[location]] with `deny = true` for them"
            } else {
                "its section has no counterpart"
            };
            self.draft.missing(&origin, advice);
            return Ok(());
        }
        if self.sections.iter().any(|section| section.is_skipped) {
            self.draft.built_in(&origin, "it is for another module or version of Apache");
            return Ok(());
        }
        self.directive(&name, args, &origin);
        Ok(())
    }

    fn open(&mut self, section: &str, origin: &Origin) -> Result<(), FromError> {
        if self.sections.len() == DEPTH_MAX {
            let what = "sections are nested more than 32 deep";
            return Err(FromError::syntax(self.file, origin.line, what, HINT));
        }
        let words = words(section.trim_end_matches('>'));
        let name = words.first().map_or(String::new(), |name| name.to_ascii_lowercase());
        let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let mut paths = None;
        let (mut is_skipped, mut is_unknown) = (false, false);
        match name.as_str() {
            "ifmodule" => {
                let module = args.first().copied().unwrap_or_default();
                // The variants for an Apache without a module, and for Apache 2.2.
                is_skipped =
                    module.starts_with('!') || module.contains("php5") || module.contains("php7");
            }
            "ifversion" => is_skipped = args.first().is_some_and(|arg| arg.starts_with('<')),
            "files" if args.first() != Some(&"~") => {
                paths = args.first().map(|file| vec![file.replace('?', "*")]);
                is_skipped = paths.is_none();
            }
            "files" | "filesmatch" => {
                let regex = args.last().copied().unwrap_or_default();
                let found = glob::patterns(&file_regex(regex));
                if found.is_none() && !regex.starts_with("^\\.") && !regex.starts_with("^.ht") {
                    self.draft.missing(origin, "the expression is no list of file names");
                    is_unknown = true;
                }
                is_skipped = found.is_none();
                paths = found;
            }
            "requireall" | "requireany" | "limitexcept" | "limit" => {}
            "if" | "else" | "elseif" => {
                self.draft.missing(origin, "no conditions: decide it in PHP");
                is_unknown = true;
            }
            _ => {
                self.draft.missing(origin, "the section has no counterpart");
                is_unknown = true;
            }
        }
        self.sections.push(Section { name, paths, is_skipped, is_unknown });
        Ok(())
    }

    fn directive(&mut self, name: &str, args: &[String], origin: &Origin) {
        let arg = |at: usize| args.get(at).map_or("", String::as_str);
        let line = format!("{name} {}", args.join(" ").to_ascii_lowercase());
        match name {
            "rewritecond" => self.conditions.push((args.join(" "), origin.clone())),
            "rewriterule" => {
                let conditions = std::mem::take(&mut self.conditions);
                self.rule(args, &conditions, origin);
            }
            "fallbackresource" => self.front(arg(0), origin),
            "php_value" | "php_flag" | "php_admin_value" | "php_admin_flag" => {
                shared::php(self.draft, arg(0), &args[1.min(args.len())..].join(" "), origin);
            }
            "header" => self.header(args, origin),
            "setenv" => {
                let (name, value) = (arg(0).to_owned(), arg(1).to_owned());
                self.block(origin, |draft, block| {
                    shared::variable(draft, block, &name, &value, origin);
                });
            }
            "directoryindex" => {
                let names = args.to_vec();
                if names == ["index.php", "index.html"] {
                    self.draft.built_in(origin, "it is the default");
                } else if names.iter().any(|name| name.contains('/') || name == "disabled") {
                    self.draft.missing(origin, "index files are names without `/`");
                } else {
                    self.block(origin, |_, block| block.set("index", Value::List(names), origin));
                }
            }
            "errordocument" => self.error_document(arg(0), arg(1), origin),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch" => {
                self.redirect(name, args, origin);
            }
            "addoutputfilterbytype" if line.contains("deflate") => {
                self.draft.add("compression", "codings", "gzip", origin);
            }
            "addoutputfilterbytype" if line.contains("brotli") => {
                self.draft.add("compression", "codings", "br", origin);
            }
            "order" => {
                self.denies_last = line.replace(' ', "").ends_with("allow,deny");
                if self.denies_last {
                    self.order = Some((self.sections.len(), self.paths(), origin.clone()));
                }
                self.draft.built_in(origin, "not needed");
            }
            _ if is_control(name, args) => {
                self.order = None;
                self.control(origin);
            }
            "require" | "allow"
                if line.ends_with(" all granted") || line.ends_with(" from all") =>
            {
                self.order = None;
                let paths = self.paths();
                if paths.is_empty() {
                    return self.draft.built_in(origin, "not needed");
                }
                let mut block = Block::location(&[], &paths, origin);
                block.set("deny", Value::plain(false), origin);
                self.rules.push(block);
            }
            _ if is_denial(name, args) => {
                if self.sections.iter().any(|section| section.name.starts_with("limit")) {
                    return self.draft.missing(origin, "check the method in PHP");
                }
                let paths = self.paths();
                // After `Order allow,deny` a denial applies also to allowed clients.
                if name == "deny" && self.order.is_none() && self.denies_last {
                    self.rules.retain(|rule| rule.paths() != paths);
                }
                if paths.is_empty() {
                    self.denial.get_or_insert(origin.clone());
                    return;
                }
                let mut block = Block::location(&[], &paths, origin);
                block.set("deny", Value::plain(true), origin);
                self.rules.push(block);
            }
            "options" if line.contains("+indexes") || line == "options indexes" => {
                self.draft.missing(origin, "no listings of folders: write them in PHP");
            }
            _ if BUILT_IN.iter().any(|known| line.starts_with(known)) => {
                self.draft.built_in(origin, "not needed");
            }
            _ => {
                let known = ADVICE.iter().find(|(start, _)| line.starts_with(start));
                let advice = known.map_or("there is no setting like it", |(_, advice)| *advice);
                self.draft.missing(origin, advice);
            }
        }
    }

    /// Ends a section: `Order allow,deny` without an `Allow` denies all.
    fn end_order(&mut self, depth: usize) {
        let Some((of, paths, origin)) = self.order.take() else { return };
        if of != depth {
            self.order = Some((of, paths, origin));
            return;
        }
        if paths.is_empty() {
            self.denial.get_or_insert(origin);
            return;
        }
        let mut block = Block::location(&[], &paths, &origin);
        block.set("deny", Value::plain(true), &origin);
        self.rules.push(block);
    }

    fn header(&mut self, args: &[String], origin: &Origin) {
        let args: Vec<&str> = args
            .iter()
            .map(String::as_str)
            .filter(|a| *a != "always" && *a != "onsuccess")
            .collect();
        let Some(action) = args.first() else { return };
        let (name, value) =
            (args.get(1).copied().unwrap_or(""), args.get(2).copied().unwrap_or(""));
        if args.iter().skip(3).any(|arg| arg.starts_with("env=") || arg.starts_with("expr=")) {
            return self.draft.missing(origin, "no conditions: set the header in PHP");
        }
        match action.to_ascii_lowercase().as_str() {
            _ if value.contains('%') => {
                self.draft.missing(origin, "values of headers are constant: set it in PHP");
            }
            "unset" => self.block(origin, |draft, block| header(draft, block, name, "", origin)),
            "set" | "append" | "add" | "merge" | "setifempty" => {
                self.block(origin, |draft, block| header(draft, block, name, value, origin));
            }
            _ => self.draft.missing(origin, "headers are set or removed only"),
        }
    }

    fn error_document(&mut self, status: &str, page: &str, origin: &Origin) {
        if !page.starts_with('/') || is_script(page) || page.contains('?') {
            return self.draft.missing(origin, "error pages are files: `error_pages`");
        }
        let file = shared::join(&self.folder, page);
        self.block(origin, |_, block| block.entries.pair("error_pages", status, &file, origin));
    }

    /// `Redirect [STATUS] PATH URL` and `RedirectMatch`.
    fn redirect(&mut self, name: &str, args: &[String], origin: &Origin) {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let (status, rest) = match (name, words.as_slice()) {
            ("redirectpermanent", rest) | (_, ["permanent" | "301", rest @ ..]) => (301, rest),
            (_, ["seeother" | "303", rest @ ..]) => (303, rest),
            (_, ["gone" | "410", path]) => {
                let paths =
                    if name == "redirectmatch" { glob::patterns(path) } else { Some(prefix(path)) };
                return self.ended(paths, "status", Value::plain(410), origin);
            }
            (_, [code @ ("307" | "308"), rest @ ..]) => (code.parse().unwrap_or(302), rest),
            (_, ["temp" | "302", rest @ ..] | rest) => (302, rest),
        };
        let refusal = words.first().and_then(|word| word.parse::<u16>().ok());
        if let (Some(status), [_, path]) = (refusal.filter(|s| *s >= 400), words.as_slice()) {
            let paths = match name {
                "redirectmatch" => glob::patterns(path),
                _ => Some(vec![(*path).to_owned(), format!("{}/*", path.trim_end_matches('/'))]),
            };
            let (key, value) = match status {
                403 => ("deny", Value::plain(true)),
                status => ("status", Value::plain(status)),
            };
            return self.ended(paths, key, value, origin);
        }
        let [from, to] = rest else {
            return self.draft.missing(origin, "the redirect has no path and target");
        };
        if name == "redirectmatch" {
            return self.moved(
                glob::patterns(from).as_deref(),
                &to.replace("$1", "*"),
                status,
                origin,
            );
        }
        let (path, to) = if from.ends_with('/') {
            (vec![format!("{from}*")], format!("{}/*", to.trim_end_matches('/')))
        } else {
            (vec![(*from).to_owned()], (*to).to_owned())
        };
        self.moved(Some(&path), &to, status, origin);
    }
}

/// Whether a directive denies all requests.
fn is_denial(name: &str, args: &[String]) -> bool {
    let line = args.join(" ").to_ascii_lowercase();
    (name == "deny" && line == "from all") || (name == "require" && line == "all denied")
}

/// Whether a directive gives access to some clients only. A list of denied clients is none.
fn is_control(name: &str, args: &[String]) -> bool {
    let line = args.join(" ").to_ascii_lowercase();
    match name {
        "require" => {
            let is_open = ["all ", "not ", "method "].iter().any(|start| line.starts_with(start));
            !is_open
        }
        "allow" => line.starts_with("from ") && line != "from all",
        _ => false,
    }
}

/// A file name's expression as one of a path.
fn file_regex(regex: &str) -> String {
    match regex.strip_prefix('^') {
        Some(rest) => format!("/{rest}"),
        None => regex.to_owned(),
    }
}

fn prefix(path: &str) -> Vec<String> {
    vec![if path.ends_with('/') { format!("{path}*") } else { path.to_owned() }]
}

/// Splits a line into words; quotes group them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let end = match quote {
            Some(quote) => {
                let mut end = rest.len();
                let mut is_escaped = false;
                for (at, c) in rest.char_indices().skip(1) {
                    if c == quote && !is_escaped {
                        end = at + 1;
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
                end
            }
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        words.push(unquoted(&rest[..end]).to_owned());
        rest = rest[end..].trim_start();
    }
    words
}
