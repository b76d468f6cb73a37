//! `samovar lint`: compiles PHP files under each installed PHP, without running them.
//!
//! crates/lint compiles; this file reads the flags and prints the messages.

use crate::control_client::printable;
use crate::php_flags;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::{Sources, locate_workers};
use samovar_lint::{
    Format, Hook, Linter, Results, Source, changed_files, find_files, from_text, install_hook,
    remove_hook, render, staged_files,
};
use samovar_server::development::{BATCH_FILES_MAX, Kind, Watch};
use samovar_server::{Predecessor, terminal};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

/// Exit code if files do not compile.
const EXIT_ERRORS: u8 = 1;
/// Exit code if the check could not be done.
const EXIT_FAILED: u8 = 2;
/// Maximum size of standard input, bytes.
const INPUT_BYTES_MAX: u64 = 32 << 20;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(200);

const HELP: &str = "\
Compiles each file as `php -l` does, but all files in one process of each PHP: the start of PHP is
paid once. No file runs. Errors and deprecations of the compiler are printed with their lines, and
with the versions of PHP if these differ. Folders are searched for PHP files, without vendor/.

Examples:
  samovar lint                       all PHP files below this folder
  samovar lint src public/index.php  these
  samovar lint --changed             files that differ from the last commit
  samovar lint --changed=main        files that this branch has changed since it left main
  samovar lint --php 8.2,8.4         under these versions, not all that are installed
  samovar lint --watch               compile files as they are saved
  samovar lint hook                  refuse commits with files that do not compile

Exit codes: 0 all files compile, 1 some do not, 2 wrong flags, or no check was possible.";

const HOOK_HELP: &str = "\
The hook compiles files as they are in the commit, and refuses the commit if one does not compile.
`git commit --no-verify` skips it. A hook that you have is not changed.

Examples:
  samovar lint hook             install it in this repository
  samovar lint hook --remove    remove it";

fn define() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        let flag = Arg::new(name).long(name).action(ArgAction::SetTrue);
        flag.overrides_with(name).help(help)
    };
    let hook = Command::new("hook")
        .about("Installs a hook of Git that refuses commits with files that do not compile")
        .after_help(HOOK_HELP)
        .arg(flag("remove", "Remove the hook"));
    Command::new("lint")
        .about("Compiles PHP files under each installed PHP, without running them")
        .after_help(HELP)
        .arg(
            Arg::new("paths")
                .value_name("PATH")
                .num_args(0..)
                .value_parser(value_parser!(PathBuf))
                .help("Files and folders [default: this folder]"),
        )
        .arg(
            Arg::new("changed")
                .long("changed")
                .value_name("COMMIT")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("")
                .overrides_with("changed")
                .conflicts_with_all(["paths", "staged", "stdin", "watch"])
                .help("Files that differ from the last commit, or since a branch left COMMIT"),
        )
        .arg(
            flag("staged", "Files of the next commit, as they are in it")
                .conflicts_with_all(["paths", "stdin", "watch"]),
        )
        .arg(
            Arg::new("stdin")
                .long("stdin")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .overrides_with("stdin")
                .conflicts_with_all(["paths", "watch"])
                .help("Standard input, as a file of this path"),
        )
        .arg(flag("watch", "Stay, and compile files as they are saved"))
        .arg(flag("vendor", "With the folders vendor/"))
        .arg(php_flags::versions("Versions of PHP, such as 8.2,8.4 [default: all installed]"))
        .args(php_flags::settings())
        .arg(php_flags::jobs("Number of processes [default: processors]"))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .overrides_with("format")
                .default_value("text")
                .value_parser(format)
                .help("Form of the report: text, json, github"),
        )
        .arg(flag("strict", "Exit code 1 for deprecations and warnings, too"))
        .subcommand(hook)
        .args_conflicts_with_subcommands(true)
}

fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--format <FORM>" => Some("it takes `text`, `json` or `github`"),
        _ => php_flags::hint(flag),
    }
}

fn format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| "unknown".to_owned())
}

/// The files to compile.
#[derive(Debug)]
enum Selection {
    Paths(Vec<PathBuf>),
    /// Since a commit.
    Changed(Option<String>),
    Staged,
    Input(PathBuf),
}

/// Options of the command.
#[derive(Debug)]
struct LintOptions {
    folder: PathBuf,
    selection: Selection,
    has_vendor: bool,
    is_watching: bool,
    is_strict: bool,
    format: Format,
    jobs: usize,
    workers: Vec<PathBuf>,
    php_ini: Option<PathBuf>,
    define: BTreeMap<String, String>,
}

/// Options of the hook.
#[derive(Debug)]
struct HookOptions {
    folder: PathBuf,
    removes: bool,
}

fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    let folder = std::env::current_dir().context("cannot determine the working directory")?;
    if let Some(("hook", matches)) = matches.subcommand() {
        return Ok(Box::new(HookOptions { folder, removes: matches.get_flag("remove") }));
    }
    let paths: Vec<PathBuf> = matches.get_many("paths").into_iter().flatten().cloned().collect();
    let selection = if let Some(since) = matches.get_one::<String>("changed") {
        Selection::Changed(Some(since.clone()).filter(|since| !since.is_empty()))
    } else if matches.get_flag("staged") {
        Selection::Staged
    } else if let Some(path) = matches.get_one::<PathBuf>("stdin") {
        Selection::Input(path.clone())
    } else {
        Selection::Paths(if paths.is_empty() { vec![".".into()] } else { paths })
    };
    let selected = php_flags::selected(matches)?;
    Ok(Box::new(LintOptions {
        selection,
        has_vendor: matches.get_flag("vendor"),
        is_watching: matches.get_flag("watch"),
        is_strict: matches.get_flag("strict"),
        format: matches.get_one("format").copied().unwrap_or(Format::Text),
        jobs: php_flags::jobs_of(matches),
        workers: if selected.is_empty() {
            locate_workers().map_err(anyhow::Error::from)?
        } else {
            selected
        },
        php_ini: php_flags::php_ini(matches, &folder)?,
        define: php_flags::define(matches),
        folder,
    }))
}

impl Run for LintOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        // Status 1 means files that do not compile.
        self.all().or_else(|error| {
            terminal::complain(&format!("samovar: {}", terminal::words(&error)));
            Ok(ExitCode::from(EXIT_FAILED))
        })
    }
}

impl LintOptions {
    fn all(&self) -> Result<ExitCode> {
        if self.is_watching {
            self.check_watched()?;
        }
        let sources = self.sources()?;
        if sources.is_empty() && !self.is_watching {
            // The hook of a commit without PHP files must be quick and silent.
            return self.report(&Results::default());
        }
        let linter = Linter::start(&self.workers, self.php_ini.clone(), self.define.clone())?;
        // Changes during the first run are seen, too.
        let watch = self.is_watching.then(|| Watch::open(&self.folder, &[])).transpose()?;
        let results = self.compile(&linter, &sources)?;
        let status = self.report(&results)?;
        match watch {
            Some(watch) => self.watch(watch, &linter),
            None => Ok(status),
        }
    }

    fn sources(&self) -> Result<Vec<Source>> {
        match &self.selection {
            Selection::Paths(paths) => find_files(&self.folder, paths, self.has_vendor),
            Selection::Changed(since) => changed_files(&self.folder, since.as_deref()),
            Selection::Staged => staged_files(&self.folder),
            Selection::Input(path) => {
                let mut text = Vec::new();
                // One byte more than the maximum: the report says that it is too large.
                let mut input = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1);
                input.read_to_end(&mut text).context("cannot read standard input")?;
                Ok(vec![from_text(path.clone(), text)])
            }
        }
    }

    fn compile(&self, linter: &Linter, sources: &[Source]) -> Result<Results> {
        let count = sources.len() * linter.versions().len();
        let shows = std::io::stderr().is_terminal();
        let latest = Mutex::new(Instant::now());
        let results = linter.run(sources, self.jobs, &|done| {
            let Some(mut latest) = latest.try_lock().ok().filter(|_| shows) else { return };
            if latest.elapsed() >= PROGRESS {
                *latest = Instant::now();
                // The next line replaces it.
                let _ = write!(std::io::stderr(), "\r{done} of {count} ");
            }
        })?;
        if shows && count > 0 {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
        Ok(results)
    }

    fn report(&self, results: &Results) -> Result<ExitCode> {
        if results.files == 0 && self.format != Format::Json {
            terminal::print("no PHP files to compile\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = render(results, self.format);
        terminal::print(&if self.format == Format::Json { text } else { printable(&text) })?;
        let is_wrong = results.errors() > 0 || (self.is_strict && !results.messages.is_empty());
        Ok(if is_wrong { ExitCode::from(EXIT_ERRORS) } else { ExitCode::SUCCESS })
    }

    /// Fails if a path is outside the folder, which is watched.
    fn check_watched(&self) -> Result<()> {
        let Selection::Paths(paths) = &self.selection else { return Ok(()) };
        let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        let is_outside = |path: &&PathBuf| {
            let path = self.folder.join(path);
            path.canonicalize().is_ok_and(|path| !path.starts_with(&folder))
        };
        if let Some(path) = paths.iter().find(is_outside) {
            bail!(
                "`{}` is outside the working directory `{}`, which is watched\nhint: run the \
                 command in a folder above all paths",
                path.display(),
                folder.display()
            );
        }
        Ok(())
    }

    /// Compiles files as they change, until a signal ends the process.
    fn watch(&self, mut watch: Watch, linter: &Linter) -> Result<ExitCode> {
        terminal::complain(&format!("watching {} folders; Ctrl-C ends", watch.folders()));
        loop {
            if let Some(warning) = watch.warning() {
                terminal::complain(&format!("samovar: {warning}"));
            }
            let changes = watch.wait().context("cannot watch the folder any more")?;
            // Files are missing in a full batch, and after an overflow, which reports the folder.
            if changes.len() >= BATCH_FILES_MAX || changes.iter().any(|change| change.path.is_dir())
            {
                self.report(&self.compile(linter, &self.sources()?)?)?;
                continue;
            }
            let of_code = changes.into_iter().filter(|change| change.kind == Kind::Code);
            let paths: Vec<_> = of_code
                .map(|change| change.path)
                .filter(|path| path.is_file() && samovar_lint::is_php(path) && self.has(path))
                .collect();
            let sources = find_files(&self.folder, &paths, self.has_vendor)?;
            if !sources.is_empty() {
                self.report(&self.compile(linter, &sources)?)?;
            }
        }
    }

    /// Whether a file is below one of the paths.
    fn has(&self, file: &Path) -> bool {
        let Selection::Paths(paths) = &self.selection else { return false };
        paths.iter().any(|path| {
            let path = self.folder.join(path);
            file.starts_with(path.canonicalize().unwrap_or(path))
        })
    }
}

impl Run for HookOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let text = if self.removes {
            match remove_hook(&self.folder)? {
                Hook::Missing(path) => format!("there is no hook `{}`\n", path.display()),
                Hook::Removed(path) | Hook::Installed(path) => {
                    format!("removed `{}`\n", path.display())
                }
            }
        } else {
            let program = std::env::current_exe().context("cannot find this program")?;
            match install_hook(&self.folder, &program)? {
                Hook::Installed(path) => format!(
                    "installed `{}`: it compiles the files of each commit\n",
                    path.display()
                ),
                Hook::Removed(path) | Hook::Missing(path) => {
                    bail!("no hook in `{}`", path.display())
                }
            }
        };
        terminal::print(&printable(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
