//! Sources of settings: command line, environment, file. The caller passes them in, so that tests
//! need no separate process.

mod consoles;
mod file;
mod intakes;
mod json;
mod locations;
mod merge;
mod pools;
mod queues;
mod schedules;
mod tables;
mod typed_value;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::problem::{Problem, Problems, reason};
use crate::schema::location::Location;
use crate::schema::macros::Blank;
use crate::schema::names;
use crate::schema::setting::{Kind, Setting, Surroundings};
use crate::schema::settings::Settings;
use crate::schema::table::SETTINGS;
use consoles::TypedConsole;
use intakes::TypedIntake;
use pools::TypedPool;
use schedules::TypedSchedule;
use typed_value::{Origin, Typed};

/// File that is read if none is named.
pub const DEFAULT_FILE: &str = "samovar.toml";

/// Variable that names the file.
pub const CONFIG_ENV: &str = "SAMOVAR_CONFIG";

/// Variable with the generated token of the admin listener, for a successor.
pub const TOKEN_ENV: &str = "SAMOVAR_HANDED_ADMIN_TOKEN";

/// Variable that a successor gets if root has started the first server.
pub const ROOT_ENV: &str = "SAMOVAR_STARTED_BY_ROOT";

/// Typed values, not checked yet.
#[derive(Clone, Debug)]
pub struct Sources {
    flags: Vec<(&'static Setting, String)>,
    config: Option<PathBuf>,
    /// Text of the file `config`, in place of its contents.
    config_text: Option<String>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    /// Root has started this server, or the one that it succeeds. The server may have switched to
    /// another user since; a reload must not get other defaults.
    is_root: bool,
}

/// All typed values, weakest first, and the file that was read.
struct Collected {
    typed: Vec<Typed>,
    consoles: Vec<TypedConsole>,
    locations: Vec<Location>,
    schedules: Vec<TypedSchedule>,
    intakes: Vec<TypedIntake>,
    pools: Vec<TypedPool>,
    config_file: Option<PathBuf>,
    problems: Vec<Problem>,
}

impl Sources {
    /// Creates sources without values, in the absolute folder `cwd`.
    pub fn new(cwd: impl Into<PathBuf>) -> Sources {
        let is_root = rustix::process::geteuid().is_root();
        Sources {
            flags: Vec::new(),
            config: None,
            config_text: None,
            env: Vec::new(),
            cwd: cwd.into(),
            is_root,
        }
    }

    /// Takes this process's environment and working directory.
    pub fn of_process() -> std::io::Result<Sources> {
        let physical = std::env::current_dir()?;
        let logical =
            std::env::var_os("PWD").map(PathBuf::from).filter(|pwd| leads_to(pwd, &physical));
        let mut sources = Sources::new(logical.unwrap_or(physical)).envs(std::env::vars_os());
        sources.is_root |= sources.variable(ROOT_ENV).is_some();
        Ok(sources)
    }

    /// Adds environment variables; an empty one counts as not set.
    #[must_use]
    pub fn envs<K, V>(mut self, variables: impl IntoIterator<Item = (K, V)>) -> Sources
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let pairs = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.env.extend(pairs.filter(|(_, value): &(OsString, OsString)| !value.is_empty()));
        self
    }

    /// Adds a flag's value; the last one wins unless the setting is a list.
    #[must_use]
    pub fn flag(mut self, setting: &'static Setting, value: impl Into<String>) -> Sources {
        self.flags.push((setting, value.into()));
        self
    }

    /// Returns the working directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.cwd
    }

    /// Names the file, as `--config` does.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Sources {
        self.config = Some(file.into());
        self
    }

    /// Names the file, whose text is not on the disk yet.
    #[must_use]
    pub fn config_text(mut self, file: impl Into<PathBuf>, text: impl Into<String>) -> Sources {
        self.config_text = Some(text.into());
        self.config(file)
    }

    /// Returns the names of secrets in the environment and on the command line: variables, and
    /// flags with their dashes.
    pub fn secret_names() -> (Vec<String>, Vec<String>) {
        let secrets = || SETTINGS.iter().filter(|setting| setting.is_secret);
        let former = secrets().filter_map(Setting::former_env);
        let handed = std::iter::once(TOKEN_ENV.to_owned());
        let variables = secrets().map(Setting::env).chain(former).chain(handed).collect();
        (variables, secrets().map(|setting| format!("--{}", setting.flag)).collect())
    }

    /// Reads the file, merges the sources, and checks everything.
    pub fn resolve(&self) -> Result<Settings, Problems> {
        let Collected {
            typed,
            consoles,
            locations,
            schedules,
            intakes,
            pools,
            config_file,
            mut problems,
        } = self.collect();
        let mut settings = Settings { locations, config_file, ..Settings::blank() };
        for setting in SETTINGS {
            problems.extend(merge::lay(setting, &typed, &mut settings, &self.surroundings()));
        }
        problems.extend(consoles::resolve(&consoles, &mut settings, false));
        // Mistakes in the general settings would otherwise be reported again for each pool.
        if problems.is_empty() {
            problems.extend(pools::resolve(&pools, &typed, &mut settings, &self.surroundings()));
        }
        if problems.is_empty() {
            problems.extend(schedules::resolve(&schedules, &mut settings));
            problems.extend(intakes::resolve(&intakes, &mut settings));
        }
        if problems.is_empty() { Ok(settings) } else { Err(Problems::new(problems)) }
    }

    /// Whether root has started this server, or the one that it succeeds.
    #[must_use]
    pub fn is_roots(&self) -> bool {
        self.is_root
    }

    /// Resolves only the control socket, for `status` and `stop`; `None` if it is not set.
    ///
    /// Other mistakes are ignored: a server must be stoppable while its file is being edited.
    pub fn control(&self) -> Result<Option<PathBuf>, Problems> {
        let Collected { typed, .. } = self.collect();
        let mut settings = Settings::blank();
        let around = self.surroundings();
        let problems = merge::lay(names::by_flag("control"), &typed, &mut settings, &around);
        if problems.is_empty() { Ok(settings.control) } else { Err(Problems::new(problems)) }
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            cwd: &self.cwd,
            temp_dir: self.variable("TMPDIR"),
            state_dir: self.variable("STATE_DIRECTORY"),
            home: self.variable("HOME"),
            is_root: self.is_root,
            is_given: false,
        }
    }

    fn variable(&self, wanted: &str) -> Option<&OsStr> {
        self.env.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.as_os_str())
    }

    fn collect(&self) -> Collected {
        let mut problems = Vec::new();
        let (mut typed, mut consoles) = (Vec::new(), Vec::new());
        let (mut locations, mut pools) = (Vec::new(), Vec::new());
        let (mut schedules, mut intakes) = (Vec::new(), Vec::new());
        let config_file = self.config_file();
        if let Some(named) = &config_file {
            let text = self.config_text.clone();
            match text.map_or_else(|| std::fs::read_to_string(self.cwd.join(named)), Ok) {
                Ok(text) => {
                    let contents = file::read(named, &text, &self.cwd, &mut problems);
                    typed.extend(contents.typed);
                    consoles = contents.consoles;
                    locations = contents.locations;
                    schedules = contents.schedules;
                    intakes = contents.intakes;
                    pools = contents.pools;
                }
                Err(error) => problems.push(unreadable(named, &error)),
            }
        }
        typed.extend(self.typed_env(&mut problems));
        for (setting, value) in &self.flags {
            typed.extend(pieces(setting, value, &Origin::Flag, &self.cwd));
        }
        Collected { typed, consoles, locations, schedules, intakes, pools, config_file, problems }
    }

    fn config_file(&self) -> Option<PathBuf> {
        let named = self.config.clone().or_else(|| self.variable(CONFIG_ENV).map(PathBuf::from));
        named.or_else(|| {
            let default = PathBuf::from(DEFAULT_FILE);
            self.cwd.join(&default).exists().then_some(default)
        })
    }

    fn typed_env(&self, problems: &mut Vec<Problem>) -> Vec<Typed> {
        let mut typed = Vec::new();
        for (name, value) in &self.env {
            let Some(name) = name.to_str().filter(|name| name.starts_with("SAMOVAR_")) else {
                continue;
            };
            let setting = SETTINGS.iter().find(|setting| setting.env() == name);
            match (setting, value.to_str()) {
                (Some(setting), Some(value)) => {
                    typed.extend(pieces(setting, value, &Origin::Env, &self.cwd));
                }
                (Some(setting), None) => problems.push(Problem::new(
                    format!("`{name}` is not UTF-8"),
                    format!("`{name}` takes {}", setting.kind.allowed()),
                )),
                (None, _) => problems.extend(mistyped_variable(name)),
            }
        }
        typed
    }
}

impl Settings {
    /// Returns the default settings of an application in the folder `root`, for tests and examples.
    pub fn defaults(root: impl Into<PathBuf>) -> Result<Settings, Problems> {
        let root = root.into();
        let folder = root.to_string_lossy().into_owned();
        Sources::new(root).flag(names::by_flag("root"), folder).resolve()
    }
}

/// Whether `pwd` is the shell's name of this folder. It may contain a link that a deploy switches.
/// A reload then reads the link's new target.
fn leads_to(pwd: &Path, physical: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    pwd.is_absolute() && identity(pwd).is_some() && identity(pwd) == identity(physical)
}

fn unreadable(file: &Path, error: &std::io::Error) -> Problem {
    Problem::new(
        format!("cannot read `{}`: {}", file.display(), reason(error)),
        "`--config` and `SAMOVAR_CONFIG` take a TOML file",
    )
}

// An unknown name may belong to a service manager or to a tool around Samovar, so it is ignored. A
// name that is close to a setting's name is a typing error.
fn mistyped_variable(name: &str) -> Option<Problem> {
    if let Some(today) = SETTINGS.iter().find(|s| s.former_env().as_deref() == Some(name)) {
        let hint = format!("use `{}`, its new name", today.env());
        return Some(Problem::new(format!("unknown variable `{name}`"), hint));
    }
    let known = SETTINGS.iter().map(Setting::env).collect::<Vec<_>>();
    let bare = name.strip_prefix("SAMOVAR_")?;
    let nearest = names::nearest(bare, known.iter().filter_map(|k| k.strip_prefix("SAMOVAR_")))?;
    let problem = || {
        Problem::new(
            format!("unknown variable `{name}`"),
            format!("did you mean `SAMOVAR_{nearest}`?"),
        )
    };
    (![CONFIG_ENV, TOKEN_ENV, ROOT_ENV].contains(&name)).then(problem)
}

/// Splits the value of a list into its items: `a:80,b:80`.
fn pieces(setting: &'static Setting, value: &str, origin: &Origin, cwd: &Path) -> Vec<Typed> {
    let several = |separator| value.split(separator).map(str::trim).filter(|p| !p.is_empty());
    let typed = |piece| Typed::untyped(setting, piece, origin.clone(), cwd);
    match (&setting.kind, origin) {
        (Kind::List { .. }, _) if several(',').next().is_some() => {
            several(',').map(typed).collect()
        }
        // A pair's value may contain commas; the pairs are then on separate lines. A flag is one
        // pair.
        (Kind::Pairs { .. }, Origin::Env) if value.contains('\n') => {
            several('\n').map(typed).collect()
        }
        (Kind::Pairs { .. }, Origin::Env) => several(',').map(typed).collect(),
        _ => vec![typed(value)],
    }
}
