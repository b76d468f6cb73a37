//! Functions of a boot, as sampled from outside: shows the expensive ones without tracing any
//! request.

use super::boot_details::{BootFunction, Explained};
use crate::current_minute::{BOOT, named};
use crate::query::ProfileResult;
use samovar_wire::ProfileQuestion;

/// Maximum number of listed functions.
const FUNCTIONS_MAX: usize = 50;
/// Profiles are stored in whole minutes, so the query includes one more on each side.
const MINUTE_S: u64 = 60;
const NS_PER_S: i64 = 1_000_000_000;

impl Explained {
    /// Returns the profile query for the functions of this boot, which belongs to this pool and
    /// generation. The default pool has an empty name.
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

    /// Sets the functions from the query's result; none if the boot was not sampled.
    pub fn take_functions(&mut self, response: &ProfileResult) {
        let shares = response.now.profile.shares();
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
