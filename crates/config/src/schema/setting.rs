//! One row of the table, and the allowed values of each kind.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schema::notation;
use crate::schema::settings::Settings;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Key in the file, such as `limits.queue_max`.
    pub key: &'static str,
    /// Long flag without its dashes. The name of the environment variable is derived from it.
    pub flag: &'static str,
    /// Former flag. Using it is an error with the current flag as hint.
    pub former_flag: Option<&'static str>,
    /// Former key. Using it is an error with the current key as hint.
    pub former_key: Option<&'static str>,
    /// Letter of the short flag, for settings that are typed often.
    pub short: Option<char>,
    /// The value is given without a flag, as the argument of `serve`.
    pub positional: bool,
    /// A switch whose flag alone means true; a value is given after `=`.
    pub bare: bool,
    /// Heading under which it is listed.
    pub group: Group,
    /// Placeholder for the value in help texts, such as `SIZE`.
    pub value: &'static str,
    /// Allowed values, and the field that holds the value.
    pub kind: Kind,
    /// Value if it is not set.
    pub default: Preset,
    /// One line for `-h`, without a full stop.
    pub doc: &'static str,
    /// Full sentences for `--help` and the manual; printed after `doc`.
    pub long: &'static str,
    /// Effect of a change at a reload.
    pub on_reload: OnReload,
    /// The value is a secret: no message shows it, and PHP's processes do not get it.
    pub is_secret: bool,
    /// Completes or checks the resolved value, if that depends on the machine (does the file
    /// exist?).
    pub finish: Option<Finish>,
}

/// Returns a description of the mistake, as the end of a sentence, and a hint.
pub type Finish = fn(&mut Settings, &Surroundings<'_>) -> Result<(), (String, String)>;

/// Properties of the process that settings depend on.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Working directory, absolute.
    pub cwd: &'a Path,
    /// `$TMPDIR`.
    pub temp_dir: Option<&'a OsStr>,
    /// `$STATE_DIRECTORY`, a service manager's folder for data that is kept when the service ends.
    pub state_dir: Option<&'a OsStr>,
    /// `$HOME`.
    pub home: Option<&'a OsStr>,
    /// The effective user is root.
    pub is_root: bool,
    /// The setting in question is set by some source.
    pub is_given: bool,
}

/// Effect of a changed setting at a reload.
#[derive(Clone, Copy, Debug)]
pub enum OnReload {
    /// The new generation uses the new value.
    Applied,
    /// The value is used once, at the start of the server. The function reports whether two
    /// versions of the settings differ in it.
    Kept(fn(&Settings, &Settings) -> bool),
}

/// Detects values that belong to another setting, and names that setting's key.
pub type Unpaired = (fn(&str) -> bool, &'static str);

/// Accessor of a setting's field.
pub type Field<T> = fn(&mut Settings) -> &mut T;

/// Heading under which a setting is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Served files and scripts, and addresses.
    Serving,
    /// Compression of responses.
    Compression,
    /// Automatic certificates.
    Acme,
    /// Certificates from files, and client certificates.
    Tls,
    /// FastCGI from web servers, and to php-fpm.
    FastCgi,
    /// Workers and the code that they run.
    Php,
    /// Limits on the resources that clients and PHP can use.
    Limits,
    /// Time limits for waiting.
    Timeouts,
    /// Destinations and formats of logs.
    Logs,
    /// Memory shared by all workers.
    Shared,
    /// The store of jobs.
    Jobs,
    /// Measurements of requests, and access to them.
    Insight,
    /// Profiling of workers.
    Profile,
}

impl Group {
    /// All groups in listing order.
    pub const ALL: [Group; 13] = [
        Group::Serving,
        Group::Compression,
        Group::Acme,
        Group::Tls,
        Group::FastCgi,
        Group::Php,
        Group::Limits,
        Group::Timeouts,
        Group::Logs,
        Group::Shared,
        Group::Jobs,
        Group::Insight,
        Group::Profile,
    ];

    /// Returns the heading in the help and the manual.
    pub fn title(self) -> &'static str {
        match self {
            Group::Serving => "Serving",
            Group::Compression => "Compression",
            Group::Acme => "ACME",
            Group::Tls => "TLS",
            Group::FastCgi => "FastCGI",
            Group::Php => "PHP",
            Group::Limits => "Limits",
            Group::Timeouts => "Timeouts",
            Group::Logs => "Logs",
            Group::Shared => "Shared memory",
            Group::Jobs => "Queues",
            Group::Insight => "Insight",
            Group::Profile => "Profile",
        }
    }
}

/// Value of a setting that is not set.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// Text that is read like a value from the file.
    Text(&'static str),
    /// `finish` or the setting's user derives the value; the text describes how.
    Derived(&'static str),
}

/// Kind of a setting's value, and the field that holds it.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`; in the environment also `1` or `0`.
    Switch(Field<bool>),
    /// A whole number.
    Count {
        /// Minimum, inclusive.
        min: usize,
        /// Maximum, inclusive.
        max: usize,
        /// Field of the settings.
        field: Field<usize>,
    },
    /// A whole number, or `auto`: one per core.
    PerCore {
        /// Maximum, inclusive.
        max: usize,
        /// Field of the settings.
        field: Field<usize>,
    },
    /// A whole number, or `auto`: one per `cores` cores, at least one.
    PerCores {
        /// Number of cores for each unit.
        cores: usize,
        /// Maximum, inclusive.
        max: usize,
        /// Field of the settings.
        field: Field<usize>,
    },
    /// A whole number, `auto`, or a range of two numbers: `2..64`. In the file also a table with
    /// `min` and `max`.
    Range {
        /// Maximum, inclusive.
        max: usize,
        /// Fields of the minimum and the maximum.
        fields: fn(&mut Settings) -> (&mut usize, &mut usize),
    },
    /// A number of bytes, optionally with K, M or G.
    Size {
        /// Minimum, inclusive.
        min: u64,
        /// Maximum, inclusive.
        max: u64,
        /// Field of the settings.
        field: Field<u64>,
    },
    /// A duration with its unit.
    Timeout {
        /// Meaning of 0, if it is allowed.
        zero: Option<&'static str>,
        /// Field of the settings.
        field: Field<Duration>,
    },
    /// One of a few words; `set` gets its index.
    Word {
        /// The words, in the order of the enum's variants.
        words: &'static [&'static str],
        /// Sets the field.
        set: fn(&mut Settings, usize),
    },
    /// A path, relative to the file's folder, or to the working directory for other sources.
    Path {
        /// Description of the allowed values.
        allowed: &'static str,
        /// Sets the field to the absolute path.
        set: fn(&mut Settings, PathBuf),
    },
    /// Any other text.
    Text {
        /// Description of the allowed values.
        allowed: &'static str,
        /// Sets the field, or returns `None` for a value that is not allowed. Relative paths start
        /// at the folder.
        set: fn(&mut Settings, &str, &Path) -> Option<()>,
    },
    /// Several texts. A stronger source replaces the whole list of a weaker one.
    List {
        /// Description of the allowed values of one item.
        allowed: &'static str,
        /// Empties the field, before a stronger source fills it.
        clear: fn(&mut Settings),
        /// Appends to the field, or returns `None` for a value that is not allowed. Relative paths
        /// start at the folder.
        push: fn(&mut Settings, &str, &Path) -> Option<()>,
    },
    /// `key=value` pairs; in the file a table. A stronger source replaces single keys.
    Pairs {
        /// Description of the allowed values of one pair.
        allowed: &'static str,
        /// Adds a pair to the field, or returns `None` for a value that is not allowed. Relative
        /// paths start at the folder.
        put: fn(&mut Settings, &str, &Path) -> Option<()>,
        /// Values without `=` that belong to another setting, and that setting's key.
        unpaired: Option<Unpaired>,
    },
}

/// TOML type of a value in the file. Environment and command line have only text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Untyped,
    String,
    Integer,
    Boolean,
    /// A float or a date, which no setting accepts.
    Scalar,
    /// An empty array: an empty list.
    Empty,
    /// A table, or an array in the wrong place, which no setting accepts.
    Nested,
}

impl Setting {
    /// Returns the name of the environment variable: `SAMOVAR_` and the flag.
    pub fn env(&self) -> String {
        variable(self.flag)
    }

    /// Returns the former name of the environment variable, derived from [`Self::former_flag`].
    pub fn former_env(&self) -> Option<String> {
        self.former_flag.map(variable)
    }

    /// Returns the last part of the key.
    pub fn last(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }
}

impl Kind {
    /// Describes the allowed values, as a text that follows "takes".
    pub fn allowed(&self) -> String {
        match self {
            Kind::Switch(_) => "`true` or `false`".to_owned(),
            Kind::Count { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::PerCore { max, .. } | Kind::PerCores { max, .. } => {
                format!("`auto` or a whole number from 1 to {max}")
            }
            Kind::Range { max, .. } => {
                format!("`auto`, a whole number from 1 to {max}, or a range of two such as `2..64`")
            }
            Kind::Size { min, max, .. } => {
                let (min, max) = (notation::show_bytes(*min), notation::show_bytes(*max));
                format!("a size from {min} to {max}, in bytes or with K, M or G")
            }
            Kind::Timeout { zero, .. } => {
                let zero = zero.map_or(String::new(), |zero| format!(", or `0`: {zero}"));
                format!("a time from `1ms` to `24h`, such as `500ms`, `30s` or `2m`{zero}")
            }
            Kind::Word { words, .. } => one_of(words),
            Kind::Path { allowed, .. }
            | Kind::Text { allowed, .. }
            | Kind::List { allowed, .. }
            | Kind::Pairs { allowed, .. } => (*allowed).to_owned(),
        }
    }

    /// Whether the setting can be given several times.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Kind::List { .. } | Kind::Pairs { .. })
    }

    /// Whether a value of this shape can be valid. Values from environment and flags are untyped.
    pub(crate) fn takes(&self, shape: Shape) -> bool {
        use Shape::{Boolean, Empty, Integer, String, Untyped};
        match self {
            Kind::Switch(_) => matches!(shape, Untyped | Boolean),
            Kind::Count { .. } => matches!(shape, Untyped | Integer),
            Kind::PerCore { .. }
            | Kind::PerCores { .. }
            | Kind::Range { .. }
            | Kind::Size { .. }
            | Kind::Timeout { .. } => {
                matches!(shape, Untyped | Integer | String)
            }
            Kind::Word { .. } | Kind::Path { .. } | Kind::Text { .. } => {
                matches!(shape, Untyped | String)
            }
            Kind::List { .. } => matches!(shape, Untyped | String | Empty),
            Kind::Pairs { .. } => matches!(shape, Untyped | String | Integer | Boolean),
        }
    }

    /// Reads the text into the field; `None` if it is not allowed.
    pub(crate) fn set(&self, settings: &mut Settings, text: &str, base: &Path) -> Option<()> {
        match self {
            Kind::Switch(field) => *field(settings) = notation::switch(text)?,
            Kind::Count { min, max, field } => *field(settings) = count(text, *min, *max)?,
            Kind::PerCore { max, field } => *field(settings) = per_core(text, *max)?,
            Kind::PerCores { cores: each, max, field } => {
                *field(settings) = match text {
                    "auto" => (cores() / each).clamp(1, *max),
                    number => count(number, 1, *max)?,
                };
            }
            Kind::Range { max, fields } => {
                let (least, most) = range(text, *max)?;
                let (min_field, max_field) = fields(settings);
                (*min_field, *max_field) = (least, most);
            }
            Kind::Size { min, max, field } => {
                *field(settings) = notation::bytes(text).filter(|n| (min..=max).contains(&n))?;
            }
            Kind::Timeout { zero, field } => {
                let span = notation::timeout(text)?;
                *field(settings) = (!span.is_zero() || zero.is_some()).then_some(span)?;
            }
            Kind::Word { words, set } => {
                set(settings, words.iter().position(|word| *word == text)?);
            }
            Kind::Path { set, .. } => {
                set(settings, (!text.is_empty()).then(|| base.join(text))?);
            }
            Kind::Text { set, .. } => set(settings, text, base)?,
            Kind::List { push, .. } => push(settings, text, base)?,
            Kind::Pairs { put, .. } => put(settings, text, base)?,
        }
        Some(())
    }
}

fn variable(flag: &str) -> String {
    format!("SAMOVAR_{}", flag.to_uppercase().replace('-', "_"))
}

fn count(text: &str, min: usize, max: usize) -> Option<usize> {
    let number = usize::try_from(notation::digits(text)?).ok()?;
    (min..=max).contains(&number).then_some(number)
}

fn per_core(text: &str, max: usize) -> Option<usize> {
    if text == "auto" { Some(cores().min(max)) } else { count(text, 1, max) }
}

/// Reads `4`, `auto`, `2..64` or `auto..64`: the minimum and the maximum.
fn range(text: &str, max: usize) -> Option<(usize, usize)> {
    let Some((least, most)) = text.split_once("..") else {
        let both = per_core(text, max)?;
        return Some((both, both));
    };
    let most = count(most, 1, max)?;
    let least = if least == "auto" { cores().min(most) } else { count(least, 1, most)? };
    Some((least, most))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Formats as `` `a`, `b` or `c` ``.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
