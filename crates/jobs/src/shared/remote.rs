//! Calls of the scripts in Redis.

use super::options::SharedOptions;
use crate::job::{QueueSettings, milliseconds};
use crate::store::{Catalogue, Listed, Page, Stage, StoreError};
use samovar_redis::{Client, Reply, Script, ScriptCall, Terms};
use samovar_wire::DeadJob;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CODE: &str = include_str!("queues.lua");
/// The script that is refused at `maxmemory`, and the one that is not: results must be stored.
const SCRIPTS: [Script; 2] =
    [Script { flags: "", code: CODE }, Script { flags: "allow-oom", code: CODE }];
/// Maximum time of a query.
const QUERY_LIMIT: Duration = Duration::from_secs(1);

/// Arguments of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(Vec<Vec<u8>>);

impl Arguments {
    pub(super) fn add(&mut self, text: &str) -> &mut Arguments {
        self.0.push(text.as_bytes().to_vec());
        self
    }

    pub(super) fn number(&mut self, number: impl std::fmt::Display) -> &mut Arguments {
        self.0.push(number.to_string().into_bytes());
        self
    }

    pub(super) fn append(&mut self, other: Arguments) {
        self.0.extend(other.0);
    }
}

/// Returns an id as the scripts write it.
pub(super) fn padded(id: i64) -> String {
    format!("{id:016}")
}

/// The queues in Redis.
pub(super) struct Remote {
    client: Client,
    prefix: Vec<u8>,
    /// Name of this server.
    pub(super) server: String,
    call: u64,
    /// Time for the scripts: that of Redis, except in tests.
    clock: Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Redis,
    #[cfg(test)]
    Given(u64),
}

impl Clock {
    fn argument(self) -> Vec<u8> {
        match self {
            Clock::Redis => b"0".to_vec(),
            #[cfg(test)]
            Clock::Given(now_ms) => now_ms.to_string().into_bytes(),
        }
    }
}

impl Remote {
    pub(super) fn new(options: &SharedOptions, queues: &[QueueSettings]) -> Remote {
        let prefix = options.key();
        let key = prefix.clone();
        let limits: Vec<(String, usize)> =
            queues.iter().map(|of| (of.name.clone(), of.concurrency_per_key)).collect();
        let lease_ms = milliseconds(options.lease);
        let known = Mutex::new(Terms::default());
        let greeting = move |terms: &Terms| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if *known != *terms {
                warn(terms);
                known.clone_from(terms);
            }
            let mut join = Arguments::default();
            join.add("join").add("0").add(&terms.run).number(lease_ms).number(limits.len());
            for (queue, limit) in &limits {
                join.add(queue).number(limit);
            }
            Some(ScriptCall { script: 1, key: key.clone(), arguments: join.0 })
        };
        Remote {
            client: Client::new(options.redis.clone(), SCRIPTS.to_vec(), greeting),
            prefix,
            server: format!("{:016x}", fastrand::u64(..)),
            call: fastrand::u64(..1 << 40),
            clock: Clock::Redis,
        }
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)] // Tests set the time.
    pub(super) fn set_clock(&mut self, _: u64) {}

    #[cfg(test)]
    pub(super) fn set_clock(&mut self, now_ms: u64) {
        self.clock = Clock::Given(now_ms);
    }

    /// Returns the number of the next pushes. A repeated request has the same one.
    pub(super) fn next_call(&mut self) -> u64 {
        self.call += 1;
        self.call
    }

    pub(super) fn token(&self, lease: u64) -> String {
        format!("{}:{lease}", self.server)
    }

    pub(super) fn call(
        &mut self,
        operation: &str,
        arguments: Arguments,
        limit: Duration,
    ) -> Result<Reply, StoreError> {
        let mut replies = self.call_all(vec![(operation, arguments)], limit, true)?;
        replies.pop().unwrap_or(Err(StoreError::Foreign("call")))
    }

    /// Makes calls in one round trip. If they may be repeated, they are sent again after a failure
    /// of the connection.
    pub(super) fn call_all(
        &mut self,
        calls: Vec<(&str, Arguments)>,
        limit: Duration,
        is_repeatable: bool,
    ) -> Result<Vec<Result<Reply, StoreError>>, StoreError> {
        let call = |(operation, Arguments(of)): (&str, Arguments)| {
            let mut arguments = vec![operation.as_bytes().to_vec(), self.clock.argument()];
            arguments.extend(of);
            let script = usize::from(operation != "push");
            ScriptCall { script, key: self.prefix.clone(), arguments }
        };
        let calls: Vec<ScriptCall> = calls.into_iter().map(call).collect();
        let replies = self.client.run(&calls, limit, is_repeatable)?;
        Ok(replies.into_iter().map(|reply| reply.map_err(StoreError::Redis)).collect())
    }
}

/// Warns if jobs are not safe in this Redis.
fn warn(terms: &Terms) {
    if !terms.has_log {
        tracing::warn!(
            "Redis has no append-only file: a restart of Redis loses jobs\nhint: set `appendonly \
             yes`, and `appendfsync always` if no job may be lost at a loss of power"
        );
    }
    if !terms.eviction.is_empty() && terms.eviction != "noeviction" {
        tracing::warn!(
            policy = terms.eviction,
            "Redis may remove jobs at `maxmemory`\nhint: set `maxmemory-policy noeviction`"
        );
    }
}

impl Catalogue for Remote {
    fn dead(&mut self, queue: &str, page: &Page) -> Result<Vec<DeadJob>, StoreError> {
        let mut call = Arguments::default();
        call.add(queue).number(page.after).number(page.until).number(page.max);
        call.number(page.bytes_max);
        let reply = self.call("dead", call, QUERY_LIMIT)?;
        let jobs = reply.list().unwrap_or_default().iter();
        let jobs: Option<_> = jobs.map(|job| dead_job(job.list()?)).collect();
        jobs.ok_or(StoreError::Foreign("dead"))
    }

    fn ids(&mut self, stage: Stage, queue: &str, page: &Page) -> Result<Vec<Listed>, StoreError> {
        let set = match stage {
            Stage::Alive => "alive",
            Stage::Dead => "dead",
        };
        let mut call = Arguments::default();
        call.add(set).add(queue).number(page.after).number(page.until).number(page.max);
        let reply = self.call("ids", call, QUERY_LIMIT)?;
        let listed = |job: &Reply| {
            let [id, bytes, is_running] = job.list()? else { return None };
            let bytes = u64::try_from(bytes.number()?).ok()?;
            Some(Listed { id: id.number()?, bytes, is_running: is_running.number()? == 1 })
        };
        let jobs: Option<_> = reply.list().unwrap_or_default().iter().map(listed).collect();
        jobs.ok_or(StoreError::Foreign("ids"))
    }

    fn last(&mut self, _: Stage) -> Result<i64, StoreError> {
        let last = self.call("last", Arguments::default(), QUERY_LIMIT)?;
        last.number().ok_or(StoreError::Foreign("id"))
    }
}

fn dead_job(fields: &[Reply]) -> Option<DeadJob> {
    let [id, pushed, died, attempts, key, error, payload, class, place, parent, state] = fields
    else {
        return None;
    };
    let ms = |time: &Reply| u64::try_from(time.number()?).ok();
    Some(DeadJob {
        id: id.number()?,
        pushed_ms: ms(pushed)?,
        died_ms: ms(died)?,
        attempts: u32::try_from(attempts.number()?).ok()?,
        key: Some(key.text()?.to_owned()).filter(|key| !key.is_empty()),
        error: error.text()?.to_owned(),
        payload: payload.text()?.to_owned(),
        class: class.text()?.to_owned(),
        place: place.text()?.to_owned(),
        traceparent: parent.text()?.to_owned(),
        tracestate: state.text()?.to_owned(),
    })
}
