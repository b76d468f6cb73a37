//! A stack in the form for people.

use std::fmt;
use std::sync::Arc;

/// A function, a method, or the code of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// The class that declares it; empty if there is none.
    pub class: String,
    /// Its name; `{main}`, `{include}` or `{eval}` for code outside functions.
    pub name: String,
    /// The file that declares it; empty for PHP's own functions.
    pub file: String,
    /// First line of its declaration; 0 for PHP's own.
    pub line: u32,
}

/// A call in a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The called function.
    pub function: Arc<Function>,
    /// The current line, or the line from which it called the next function; 0 for PHP's own
    /// functions.
    pub line: u32,
}

/// The calls that a thread is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Thread id; the process id if PHP has no threads.
    pub thread: u32,
    /// Calls, the innermost first. Empty if no PHP code runs.
    pub frames: Vec<Frame>,
    /// Whether the outermost calls are left out because there were too many.
    pub is_cut: bool,
}

impl Function {
    /// Returns, for example, `App\Shop::basket`, `strlen` or `{main}`.
    pub fn full_name(&self) -> String {
        if self.class.is_empty() {
            self.name.clone()
        } else {
            format!("{}::{}", self.class, self.name)
        }
    }

    /// Whether PHP itself or an extension defines it.
    pub fn is_internal(&self) -> bool {
        self.file.is_empty()
    }

    /// The name in a flame graph. Code outside functions is named with its file.
    pub fn label(&self) -> String {
        if self.name.starts_with('{') && self.class.is_empty() && !self.name.starts_with("{closure")
        {
            format!("{} {}", self.name, self.file)
        } else {
            self.full_name()
        }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = &self.function;
        if !function.class.is_empty() {
            write!(f, "{}::", function.class)?;
        }
        let call = if function.name.starts_with('{') { "" } else { "()" };
        write!(f, "{}{call}", function.name)?;
        if function.is_internal() {
            write!(f, " [internal]")
        } else {
            write!(f, " {}:{}", function.file, self.line)
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, frame) in self.frames.iter().enumerate() {
            writeln!(f, "#{number:<2} {frame}")?;
        }
        if self.is_cut {
            writeln!(f, "… (deeper than {} calls)", self.frames.len())?;
        }
        Ok(())
    }
}

/// PHP's functions in which workers wait for their next request.
const WAITS_FOR_REQUESTS: [&str; 4] =
    ["Samovar\\checkpoint", "Samovar\\consume", "Samovar\\serve", "frankenphp_handle_request"];

impl Stack {
    /// Whether this is a worker's booted application between two requests.
    pub fn is_between_requests(&self) -> bool {
        self.frames.first().is_some_and(|frame| {
            let function = &frame.function;
            function.class.is_empty() && WAITS_FOR_REQUESTS.contains(&function.name.as_str())
        })
    }

    /// One line, the outermost call first: `{main} /srv/index.php:7 > flock() [internal]`. At most
    /// the `most` innermost calls.
    pub fn one_line(&self, most: usize) -> String {
        let mut words: Vec<_> = self.frames.iter().take(most).map(ToString::to_string).collect();
        if self.frames.len() > most || self.is_cut {
            words.push("…".to_owned());
        }
        words.reverse();
        words.join(" > ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(class: &str, name: &str, file: &str, line: u32) -> Frame {
        let text = str::to_owned;
        let function = Function { class: text(class), name: text(name), file: text(file), line };
        Frame { function: Arc::new(function), line }
    }

    #[test]
    fn stacks_are_printed_as_lines_or_one_line() {
        let frames = vec![
            frame("", "flock", "", 0),
            frame("App\\Report", "write", "/srv/Report.php", 4),
            frame("", "{main}", "/srv/index.php", 7),
        ];
        let stack = Stack { thread: 1, frames, is_cut: false };
        let lines = "#0  flock() [internal]\n#1  App\\Report::write() /srv/Report.php:4\n\
            #2  {main} /srv/index.php:7\n";
        assert_eq!(stack.to_string(), lines);
        let all =
            "{main} /srv/index.php:7 > App\\Report::write() /srv/Report.php:4 > flock() [internal]";
        assert_eq!(stack.one_line(3), all);
        assert_eq!(stack.one_line(1), "… > flock() [internal]");
    }

    #[test]
    fn worker_between_requests_is_recognized() {
        let between =
            |frame| Stack { thread: 1, frames: vec![frame], is_cut: false }.is_between_requests();
        assert!(between(frame("", "Samovar\\serve", "", 0)));
        assert!(!between(frame("", "usleep", "", 0)) && !Stack::default().is_between_requests());
    }
}
