//! What one entry of the table holds, and what each kind of value allows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::settings::Settings;
use crate::sources::Sources;
use crate::typed::Shape;
use crate::value;

/// One thing that can be set.
#[derive(Debug)]
pub struct Setting {
    /// Where it stands in the file, such as `limits.queue_max`.
    pub key: &'static str,
    /// The long flag without its dashes. The environment variable derives from it.
    pub flag: &'static str,
    /// The short flag.
    pub short: Option<char>,
    /// Given without a flag, as the argument of `serve`.
    pub positional: bool,
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
    /// Completes or checks the value that won, where that needs the machine (does the file exist?).
    pub finish: Option<Finish>,
}

/// Returns what is wrong, as the end of a sentence, and a hint.
pub type Finish = fn(&mut Settings, &Sources) -> Result<(), (String, String)>;

/// The field of a setting.
pub type Field<T> = fn(&mut Settings) -> &mut T;

/// Under which heading a setting is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is served, and where.
    Serving,
    /// Workers and what they run.
    Php,
    /// Caps.
    Limits,
    /// Spans of time.
    Timeouts,
    /// What is written down.
    Logs,
}

impl Group {
    /// In the order in which they are listed.
    pub const ALL: [Group; 5] =
        [Group::Serving, Group::Php, Group::Limits, Group::Timeouts, Group::Logs];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Serving => "Serving",
            Group::Php => "PHP",
            Group::Limits => "Limits",
            Group::Timeouts => "Time-outs",
            Group::Logs => "Logs",
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
#[derive(Debug)]
pub enum Kind {
    /// `true` or `false`.
    Switch(Field<bool>),
    /// A whole number.
    Count {
        /// The least allowed.
        min: usize,
        /// The most allowed.
        max: usize,
        /// Where it goes.
        field: Field<usize>,
    },
    /// A whole number, or `auto`: one for each core.
    PerCore {
        /// The most allowed.
        max: usize,
        /// Where it goes.
        field: Field<usize>,
    },
    /// Bytes, with K, M or G.
    Size {
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
        /// Where it goes.
        field: Field<u64>,
    },
    /// A span of time with its unit.
    Timeout {
        /// What 0 means, where it is allowed.
        zero: Option<&'static str>,
        /// Where it goes.
        field: Field<Duration>,
    },
    /// One of a few words; `set` is given its index.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// Where it goes.
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
        /// Empties the field.
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
    },
}

const TIMEOUT_MAX: Duration = Duration::from_hours(24); // Longer is a mistyped unit.

impl Setting {
    /// The variable that sets it: `SAMOVAR_` and the flag.
    pub fn env(&self) -> String {
        format!("SAMOVAR_{}", self.flag.to_uppercase().replace('-', "_"))
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
            Kind::PerCore { max, .. } => format!("`auto` or a whole number from 1 to {max}"),
            Kind::Size { min, max, .. } => {
                let (min, max) = (value::show_bytes(*min), value::show_bytes(*max));
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
            Kind::PerCore { .. } | Kind::Size { .. } | Kind::Timeout { .. } => {
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
            Kind::Switch(field) => *field(settings) = text.parse().ok()?,
            Kind::Count { min, max, field } => *field(settings) = count(text, *min, *max)?,
            Kind::PerCore { max, field } => {
                *field(settings) =
                    if text == "auto" { cores().min(*max) } else { count(text, 1, *max)? };
            }
            Kind::Size { min, max, field } => {
                *field(settings) = value::bytes(text).filter(|n| (min..=max).contains(&n))?;
            }
            Kind::Timeout { zero, field } => {
                let span = value::duration(text).filter(|span| *span <= TIMEOUT_MAX)?;
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

fn count(text: &str, min: usize, max: usize) -> Option<usize> {
    let number = usize::try_from(value::digits(text)?).ok()?;
    (min..=max).contains(&number).then_some(number)
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
