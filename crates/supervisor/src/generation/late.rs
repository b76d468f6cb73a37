//! Who has not left in time, and what it was busy with.

use super::{Generation, Ground, LEAVE_LIMIT};
use crate::news::{KillWhy, News};
use tracing::warn;

/// Requests that are named where many workers are killed at once.
const NAMED_MAX: usize = 10;

impl Generation {
    /// Says who is killed because it has not left in time.
    pub(super) fn tell_of_late(&self, ground: &Ground) {
        let busy = self.processes().count();
        if busy == 0 {
            return;
        }
        let why = if ground.is_stopping {
            let seconds = LEAVE_LIMIT.as_secs();
            warn!(busy, seconds, "workers are killed: they have not left when the server stops");
            format!("{busy}: they have not left when the server stopped")
        } else {
            warn!(busy, "workers of an older generation are killed: timeouts.drain is over");
            format!("{busy} of an older generation: timeouts.drain is over")
        };
        let running =
            self.processes().filter_map(|(cell, pid, _)| Some((pid, running(cell, ground)?)));
        for (pid, [request, request_id]) in running.take(NAMED_MAX) {
            warn!(pid, request, request_id, "this request is cut off: its worker is killed");
        }
        ground.kills.count(KillWhy::Late, busy);
        ground.tell(News::Killed(why));
    }
}

/// Method and path of the request that the worker in that cell runs, and its id.
fn running(cell: usize, ground: &Ground) -> Option<[String; 2]> {
    let run = ground.supervision.taken(cell)?.run;
    let line = ground.supervision.request_line(run.slot);
    let request = format!("{} {}", line.method, line.path).escape_debug().to_string();
    // It may have ended meanwhile, and the slot be another's.
    ground.supervision.is_running(run).then(|| [request, line.id.escape_debug().to_string()])
}
