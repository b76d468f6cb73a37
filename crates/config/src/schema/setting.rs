//! What one row of the table holds, and what each kind of value allows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schema::notation;
use crate::schema::settings::Settings;

/// One thing that can be set.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Where it stands in the file, such as `limits.queue_max`.
    pub key: &'static str,
    /// The long flag without its dashes. The environment variable derives from it.
    pub flag: &'static str,
    /// The flag that it had before. Typing that is an error which says what to type.
    pub formerly: Option<&'static str>,
    /// The letter of its short flag, for what is typed daily.
    pub short: Option<char>,
    /// Given without a flag, as the argument of `serve`.
    pub positional: bool,
    /// A switch whose flag alone means true; a value then stands behind `=`.
    pub bare: bool,
    /// The heading it is listed under.
    pub group: Group,
    /// What stands for the value in help texts, such as `SIZE`.
    pub value: &'static str,
    /// What is allowed, and the field it goes to.
    pub kind: Kind,
    /// What holds when nobody sets it.
    pub default: Preset,
    /// One line for `-h`: no full stop.
    pub doc: &'static str,
    /// Sentences for `--help` and the manual, after the line above.
    pub long: &'static str,
    /// What a reload does about a change.
    pub on_reload: OnReload,
    /// Completes or checks the value that won, where that needs the machine (does the file exist?).
    pub finish: Option<Finish>,
}

/// Returns what is wrong, as the end of a sentence, and a hint.
pub type Finish = fn(&mut Settings, &Surroundings<'_>) -> Result<(), (String, String)>;

/// What of the process around them settings depend on.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// `$TMPDIR`.
    pub temp_dir: Option<&'a OsStr>,
    /// `$STATE_DIRECTORY`, where a service manager has services keep what outlives them.
    pub state_dir: Option<&'a OsStr>,
    /// `$HOME`.
    pub home: Option<&'a OsStr>,
    /// Root reads them.
    pub is_root: bool,
    /// Somebody has set what is looked at.
    pub is_given: bool,
}

/// What a reload does about a changed setting.
#[derive(Clone, Copy, Debug)]
pub enum OnReload {
    /// The new generation runs by it.
    Applied,
    /// What it stands for is made once, when the server starts. Tells whether the two differ in it.
    Kept(fn(&Settings, &Settings) -> bool),
}

/// Tells values that are another setting's, whose key stands beside it.
pub type Unpaired = (fn(&str) -> bool, &'static str);

/// The field of a setting.
pub type Field<T> = fn(&mut Settings) -> &mut T;

/// Under which heading a setting is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is served, and where.
    Serving,
    /// Which answers are packed.
    Compression,
    /// Certificates that are fetched.
    Acme,
    /// Certificates.
    Tls,
    /// What web servers may send.
    FastCgi,
    /// Workers and what they run.
    Php,
    /// Caps on what clients can make the server hold.
    Limits,
    /// Spans of time after which the server gives up waiting.
    Timeouts,
    /// What is written down, where, and how.
    Logs,
    /// What all workers share.
    Shared,
    /// What is measured of requests, and who may look.
    Insight,
    /// What is seen of workers.
    Profile,
}

impl Group {
    /// In the order in which they are listed.
    pub const ALL: [Group; 12] = [
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
        Group::Insight,
        Group::Profile,
    ];

    /// The heading in help and manual.
    pub fn title(self) -> &'static str {
        match self {
            Group::Serving => "Serving",
            Group::Compression => "Compression",
            Group::Acme => "ACME",
            Group::Tls => "TLS",
            Group::FastCgi => "FastCGI",
            Group::Php => "PHP",
            Group::Limits => "Limits",
            Group::Timeouts => "Time-outs",
            Group::Logs => "Logs",
            Group::Shared => "Shared memory",
            Group::Insight => "Insight",
            Group::Profile => "Profile",
        }
    }
}

/// What holds when nobody sets it.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// Read like a value from the file.
    Text(&'static str),
    /// `finish` or the setting's user works it out; this says how.
    Derived(&'static str),
}

/// What kind of value a setting takes, and the field it goes to.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`, and in the environment `1` or `0`.
    Switch(Field<bool>),
    /// A whole number of things.
    Count {
        /// The least that is allowed, itself included.
        min: usize,
        /// The most that is allowed, itself included.
        max: usize,
        /// The field of the settings that holds it.
        field: Field<usize>,
    },
    /// A whole number, or `auto`: one for each core.
    PerCore {
        /// The most that is allowed, itself included.
        max: usize,
        /// The field of the settings that holds it.
        field: Field<usize>,
    },
    /// A whole number, or `auto`: one, and with many cores one for each so many of them.
    PerCores {
        /// For how many cores there is one.
        cores: usize,
        /// The most that is allowed, itself included.
        max: usize,
        /// The field of the settings that holds it.
        field: Field<usize>,
    },
    /// A whole number, `auto`, or a range of two: `2..64`, in the file also a table of `min` and `max`.
    Range {
        /// The most that is allowed, itself included.
        max: usize,
        /// The fields of the least and the most.
        fields: fn(&mut Settings) -> (&mut usize, &mut usize),
    },
    /// Bytes, with K, M or G.
    Size {
        /// The least that is allowed, itself included.
        min: u64,
        /// The most that is allowed, itself included.
        max: u64,
        /// The field of the settings that holds it.
        field: Field<u64>,
    },
    /// A span of time with its unit.
    Timeout {
        /// What 0 means, where it is allowed.
        zero: Option<&'static str>,
        /// The field of the settings that holds it.
        field: Field<Duration>,
    },
    /// One of a few words; `set` is given its index.
    Word {
        /// The words, in the order of the enum's variants.
        words: &'static [&'static str],
        /// The field of the settings that holds it.
        set: fn(&mut Settings, usize),
    },
    /// A path; relative ones start at the file's folder, else at the working directory.
    Path {
        /// What is allowed, for people.
        allowed: &'static str,
        /// Where it goes, made absolute.
        set: fn(&mut Settings, PathBuf),
    },
    /// Any other text; `set` refuses what is not allowed with `None`.
    Text {
        /// What is allowed, for people.
        allowed: &'static str,
        /// Where it goes; relative paths start at the folder.
        set: fn(&mut Settings, &str, &Path) -> Option<()>,
    },
    /// Several texts; those of a stronger source replace all of a weaker one's.
    List {
        /// What one item may be, for people.
        allowed: &'static str,
        /// Empties the field, before a stronger source fills it.
        clear: fn(&mut Settings),
        /// Appends to the field, or refuses with `None`.
        push: fn(&mut Settings, &str) -> Option<()>,
    },
    /// `key=value` pairs, a table in the file; a stronger source replaces key by key.
    Pairs {
        /// What one pair may be, for people.
        allowed: &'static str,
        /// Puts a pair into the field, or refuses with `None`.
        put: fn(&mut Settings, &str) -> Option<()>,
        /// Which values without `=` are another setting's, and that one's key.
        unpaired: Option<Unpaired>,
    },
}

/// What a value looked like in the file; environment and command line know only text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Untyped,
    String,
    Integer,
    Boolean,
    /// A float or a date: no setting takes it.
    Scalar,
    /// An empty array: a list of nothing.
    Empty,
    /// A table, or an array where none belongs: no setting takes it.
    Nested,
}

impl Setting {
    /// The variable that sets it: `SAMOVAR_` and the flag.
    pub fn env(&self) -> String {
        variable(self.flag)
    }

    /// The variable that set it before, as [`Self::formerly`].
    pub fn former_env(&self) -> Option<String> {
        self.formerly.map(variable)
    }

    /// The last part of the key.
    pub fn last(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }
}

impl Kind {
    /// What is allowed, after "takes".
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

    /// Whether it can be given several times.
    pub fn is_repeatable(&self) -> bool {
        matches!(self, Kind::List { .. } | Kind::Pairs { .. })
    }

    /// Whether a value of this shape can be right; values of environment and flags have none.
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

    /// Reads the text into the field; `None` where it is not allowed.
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
            Kind::List { push, .. } => push(settings, text)?,
            Kind::Pairs { put, .. } => put(settings, text)?,
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

/// `4`, `auto`, `2..64` or `auto..64`: the least and the most.
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

/// `` `a`, `b` or `c` ``
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
