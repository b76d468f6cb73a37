//! Interface to the server: the data that the pages query from it. The binary implements it.

use samovar_insight::export::exposition::Exposition;
use samovar_profile::Profiles;
use samovar_profile::calls::Selected;
use samovar_profile::loads::Explained;
use samovar_wire::{CanaryStatus, QueueMinute, QueueResponse, Status};
use std::sync::Arc;

/// Interface to the server.
pub trait Host: Send + Sync {
    /// Returns the status, as `samovar status --json` prints it.
    fn status(&self) -> Status;

    /// Returns whether requests should be sent to this server now, as text; `Err` if they should
    /// not. For one pool, or for all.
    fn ready(&self, pool: Option<&str>) -> Result<String, String>;

    /// Writes the server's own metrics: workers, connections, queue, image.
    fn metrics(&self, page: &mut Exposition);

    /// Returns the dead jobs of a queue with numbers above `after`, at most `limit`.
    fn dead_jobs(&self, _queue: &str, _after: i64, _limit: usize) -> QueueResponse {
        QueueResponse::default()
    }

    /// Returns the totals of all queues at the end of the last minutes, oldest first.
    fn queue_minutes(&self) -> Vec<Arc<QueueMinute>> {
        Vec::new()
    }

    /// Returns the call graph of a pool's route on a day (since 1970). Arguments that are `None`
    /// have the usual defaults. Returns `None` if requests are not traced.
    fn calls(
        &self,
        _pool: Option<&str>,
        _day: Option<u64>,
        _route: Option<&str>,
    ) -> Option<Result<Selected, String>> {
        None
    }

    /// Returns the cost of a pool's boot (`None`: the default pool) and the files that its requests
    /// still load. Returns `None` if no application was booted.
    fn boot(&self, _pool: Option<&str>) -> Option<Explained> {
        None
    }

    /// Returns the canary, or the last one since the start of the server.
    fn canary(&self) -> Option<CanaryStatus> {
        None
    }

    /// Returns the profiles of the workers; `None` if the sampler is off.
    fn profiles(&self) -> Option<Arc<Profiles>> {
        None
    }
}
