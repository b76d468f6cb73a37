//! All files under all versions of PHP, on all processors.

use crate::compiler::{Compiled, Compiler, PhpSettings};
use crate::source::Source;
use anyhow::{Context, Result, anyhow};
use samovar_channel::LintFinding;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Minimum number of files for one more process: its start takes as long as these.
const FILES_PER_PROCESS: usize = 64;

/// Processes of each version of PHP. They stay for further runs.
pub struct Linter {
    settings: PhpSettings,
    versions: Vec<Php>,
}

/// One version of PHP.
struct Php {
    worker: PathBuf,
    version: String,
    idle: Mutex<Vec<Compiler>>,
}

/// A message about a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1; 0: the whole file.
    pub line: u32,
    /// The file does not compile.
    pub is_error: bool,
    /// Kind: PHP's word, or `Error`.
    pub kind: String,
    /// Text.
    pub text: String,
    /// Versions of PHP, in the order of [`Linter::versions`].
    pub versions: Vec<String>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Number of files.
    pub files: usize,
    /// Versions of PHP.
    pub versions: Vec<String>,
    /// Messages in the order of the files and lines.
    pub messages: Vec<Message>,
}

impl Results {
    /// Number of messages about files that do not compile.
    pub fn errors(&self) -> usize {
        self.messages.iter().filter(|message| message.is_error).count()
    }
}

impl Linter {
    /// Starts a process of each worker program. Of programs with the same version of PHP, the
    /// first is used.
    ///
    /// # Errors
    /// A program does not start.
    pub fn start(
        workers: &[PathBuf],
        php_ini: Option<PathBuf>,
        define: BTreeMap<String, String>,
    ) -> Result<Linter> {
        let settings = PhpSettings { php_ini, define };
        let started: Vec<_> = std::thread::scope(|scope| {
            let settings = &settings;
            let threads: Vec<_> = workers
                .iter()
                .map(|worker| scope.spawn(move || Compiler::start(worker, settings)))
                .collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        let mut versions: Vec<Php> = Vec::new();
        for (worker, started) in workers.iter().zip(started) {
            let compiler = started.map_err(|_| anyhow!("a thread ended"))??;
            let version = compiler.php.clone();
            if versions.iter().all(|php| php.version != version) {
                let idle = Mutex::new(vec![compiler]);
                versions.push(Php { worker: worker.clone(), version, idle });
            }
        }
        versions.sort_by_key(|php| numbers(&php.version));
        Ok(Linter { settings, versions })
    }

    /// Versions of PHP, the oldest first.
    pub fn versions(&self) -> Vec<String> {
        self.versions.iter().map(|php| php.version.clone()).collect()
    }

    /// Compiles each file under each version, in at most `jobs` processes at a time. `progress`
    /// gets the number of done compilations.
    ///
    /// # Errors
    /// A further process does not start.
    pub fn run(
        &self,
        sources: &[Source],
        jobs: usize,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Results> {
        let count = sources.len() * self.versions.len();
        let wanted = count.div_ceil(FILES_PER_PROCESS).max(self.versions.len());
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found: Mutex<BTreeSet<Message>> = Mutex::default();
        let work = || -> Result<()> {
            // A process that the previous file of this thread used.
            let mut held: Option<(usize, Compiler)> = None;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    break;
                }
                // All files of one version, then those of the next.
                let (number, source) = (at / sources.len(), &sources[at % sources.len()]);
                let php = &self.versions[number];
                let compiler = match held.take() {
                    Some((same, compiler)) if same == number => compiler,
                    other => {
                        self.give_back(other);
                        self.compiler(php)?
                    }
                };
                let (messages, compiler) = compile(compiler, source, &php.version);
                held = compiler.map(|compiler| (number, compiler));
                if !messages.is_empty() {
                    lock(&found).extend(messages);
                }
                progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
            self.give_back(held);
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs.max(1).min(wanted)).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                let result = thread.join().map_err(|_| anyhow!("a thread ended"))?;
                result.context("cannot compile")
            })
        })?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
        let (files, versions) = (sources.len(), self.versions());
        Ok(Results { files, messages: merged(found, &versions), versions })
    }

    fn compiler(&self, php: &Php) -> Result<Compiler> {
        match lock(&php.idle).pop() {
            Some(compiler) => Ok(compiler),
            None => Compiler::start(&php.worker, &self.settings),
        }
    }

    fn give_back(&self, held: Option<(usize, Compiler)>) {
        if let Some((number, compiler)) = held {
            lock(&self.versions[number].idle).push(compiler);
        }
    }
}

/// Returns the messages, and the process if it can compile another file.
fn compile(
    mut compiler: Compiler,
    source: &Source,
    version: &str,
) -> (Vec<Message>, Option<Compiler>) {
    let message = |line, is_error, kind: String, text| Message {
        path: source.path.clone(),
        line,
        is_error,
        kind,
        text,
        versions: vec![version.to_owned()],
    };
    match compiler.compile(source) {
        Ok(Compiled::Findings(findings)) => {
            let all = findings.into_iter().map(|finding| {
                let LintFinding { line, is_error, kind, message: text } = finding;
                message(line, is_error, kind, text)
            });
            (all.collect(), Some(compiler))
        }
        Ok(Compiled::Unread(why)) => {
            (vec![message(0, true, "Error".to_owned(), why)], Some(compiler))
        }
        Err(error) => {
            let text = format!("PHP ended while it compiled this file: {error:#}");
            (vec![message(0, true, "Error".to_owned(), text)], None)
        }
    }
}

/// Joins the messages that are equal under several versions.
fn merged(found: impl Iterator<Item = Message>, versions: &[String]) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    for mut message in found {
        let version = std::mem::take(&mut message.versions);
        // They are sorted, so equal ones are neighbours.
        match all.last_mut() {
            Some(last) if Message { versions: Vec::new(), ..last.clone() } == message => {
                last.versions.extend(version);
            }
            _ => all.push(Message { versions: version, ..message }),
        }
    }
    for message in &mut all {
        message.versions.sort_by_key(|version| versions.iter().position(|known| known == version));
    }
    all
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_messages_of_several_versions_are_one() {
        let message = |path: &str, line, text: &str, version: &str| Message {
            path: path.into(),
            line,
            is_error: true,
            kind: "Parse error".to_owned(),
            text: text.to_owned(),
            versions: vec![version.to_owned()],
        };
        let mut found = vec![
            message("b.php", 1, "x", "8.10.0"),
            message("b.php", 1, "x", "8.9.0"),
            message("a.php", 2, "y", "8.9.0"),
            message("a.php", 2, "z", "8.10.0"),
        ];
        found.sort();
        let merged = merged(found.into_iter(), &["8.9.0".to_owned(), "8.10.0".to_owned()]);
        let shown: Vec<_> = merged
            .iter()
            .map(|message| format!("{} {:?}", message.text, message.versions))
            .collect();
        assert_eq!(shown, [r#"y ["8.9.0"]"#, r#"z ["8.10.0"]"#, r#"x ["8.9.0", "8.10.0"]"#]);
        assert!(numbers("8.10.0") > numbers("8.9.1"));
    }
}
