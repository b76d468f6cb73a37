//! One sample of a busy worker, in this crate's form.

use samovar_insight::Model;
use samovar_spy::profile::{NO_CODE, Profile, RESET, ROLLBACK, Weight};
use samovar_spy::{Activity, Frame};

/// Activity of a worker at the time of the sample.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// PHP's call stack, innermost call first, and whether PHP runs or waits.
    Php(&'a [Frame], &'a Activity),
    /// The worker has a request, but runs no PHP code.
    NoCode,
    /// Rollback to the image.
    Rollback,
    /// Cleanup after a request.
    Reset,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Pool of the worker; empty if the server has one pool.
    pub pool: &'a str,
    /// Generation of the worker, in the pool's own count.
    pub generation: u64,
    /// Execution model of the worker.
    pub model: Model,
    /// Whether the worker boots the application.
    pub is_boot: bool,
    /// Id, script and path of the request.
    pub request: Option<(&'a str, &'a str, &'a str)>,
    /// Activity of the worker.
    pub at: At<'a>,
    /// Weight of the sample.
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
