//! Markdown → steps: the actions that a page requires from its reader, in order.

/// A parsed page.
pub(crate) struct Page {
    /// Actions, in the page's order.
    pub(crate) steps: Vec<Step>,
    /// First lines of the blocks without an action.
    pub(crate) pictures: Vec<String>,
}

/// One action of the page.
pub(crate) struct Step {
    /// Line in the page, from 1.
    pub(crate) line: usize,
    /// The action itself.
    pub(crate) action: Action,
}

/// An action of the reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Saves a file.
    Write {
        /// Path as written in the page.
        path: String,
        /// Content of the whole file.
        text: String,
    },
    /// Checks lines that a file already contains.
    Find {
        /// Path as written in the page.
        path: String,
        /// Lines that the file must contain.
        text: String,
    },
    /// Runs a command.
    Run {
        /// Command without the prompt. Lines that ended in a backslash are still separate.
        command: String,
        /// Expected output, if the page shows it.
        output: Vec<String>,
    },
}

const FENCE: &str = "```";
const PROMPT: &str = "$ ";
/// Four blanks start a block without an info string.
const INDENT: &str = "    ";

impl Page {
    /// Parses a page. Returns an error with the line that cannot be parsed.
    pub(crate) fn read(markdown: &str) -> Result<Page, String> {
        let mut page = Page { steps: Vec::new(), pictures: Vec::new() };
        let mut lines = (1..).zip(markdown.lines());
        let mut before = "";
        while let Some((number, line)) = lines.next() {
            if let Some(info) = line.strip_prefix(FENCE) {
                let block: Vec<(usize, &str)> =
                    lines.by_ref().take_while(|(_, line)| *line != FENCE).collect();
                page.add(number, info.trim(), &block)?;
            } else if line.trim_start().starts_with(FENCE) {
                return Err(format!("line {number}: a fence must stand at the line's begin"));
            } else if line.starts_with(INDENT) && before.is_empty() {
                return Err(format!("line {number}: indented: fence it, and say what it is"));
            }
            before = line;
        }
        Ok(page)
    }

    fn add(&mut self, line: usize, info: &str, block: &[(usize, &str)]) -> Result<(), String> {
        let words: Vec<&str> = info.split_whitespace().collect();
        match words[..] {
            ["text"] => {
                let first = block.first().map_or("", |(_, line)| line);
                self.pictures.push(format!("line {line}: {first}"));
            }
            ["console"] => self.add_commands(line, block)?,
            ["console" | "text", ..] => {
                return Err(format!("line {line}: `{info}` takes nothing behind it"));
            }
            [_, "in", path] => {
                self.push(line, Action::Find { path: path.into(), text: text(block) });
            }
            [_, path] => self.push(line, Action::Write { path: path.into(), text: text(block) }),
            _ => return Err(format!("line {line}: `{info}` does not say what the block is")),
        }
        Ok(())
    }

    fn add_commands(&mut self, line: usize, block: &[(usize, &str)]) -> Result<(), String> {
        let mut continues = false;
        let begin = self.steps.len();
        for (number, text) in block {
            let first = text.strip_prefix(PROMPT);
            match (first, self.steps[begin..].last_mut()) {
                (Some(first), _) if !continues => {
                    self.push(
                        *number,
                        Action::Run { command: first.to_owned(), output: Vec::new() },
                    );
                    continues = first.ends_with('\\');
                }
                (_, Some(Step { action: Action::Run { command, .. }, .. })) if continues => {
                    command.push('\n');
                    command.push_str(text);
                    continues = text.ends_with('\\');
                }
                (None, Some(Step { action: Action::Run { output, .. }, .. })) => {
                    output.push((*text).to_owned());
                }
                _ => return Err(format!("line {number}: output of no command")),
            }
        }
        if self.steps.len() == begin {
            return Err(format!("line {line}: no command"));
        }
        Ok(())
    }

    fn push(&mut self, line: usize, action: Action) {
        self.steps.push(Step { line, action });
    }
}

fn text(block: &[(usize, &str)]) -> String {
    block.iter().flat_map(|(_, line)| [line, "\n"]).collect()
}
