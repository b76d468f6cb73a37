//! Directives with their blocks; `include` is replaced by the files that it names.

use super::lexer::{Lexer, Token};
use crate::from::directive::Directive;
use crate::from::draft::Draft;
use crate::from::input::{self, FromError};
use crate::from::origin::Origin;
use std::path::{Path, PathBuf};

/// Maximum depth of blocks.
const DEPTH_MAX: usize = 32;
/// Maximum depth of files that include each other.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Maximum number of included files.
const FILES_MAX: usize = 512;
/// Maximum number of directives.
const DIRECTIVES_MAX: usize = 100_000;
/// Files that define parameters of PHP and media types, as Samovar has them already.
const STANDARD: [&str; 5] =
    ["mime.types", "fastcgi_params", "fastcgi.conf", "fastcgi_params.conf", "uwsgi_params"];

/// Reads a file with the files that it includes.
pub(super) fn read(
    file: &Path,
    text: &str,
    draft: &mut Draft,
) -> Result<Vec<Directive>, FromError> {
    let main = file.to_owned();
    let mut reader = Reader { main, open: vec![file.to_owned()], files: 1, count: 0, draft };
    reader.file(file, text, 0)
}

struct Reader<'a> {
    /// The main file: relative paths start at its folder.
    main: PathBuf,
    /// Files that are being read.
    open: Vec<PathBuf>,
    files: usize,
    count: usize,
    draft: &'a mut Draft,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path, text: &str, depth: usize) -> Result<Vec<Directive>, FromError> {
        let mut lexer = Lexer::new(file, text);
        self.block(&mut lexer, file, depth, false)
    }

    fn block(
        &mut self,
        lexer: &mut Lexer<'_>,
        file: &Path,
        depth: usize,
        is_inner: bool,
    ) -> Result<Vec<Directive>, FromError> {
        if depth > DEPTH_MAX {
            return Err(lexer.error("blocks are nested more than 32 deep"));
        }
        let mut directives = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut line = lexer.line;
        loop {
            match lexer.next()? {
                None if is_inner => return Err(lexer.error("a block has no `}`")),
                Some(Token::Close) if !is_inner => return Err(lexer.error("`}` closes no block")),
                None | Some(Token::Close) if !words.is_empty() => {
                    return Err(lexer.error("a directive has no `;`"));
                }
                None | Some(Token::Close) => return Ok(directives),
                Some(Token::Word(word)) => {
                    if words.is_empty() {
                        line = lexer.line;
                    }
                    words.push(word);
                }
                Some(token) => {
                    if words.is_empty() {
                        return Err(lexer.error("a directive has no name"));
                    }
                    self.count += 1;
                    if self.count > DIRECTIVES_MAX {
                        return Err(lexer.error("there are more than 100000 directives"));
                    }
                    let args = words.split_off(1);
                    let name = words.pop().unwrap_or_default();
                    let mark = if token == Token::Open { " {" } else { ";" };
                    let text = format!("{name} {}{mark}", args.join(" "));
                    let origin = Origin::new(file, line, text.replace(" ;", ";").trim());
                    let block = if token == Token::End {
                        None
                    } else if name.ends_with("_by_lua_block") || name == "js_block" {
                        lexer.skip_code()?;
                        Some(Vec::new())
                    } else {
                        Some(self.block(lexer, file, depth + 1, true)?)
                    };
                    if name == "include" && block.is_none() {
                        directives.extend(self.include(&args, &origin, depth)?);
                    } else {
                        directives.push(Directive { name, args, block, origin });
                    }
                }
            }
        }
    }

    fn include(
        &mut self,
        args: &[String],
        origin: &Origin,
        depth: usize,
    ) -> Result<Vec<Directive>, FromError> {
        let pattern = args.first().map_or("", String::as_str);
        let name = pattern.rsplit('/').next().unwrap_or_default();
        if STANDARD.contains(&name) {
            self.draft.built_in(origin, "the parameters and media types are built in");
            return Ok(Vec::new());
        }
        let files = input::matching(&self.main, pattern);
        if files.is_empty() && !pattern.contains('*') {
            self.draft.missing(origin, "the file does not exist here: add its directives");
        }
        let mut all = Vec::new();
        for file in files {
            let error = |what: &str| {
                FromError::syntax(&origin.file, origin.line, what, "check the file with `nginx -t`")
            };
            if self.open.contains(&file) {
                return Err(error(&format!("`{}` includes itself", file.display())));
            }
            self.files += 1;
            if self.files > FILES_MAX || self.open.len() > INCLUDE_DEPTH_MAX {
                return Err(error("too many files are included"));
            }
            let text = input::read(&file)?;
            self.open.push(file.clone());
            all.extend(self.file(&file, &text, depth)?);
            self.open.pop();
        }
        Ok(all)
    }
}
