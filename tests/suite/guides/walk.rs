//! Follows a page step by step, and reports the step that fails.

use crate::guides::background::Background;
use crate::guides::page::{Action, Page, Step};
use crate::guides::pattern;
use crate::guides::place::GuideMachine;
use crate::guides::rules;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time in which a server's status must become the one that the page shows.
const SETTLES: Duration = Duration::from_secs(20);
const SERVE: &str = "samovar serve";
const LOOK: Duration = Duration::from_millis(100);

/// State of a reader who follows a page.
pub(crate) struct Walk<'a> {
    /// The reader's machine.
    pub(crate) place: &'a GuideMachine,
    /// The current folder.
    pub(crate) folder: PathBuf,
    /// Processes started in the background.
    pub(crate) background: Vec<Background>,
}

/// Output of a command, with the place's own paths, and its success.
pub(crate) struct Outcome {
    /// Standard output and standard error.
    pub(crate) text: String,
    /// Whether the exit status was 0.
    pub(crate) is_success: bool,
}

impl Outcome {
    /// A successful outcome.
    pub(crate) fn good(text: impl Into<String>) -> Outcome {
        Outcome { text: text.into(), is_success: true }
    }
}

/// Follows a whole page. An error names the line.
pub(crate) fn walk(page: &Page, place: &GuideMachine) -> Result<(), String> {
    let mut walk = Walk { place, folder: place.path("/home"), background: Vec::new() };
    for step in &page.steps {
        walk.step(step).map_err(|e| format!("line {}: {}", step.line, place.theirs(&e)))?;
    }
    walk.background.iter_mut().try_for_each(Background::end)
}

impl Walk<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Write { path, text } => self.write(path, text),
            Action::Find { path, text } => self.find(path, text),
            Action::Run { command, output } => self.run(command, output),
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), String> {
        let file = self.folder.join(self.place.ours(path));
        let parent = file.parent().expect("a file lies in a folder");
        if !parent.is_dir() {
            return Err(format!("`{path}`: there is no folder `{}`", parent.display()));
        }
        std::fs::write(&file, self.place.ours(text)).map_err(|e| format!("`{path}`: {e}"))
    }

    fn find(&self, path: &str, text: &str) -> Result<(), String> {
        let file = self.folder.join(self.place.ours(path));
        let all = std::fs::read_to_string(&file).map_err(|e| format!("`{path}`: {e}"))?;
        if all.contains(&self.place.ours(text)) {
            Ok(())
        } else {
            Err(format!("`{path}` has no such lines; it is:\n{all}"))
        }
    }

    fn run(&mut self, command: &str, output: &[String]) -> Result<(), String> {
        let ours = self.place.ours(command);
        if let Some(outcome) = rules::apply(self, &ours) {
            return check(self.place, command, output, &outcome?);
        }
        if is_server(command) {
            return self.serve(&ours, output);
        }
        let start = Instant::now();
        loop {
            let outcome = self.shell(&ours)?;
            let checked = check(self.place, command, output, &outcome);
            // Only a status query is repeated. Other commands must not run twice.
            let settles = outcome.is_success && command.contains("samovar status");
            if checked.is_ok() || !settles || start.elapsed() > SETTLES {
                return checked.map_err(|e| format!("{e}{}", self.logs()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Starts a server. It runs until the page stops it, or ends.
    pub(crate) fn serve(&mut self, command: &str, output: &[String]) -> Result<(), String> {
        self.start(&in_place_of_the_shell(command), |log| log.contains("listening on "))?;
        let Some(server) = self.background.last() else { return Ok(()) };
        let log = self.place.theirs(&server.log());
        if pattern::begins(output, &log) {
            Ok(())
        } else {
            Err(format!("expected:\n{}\nits log:\n{log}", output.join("\n")))
        }
    }

    /// Starts a command in the background and waits until its log shows that it is ready.
    pub(crate) fn start(
        &mut self,
        command: &str,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let number = self.background.len();
        let mut server = Background::start(self.place, &self.folder, command, number);
        let ready = server.wait_for(is_ready);
        self.background.push(server);
        ready
    }

    /// Runs a command to its end. The next command starts in the folder where this one left the
    /// shell.
    pub(crate) fn shell(&mut self, command: &str) -> Result<Outcome, String> {
        let left = self.place.path("/tmp/folder");
        // In a trap, because a command may exit the shell.
        let script = format!("trap 'pwd -P > \"{}\"' EXIT\n{command}", left.display());
        let output = Command::new("bash")
            .args(["-c", &format!("exec 2>&1\n{script}")])
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.place.environment())
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("bash: {e}"))?;
        if let Ok(folder) = std::fs::read_to_string(left) {
            self.folder = PathBuf::from(folder.trim_end());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Outcome { text, is_success: output.status.success() })
    }

    fn logs(&self) -> String {
        let log = |server: &Background| format!("\na server's log:\n{}", server.log());
        self.background.iter().map(log).collect()
    }
}

/// Replaces the shell by the server, so that signals reach the server itself.
fn in_place_of_the_shell(command: &str) -> String {
    let name = command.find(SERVE).expect("it is a server");
    let (before, after) = command.split_at(word_begin(&command[..name]));
    format!("{before}exec {after}")
}

/// Start of the last word of a text.
fn word_begin(text: &str) -> usize {
    text.rfind(char::is_whitespace).map_or(0, |blank| blank + 1)
}

/// Whether the command starts a server, which does not end on its own.
fn is_server(command: &str) -> bool {
    command.contains(SERVE)
}

fn check(
    place: &GuideMachine,
    command: &str,
    expected: &[String],
    got: &Outcome,
) -> Result<(), String> {
    let text = place.theirs(&got.text);
    if !got.is_success {
        return Err(format!("`{command}` failed:\n{text}"));
    }
    if expected.is_empty() || pattern::matches(expected, &text) {
        Ok(())
    } else {
        Err(format!("`{command}`\nexpected:\n{}\ngot:\n{text}", expected.join("\n")))
    }
}
