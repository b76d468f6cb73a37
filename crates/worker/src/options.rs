//! Ways to start `samovar-php`: by the supervisor with a sealed memory file, or by a person who
//! queries its version or engine.

use crate::boundary;
use crate::engine;
use samovar_channel::{
    ASK_FLAG, ENGINE_FLAG, GraphEnd, LINT_FLAG, LintStart, LoadsEnd, NoStart, PhpQuestion,
    START_FLAG, Start, TEST_FLAG, TemplateEnd, TestStart, WorkerOptions,
};
use std::ffi::{OsStr, OsString};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use thiserror::Error;

/// Resources and settings that the template receives at its start.
pub(crate) struct Inherited {
    /// The channel to the supervisor.
    pub(crate) channel: TemplateEnd,
    /// The supervisor's process number.
    pub(crate) parent: i32,
    /// The ring's memory file.
    pub(crate) ring: OwnedFd,
    /// The eventfds that wake the fronts.
    pub(crate) notifiers: Vec<OwnedFd>,
    /// The memory file of the objects that workers share, apart from requests.
    pub(crate) shared: OwnedFd,
    /// The memory file of published values.
    pub(crate) published: OwnedFd,
    /// The socket for requests to the server to publish a value.
    pub(crate) publishing: OwnedFd,
    /// The socket for call graphs, if this template traces.
    pub(crate) traces: Option<GraphEnd>,
    /// The socket for reports of loaded code, if there is a reader.
    pub(crate) loads: Option<LoadsEnd>,
    /// The socket for pushes of jobs, if there are queues.
    pub(crate) jobs: Option<OwnedFd>,
    /// The settings of PHP's processes.
    pub(crate) options: WorkerOptions,
}

pub(crate) enum Invocation {
    Template(Box<Inherited>),
    Print(String),
    /// Query of the settings with which PHP would start.
    Ask(PhpQuestion),
    /// Run of tests.
    Test(Box<TestStart>),
    /// Compilation of files.
    Lint(Box<LintStart>),
}

/// An error in the command line or in the inherited descriptors.
#[derive(Debug, Error)]
pub(crate) enum WrongStart {
    #[error("missing {START_FLAG}")]
    NoFlag,
    #[error("unknown argument `{}`", .0.display())]
    Unknown(OsString),
    #[error("{0} is not an open descriptor")]
    NotOpen(String),
    #[error(transparent)]
    NoStart(#[from] NoStart),
}

const USAGE: &str = "\
samovar-php: the worker process of Samovar; `samovar serve` starts it.

  --version              print the PHP version that it was built for
  --engine               print its libphp, and how that was built, as JSON
  --ask INI [NAME=VALUE...]  print the mode of PHP's JIT with this php.ini and these directives,
                         the folder of its sessions, if it has these and sessions are files, and
                         directives and extensions that `samovar doctor` checks
  --test FD              start as the process of `samovar test` that units of tests are forked
                         from: FD is a memory file with the settings
  --lint FD              start as the process of `samovar lint` that compiles files: FD is a memory
                         file with the settings
  --template FD NAME     start as the server's template: FD is a memory file with the settings,
                         NAME is the name of the application, for process lists";

pub(crate) fn parse() -> Result<Invocation, WrongStart> {
    let mut words = std::env::args_os().skip(1);
    let word = words.next().ok_or(WrongStart::NoFlag)?;
    match word.to_str() {
        Some("--version") => {
            let (own, php) = (env!("CARGO_PKG_VERSION"), boundary::php_built_for());
            Ok(Invocation::Print(format!("samovar-php {own} (PHP {php})")))
        }
        Some(ENGINE_FLAG) => Ok(Invocation::Print(engine::facts().to_json())),
        Some(ASK_FLAG) => {
            let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
            Ok(Invocation::Ask(PhpQuestion::from_words(&words)))
        }
        Some("-h" | "--help") => Ok(Invocation::Print(USAGE.into())),
        Some(TEST_FLAG) => {
            let start = TestStart::read(file(&words.next().unwrap_or_default(), TEST_FLAG)?)?;
            Ok(Invocation::Test(Box::new(start)))
        }
        Some(LINT_FLAG) => {
            let start = LintStart::read(file(&words.next().unwrap_or_default(), LINT_FLAG)?)?;
            Ok(Invocation::Lint(Box::new(start)))
        }
        Some(START_FLAG) => inherit(&words.next().unwrap_or_default()),
        _ => Err(WrongStart::Unknown(word)),
    }
}

/// Opens the memory file whose number follows a flag.
fn file(number: &OsStr, flag: &str) -> Result<OwnedFd, WrongStart> {
    open(number.to_str().and_then(|number| number.parse().ok()).unwrap_or(-1), flag)
}

fn inherit(number: &OsStr) -> Result<Invocation, WrongStart> {
    let start = Start::read(file(number, START_FLAG)?)?;
    let Start { parent, channel, ring, notifiers, shared, published, publishing, options, .. } =
        start;
    Ok(Invocation::Template(Box::new(Inherited {
        channel: open(channel, "the channel")?.into(),
        parent,
        ring: open(ring, "the ring")?,
        notifiers: notifiers
            .into_iter()
            .map(|notifier| open(notifier, "the notifier"))
            .collect::<Result<_, _>>()?,
        shared: open(shared, "the shared memory")?,
        published: open(published, "the published values")?,
        publishing: open(publishing, "the socket of published values")?,
        traces: start
            .traces
            .map(|fd| open(fd, "the socket of call graphs"))
            .transpose()?
            .map(GraphEnd::from),
        loads: start
            .loads
            .map(|fd| open(fd, "the socket of load reports"))
            .transpose()?
            .map(LoadsEnd::from),
        jobs: start.jobs.map(|fd| open(fd, "the socket of jobs")).transpose()?,
        options,
    })))
}

pub(crate) fn open(fd: RawFd, name: &str) -> Result<OwnedFd, WrongStart> {
    // SAFETY: F_GETFD only checks whether the number is an open descriptor.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(WrongStart::NotOpen(format!("{name} {fd}")));
    }
    // SAFETY: open (just checked), and the supervisor passed it for us to own.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
