//! The first stage: a value as typed, and its origin.

use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::schema::names;
use crate::schema::secret::MASK;
use crate::schema::setting::{Kind, Setting, Shape};

/// Source of a value, weakest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File {
        file: PathBuf,
        line: usize,
        /// Full key; for a pair it includes the pair's name.
        key: String,
        /// The value is in a pool's table, which overrides all other sources.
        is_pools: bool,
    },
    Env,
    Flag,
}

impl Origin {
    fn layer(&self) -> u8 {
        match self {
            Origin::File { is_pools: true, .. } => 3,
            Origin::File { .. } => 0,
            Origin::Env => 1,
            Origin::Flag => 2,
        }
    }
}

/// One value; each item of a list and each pair is a separate one.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) setting: &'static Setting,
    /// The text to read, without quotes.
    pub(crate) text: String,
    /// The text as typed, including quotes.
    pub(crate) raw: String,
    pub(crate) shape: Shape,
    pub(crate) origin: Origin,
    /// Folder at which relative paths start.
    pub(crate) base: PathBuf,
}

impl Typed {
    /// Makes a value from the command line (`Origin::Flag`) or the environment.
    pub(crate) fn untyped(
        setting: &'static Setting,
        text: &str,
        origin: Origin,
        base: &Path,
    ) -> Typed {
        let (text, raw, base) = (text.to_owned(), text.to_owned(), base.to_owned());
        Typed { setting, text, raw, shape: Shape::Untyped, origin, base }
    }

    pub(crate) fn layer(&self) -> u8 {
        self.origin.layer()
    }

    /// Makes the problem of a value that the setting does not accept.
    pub(crate) fn refused(&self) -> Problem {
        let kind = &self.setting.kind;
        let allowed = match (kind, &self.origin) {
            (Kind::Pairs { .. }, Origin::File { .. }) => {
                "a string, an integer or a boolean, on one line".to_owned()
            }
            _ => kind.allowed(),
        };
        let hint = format!("{} takes {allowed}{}{}", self.name(), self.quotes(), self.unpaired());
        self.problem("is not allowed", hint)
    }

    /// Returns a hint about quotes, if only the TOML type of the value is wrong.
    fn quotes(&self) -> &'static str {
        let takes_text = matches!(
            self.setting.kind,
            Kind::Timeout { .. }
                | Kind::Word { .. }
                | Kind::Path { .. }
                | Kind::Text { .. }
                | Kind::List { .. }
        );
        match self.shape {
            Shape::String if !self.setting.kind.takes(Shape::String) => ", without quotes",
            Shape::Integer | Shape::Boolean | Shape::Scalar if takes_text => ", in quotes",
            _ => "",
        }
    }

    /// Returns a hint about the setting that accepts such a value, if there is one.
    fn unpaired(&self) -> String {
        let Kind::Pairs { unpaired: Some((is_such, key)), .. } = self.setting.kind else {
            return String::new();
        };
        let is_typed = !matches!(self.origin, Origin::File { .. });
        let is_such = is_typed && is_such(&self.text);
        let other = || Typed { setting: names::by_key(key), ..self.clone() }.name();
        if is_such { format!("; `{}` is for {}", self.text, other()) } else { String::new() }
    }

    /// Makes a problem: ``samovar.toml:3: `workers = 0` is not allowed``; `what` ends the sentence.
    pub(crate) fn problem(&self, what: &str, hint: String) -> Problem {
        let setting = self.setting;
        let raw = match self.raw.as_str() {
            "" => "''",
            _ if setting.is_secret => MASK,
            raw => raw,
        };
        match &self.origin {
            Origin::File { file, line, key, .. } => {
                let place = format!("{}:{line}", file.display());
                Problem::new(format!("{place}: `{key} = {raw}` {what}"), hint).at_line(*line)
            }
            Origin::Env => Problem::new(format!("`{}={raw}` {what}", setting.env()), hint),
            Origin::Flag if setting.positional => Problem::new(format!("`{raw}` {what}"), hint),
            Origin::Flag => Problem::new(format!("`--{} {raw}` {what}", setting.flag), hint),
        }
    }

    /// Returns the setting's name in the notation of the source.
    fn name(&self) -> String {
        match &self.origin {
            Origin::File { key, .. } => format!("`{key}`"),
            Origin::Env => format!("`{}`", self.setting.env()),
            Origin::Flag if self.setting.positional => self.setting.value.to_owned(),
            Origin::Flag => format!("`--{}`", self.setting.flag),
        }
    }
}
