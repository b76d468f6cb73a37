//! A boot's functions, as the sampler has seen them from outside: which are dear, where no request is traced either.

use super::keeper::Explained;
use crate::question::Answer;
use crate::running::{BOOT, named};
use samovar_wire::ProfileQuestion;
use serde::{Deserialize, Serialize};

/// Functions that are told.
const FUNCTIONS_MAX: usize = 50;
/// Minutes are kept whole: one more on each side.
const MINUTE_S: u64 = 60;
const NS_PER_S: i64 = 1_000_000_000;

/// A function of a boot and of the rehearsal before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootFunction {
    /// `App\Kernel::boot`.
    pub function: String,
    /// Where it is declared.
    pub file: String,
    /// And in which line.
    pub line: u32,
    /// How often it was seen at work.
    pub samples: u64,
    /// Time for which it was, ns.
    pub own_ns: u64,
    /// With what it calls.
    pub total_ns: u64,
}

impl Explained {
    /// What whoever keeps profiles is to be asked for the functions of this boot, which is that generation's of that pool: the
    /// default one by an empty name.
    #[must_use]
    pub fn asks(&self, pool: &str, generation: u64) -> ProfileQuestion {
        let rehearsal = self.boot.rehearsal.map_or(0, |rehearsal| rehearsal.all.wall_ns);
        let took = self.boot.all.wall_ns.saturating_add(rehearsal).max(0) / NS_PER_S;
        ProfileQuestion {
            route: Some(named(pool, BOOT).into_owned()),
            from: self.boot.at_s.saturating_sub(took.unsigned_abs() + MINUTE_S).max(1),
            to: self.boot.at_s + MINUTE_S,
            pool: Some(pool.to_owned()),
            generation: Some(generation),
            against: None,
        }
    }

    /// Takes over what he has answered: nothing, if he has seen none of it.
    pub fn take_functions(&mut self, answer: &Answer) {
        let shares = answer.now.profile.shares();
        let mut all: Vec<_> = shares
            .into_iter()
            .map(|share| BootFunction {
                function: share.function.full_name(),
                file: share.function.file.clone(),
                line: share.function.line,
                samples: share.own.samples,
                own_ns: share.own.wall_ns,
                total_ns: share.total.wall_ns,
            })
            .collect();
        all.sort_by_key(|function| std::cmp::Reverse((function.own_ns, function.total_ns)));
        all.truncate(FUNCTIONS_MAX);
        self.functions = all;
    }
}
