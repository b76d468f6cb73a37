//! One look at a busy worker, as this crate takes it.

use samovar_insight::Model;
use samovar_spy::profile::{NO_CODE, Profile, RESET, ROLLBACK, Weight};
use samovar_spy::{Activity, Frame};

/// What a worker was seen at.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// PHP's calls, the innermost first, and whether it runs or waits.
    Php(&'a [Frame], &'a Activity),
    /// It has a request, and no PHP code runs.
    NoCode,
    /// It returns to its image.
    Rollback,
    /// It tidies up behind a request.
    Reset,
}

/// One look.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Whose worker it is; empty where there is one pool.
    pub pool: &'a str,
    /// Whose fork the worker is; each pool counts for itself.
    pub generation: u64,
    /// How PHP runs.
    pub model: Model,
    /// It boots the application.
    pub is_boot: bool,
    /// Id, script and path of its request.
    pub request: Option<(&'a str, &'a str, &'a str)>,
    /// What it was seen at.
    pub at: At<'a>,
    /// What the look stands for.
    pub weight: Weight,
}

impl Sample<'_> {
    pub(crate) fn add_to(&self, profile: &mut Profile) {
        match self.at {
            At::Php(frames, activity) => profile.add(frames, activity, self.weight),
            At::NoCode => profile.add_mark(NO_CODE, self.weight),
            At::Rollback => profile.add_mark(ROLLBACK, self.weight),
            At::Reset => profile.add_mark(RESET, self.weight),
        }
    }
}
