//! Workers that have not exited in time, and their current requests.

use super::ground::{Ground, LEAVE_LIMIT};
use super::state::Generation;
use crate::news::{KillWhy, News};
use tracing::warn;

/// Maximum number of requests that are logged when many workers are killed at once.
const NAMED_MAX: usize = 10;

impl Generation {
    /// Logs the workers that are killed because they have not exited in time.
    pub(super) fn tell_of_late(&self, ground: &Ground) {
        let busy = self.processes().count();
        if busy == 0 {
            return;
        }
        let why = if ground.is_stopping {
            let seconds = LEAVE_LIMIT.as_secs();
            warn!(
                busy,
                seconds, "killing workers that did not exit in time at the stop of the server"
            );
            format!("{busy}: they did not exit in time at the stop of the server")
        } else {
            warn!(busy, "killing workers of an older generation: timeouts.drain expired");
            format!("{busy} of an older generation: timeouts.drain expired")
        };
        let running =
            self.processes().filter_map(|(cell, pid, _)| Some((pid, running(cell, ground)?)));
        for (pid, [request, request_id]) in running.take(NAMED_MAX) {
            warn!(pid, request, request_id, "request aborted: its worker is killed");
        }
        ground.kills.count(KillWhy::Late, busy);
        ground.tell(News::Killed(why));
    }
}

/// Returns the id, and method and path, of the request that the worker in that cell runs.
fn running(cell: usize, ground: &Ground) -> Option<[String; 2]> {
    let run = ground.supervision.taken(cell)?.run;
    let line = ground.supervision.request_line(run.slot);
    let request = format!("{} {}", line.method, line.path).escape_debug().to_string();
    // The request may have ended meanwhile, and the slot may hold another one.
    ground.supervision.is_running(run).then(|| [request, line.id.escape_debug().to_string()])
}
