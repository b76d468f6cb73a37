//! The last runs, and a lease instead of the lock: in a Redis that several machines share.

use crate::record::Record;
use crate::run::RunResult;
use crate::store::{RunStore, StoreError};
use samovar_redis::{Client, Options, Reply, Script, ScriptCall};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Results of runs must be stored even at `maxmemory`.
const SCRIPT: Script = Script { flags: "allow-oom", code: include_str!("runs.lua") };
/// Maximum time of a request.
const LIMIT: Duration = Duration::from_millis(500);
/// The lease is extended after this part of its time.
const EXTENSIONS: u32 = 3;

/// A Redis that several machines share.
#[derive(Clone, Debug)]
pub struct SharedRuns {
    /// The Redis.
    pub redis: Options,
    /// Name in all keys.
    pub prefix: String,
    /// Time after which another server takes over.
    pub lease: Duration,
}

/// The runs in a Redis.
pub(crate) struct SharedStore {
    client: Client,
    place: String,
    prefix: Vec<u8>,
    server: Vec<u8>,
    lease: Duration,
    /// The lease ends at this time or later.
    held_until: Option<Instant>,
}

impl SharedStore {
    pub(crate) fn new(options: SharedRuns) -> SharedStore {
        let place = format!("Redis at {}, prefix `{}`", options.redis.address, options.prefix);
        SharedStore {
            client: Client::new(options.redis, vec![SCRIPT], |_| None),
            place,
            prefix: format!("{{{}}}", options.prefix).into_bytes(),
            server: format!("{:016x}", fastrand::u64(..)).into_bytes(),
            lease: options.lease,
            held_until: None,
        }
    }

    /// All operations can be repeated.
    fn call(&mut self, operation: &str, rest: Vec<Vec<u8>>) -> Result<Reply, StoreError> {
        let mut arguments = vec![operation.as_bytes().to_vec(), self.server.clone()];
        arguments.extend(rest);
        let call = ScriptCall { script: 0, key: self.prefix.clone(), arguments };
        let mut replies = self.client.run(&[call], LIMIT, true)?;
        Ok(replies.pop().unwrap_or(Ok(Reply::Nil))?)
    }
}

impl RunStore for SharedStore {
    fn lock(&mut self) -> Result<bool, StoreError> {
        // Before the request: the lease may begin with its arrival.
        let from = Instant::now();
        let lease_ms = self.lease.as_millis().to_string().into_bytes();
        let is_held = self.call("lock", vec![lease_ms])?.number() == Some(1);
        self.held_until = is_held.then(|| from + self.lease);
        Ok(is_held)
    }

    fn is_locked(&self) -> bool {
        self.held_until.is_some_and(|until| Instant::now() < until)
    }

    fn unlock(&mut self) {
        if self.held_until.take().is_some() {
            // Otherwise it ends with its time.
            let _ = self.call("unlock", Vec::new());
        }
    }

    fn load(&mut self) -> Result<HashMap<String, Record>, StoreError> {
        let reply = self.call("load", Vec::new())?;
        let runs: Option<_> = reply.list().unwrap_or_default().iter().map(record).collect();
        runs.ok_or(StoreError::Foreign)
    }

    fn save(&mut self, records: &[(&str, &Record)]) -> Result<(), StoreError> {
        let mut arguments: Vec<Vec<u8>> = Vec::new();
        for (name, record) in records {
            let time = |ms: u64| ms.to_string();
            let fields = [
                (*name).to_owned(),
                time(record.due_ms),
                time(record.started_ms),
                time(record.ended_ms),
                record.result.map_or_else(String::new, |result| result.name().to_owned()),
                record.detail.clone(),
                record.output.clone(),
                time(record.succeeded_ms),
            ];
            arguments.extend(fields.map(String::into_bytes));
        }
        if self.call("save", arguments)?.number() == Some(1) {
            return Ok(());
        }
        self.held_until = None;
        Err(StoreError::LeaseLost)
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn extension(&self) -> Option<Duration> {
        Some(self.lease / EXTENSIONS)
    }
}

fn record(of: &Reply) -> Option<(String, Record)> {
    let [name, due, started, ended, result, detail, output, succeeded] = of.list()? else {
        return None;
    };
    let ms = |time: &Reply| u64::try_from(time.number()?).ok();
    let result = result.text()?;
    let record = Record {
        due_ms: ms(due)?,
        started_ms: ms(started)?,
        ended_ms: ms(ended)?,
        result: RunResult::ALL.into_iter().find(|known| known.name() == result),
        detail: detail.text()?.to_owned(),
        output: output.text()?.to_owned(),
        succeeded_ms: ms(succeeded)?,
    };
    Some((name.text()?.to_owned(), record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_redis::{Address, Endpoint};
    use samovar_testkit::{Redis, eventually};

    fn store(redis: &Redis, lease: Duration) -> SharedStore {
        let address =
            Address { endpoint: Endpoint::Unix(redis.socket()), database: 0, user: String::new() };
        let limit = Duration::from_millis(200);
        let redis = Options {
            address,
            password: String::new(),
            roots: None,
            connect_limit: limit,
            wait_limit: limit,
        };
        SharedStore::new(SharedRuns { redis, prefix: "test".to_owned(), lease })
    }

    fn sample() -> Record {
        Record {
            due_ms: 1,
            started_ms: 2,
            ended_ms: 3,
            result: Some(RunResult::TimedOut),
            detail: "d".into(),
            output: "é\n".into(),
            succeeded_ms: 4,
        }
    }

    #[test]
    fn one_server_has_the_lease_and_stores_runs() {
        let redis = Redis::start();
        let hour = Duration::from_hours(1);
        let (mut first, mut second) = (store(&redis, hour), store(&redis, hour));
        assert!(first.lock().expect("reachable") && first.is_locked());
        assert!(!second.lock().expect("reachable") && !second.is_locked());
        assert!(first.lock().expect("reachable"), "extended");
        first.save(&[("a", &sample()), ("b", &Record::default())]).expect("stored");
        let refused = second.save(&[("a", &Record::default())]).expect_err("no lease");
        assert!(matches!(refused, StoreError::LeaseLost), "{refused}");
        let loaded = second.load().expect("readable");
        assert_eq!((&loaded["a"], &loaded["b"]), (&sample(), &Record::default()));
        first.unlock();
        assert!(second.lock().expect("reachable"), "given up");
    }

    #[test]
    fn lease_of_a_dead_server_ends() {
        let mut redis = Redis::durable();
        let (mut first, mut second) =
            (store(&redis, Duration::from_millis(300)), store(&redis, Duration::from_hours(1)));
        assert!(first.lock().expect("reachable"));
        redis.crash();
        assert!(second.lock().is_err());
        redis.start_again();
        eventually("the lease ends", || second.lock().ok().filter(|is_held| *is_held));
        assert!(!first.is_locked() && !first.lock().expect("reachable"));
    }
}
