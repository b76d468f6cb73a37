//! One round: both servers start, get the same requests in turn, and end.

use super::change;
use super::log::{RequestLog, Served};
use super::options::TryOptions;
use super::requests::Sequence;
use super::responses::Responses;
use crate::control_client::{self, understand};
use crate::plan::verify::targets::Requests;
use crate::trial::response::TrialResponse;
use crate::trial::server::{self, Server};
use crate::trial::visitor::Visitor;
use crate::trial::{memory, model};
use anyhow::{Context, Result, bail};
use samovar_plan::experiment::{Measured, Pair, Request, Side};
use samovar_wire::FactsResponse;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Maximum number of workers of each server: an application may send a request to itself.
const WORKERS_MAX: usize = 2;
/// Requests that fill the caches of each server, at least.
const WARM_UP: usize = 20;
/// Time after which neither the warm-up nor the comparison of responses begins another request: a
/// share of the time limit, within these bounds.
const PASS_SHARE: u32 = 40;
const PASS_MIN: Duration = Duration::from_millis(700);
const PASS_MAX: Duration = Duration::from_secs(4);
/// Requests of a block to each server, twice: as many as there are, within these bounds.
const BLOCK: std::ops::RangeInclusive<usize> = 5..=25;
/// Minimum number of blocks.
const BLOCKS_MIN: u32 = 4;
/// Maximum number of blocks.
const BLOCKS_MAX: u32 = 10_000;
/// Failed requests of one server after which the experiment ends.
const FAILURES_MAX: u64 = 10;
/// Maximum number of messages about a directive.
const MESSAGES_MAX: usize = 2;
const JIT: &str = "opcache.jit";
const JIT_BUFFER: &str = "opcache.jit_buffer_size";
const SIDES: [Side; 2] = [Side::Before, Side::After];
/// Start of the warning of a worker about a directive.
const UNKNOWN: &str = "no loaded extension knows the directive `";

/// State of an experiment from one round to the next.
pub(super) struct Rounds<'a> {
    asked: &'a TryOptions,
    requests: &'a Requests,
    sequence: Sequence,
    pub(super) responses: Responses<'a>,
    /// Route of each request, as the server named it last.
    routes: Vec<String>,
    /// Number of finished rounds.
    number: usize,
    /// Requests to both servers, those of the warm-up included.
    pub(super) sent: u64,
    failures: [u64; 2],
    pub(super) notes: Vec<String>,
    /// Length of all measurements.
    pub(super) measured: Duration,
}

/// A running server.
struct Running {
    server: Server,
    log: RequestLog,
    visitor: Visitor,
    boot_ms: f64,
    sent: Vec<Sent>,
}

/// A measured request.
struct Sent {
    at: usize,
    block: u32,
    id: String,
    wall: Duration,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(asked: &'a TryOptions, requests: &'a Requests) -> Rounds<'a> {
        Rounds {
            asked,
            requests,
            sequence: Sequence::new(requests),
            responses: Responses::new(requests.all.len(), &asked.masks),
            routes: vec![String::new(); requests.all.len()],
            number: 0,
            sent: 0,
            failures: [0, 0],
            notes: Vec::new(),
            measured: Duration::ZERO,
        }
    }

    /// Whether the server with the change fails too often for further rounds.
    pub(super) fn has_failed(&self) -> bool {
        self.failures[Side::After as usize] >= FAILURES_MAX
    }

    /// Returns route and request of an index.
    pub(super) fn name(&self, at: usize) -> (String, String) {
        let target = &self.requests.all[at].target;
        (self.routes[at].clone(), format!("{} {}", target.method, target.path))
    }

    /// Runs a round whose measurement takes about `time`.
    pub(super) fn run(&mut self, time: Duration) -> Result<Measured> {
        // The first server to start fills the caches of the machine for the other one.
        let mut both = if self.number.is_multiple_of(2) {
            let before = self.start(Side::Before)?;
            [before, self.start(Side::After)?]
        } else {
            let after = self.start(Side::After)?;
            [self.start(Side::Before)?, after]
        };
        self.warm_up(&mut both)?;
        for running in &both {
            model::settle(&running.server)?;
        }
        self.check_directives(&both)?;
        self.compare(&mut both)?;
        self.measure(&mut both, time)?;
        self.number += 1;
        self.finish(both)
    }

    fn start(&self, side: Side) -> Result<Running> {
        let (name, flags) = match side {
            Side::Before => ("try-a", &self.asked.flags_before),
            Side::After => ("try-b", &self.asked.flags_after),
        };
        let begun = Instant::now();
        let workers = self.asked.workers.min(WORKERS_MAX);
        let started = Server::start_measured(name, flags, workers, &[]);
        let (server, output) = started.with_context(|| match side {
            Side::Before => "without the change",
            Side::After => "with the change",
        })?;
        let boot_ms = begun.elapsed().as_secs_f64() * 1e3;
        let log = RequestLog::follow(output)?;
        Ok(Running { server, log, visitor: Visitor::default(), boot_ms, sent: Vec::new() })
    }

    /// Sends a request. A failure is counted.
    fn send(
        &mut self,
        at: usize,
        side: Side,
        running: &mut Running,
    ) -> Result<Option<(TrialResponse, Duration)>> {
        self.sent += 1;
        let id = id(self.sent);
        let target = &self.requests.all[at].target;
        match running.visitor.send(running.server.address(), target, &id) {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                running.server.must_live()?;
                let failures = &mut self.failures[side as usize];
                *failures += 1;
                self.responses.fail(side, &error);
                if side == Side::Before && *failures >= FAILURES_MAX {
                    bail!(error.context(format!(
                        "{FAILURES_MAX} requests fail without the change, the last one to `{}`",
                        target.path
                    )));
                }
                Ok(None)
            }
        }
    }

    /// Indices of all requests. Each round begins with another one, so that all have their turn.
    fn pass(&self) -> impl Iterator<Item = usize> + use<> {
        let count = self.requests.all.len();
        let begin = self.number * count / 7 % count;
        (begin..count).chain(0..begin)
    }

    fn pass_limit(&self) -> Duration {
        (self.asked.time / PASS_SHARE).clamp(PASS_MIN, PASS_MAX)
    }

    /// Fills the caches of both servers, and boots an application whose checkpoint is found by a
    /// request.
    fn warm_up(&mut self, both: &mut [Running; 2]) -> Result<()> {
        let (begun, limit) = (Instant::now(), self.pass_limit());
        let times = WARM_UP.div_ceil(self.requests.all.len()).max(1);
        for at in (0..times).flat_map(|_| self.pass()).collect::<Vec<_>>() {
            for side in SIDES {
                self.send(at, side, &mut both[side as usize])?;
            }
            if begun.elapsed() > limit || self.has_failed() {
                break;
            }
        }
        Ok(())
    }

    /// Compares the responses to each request: of the server without the change, twice of the one
    /// with it, and of the first one again. So a clock or a counter is between two known values.
    fn compare(&mut self, both: &mut [Running; 2]) -> Result<()> {
        let (begun, limit) = (Instant::now(), self.pass_limit());
        for at in self.pass() {
            for side in [Side::Before, Side::After, Side::After, Side::Before] {
                let running = &mut both[side as usize];
                if let Some((response, _)) = self.send(at, side, running)? {
                    let port = running.server.address().port();
                    self.responses.add(at, side, response, port);
                }
            }
            if begun.elapsed() > limit || self.has_failed() {
                break;
            }
        }
        Ok(())
    }

    fn measure(&mut self, both: &mut [Running; 2], time: Duration) -> Result<()> {
        let begun = Instant::now();
        let length = self.requests.all.len().clamp(*BLOCK.start(), *BLOCK.end());
        for block in 0..BLOCKS_MAX {
            let is_over = begun.elapsed() > time || self.sent >= self.asked.requests_max;
            if self.has_failed() || block >= BLOCKS_MIN && is_over {
                break;
            }
            let chosen: Vec<usize> = (0..length).map(|_| self.sequence.next()).collect();
            let (first, second) = match (self.number as u32 + block) % 2 {
                0 => (Side::Before, Side::After),
                _ => (Side::After, Side::Before),
            };
            for side in [first, second, second, first] {
                for at in &chosen {
                    let running = &mut both[side as usize];
                    if let Some((response, wall)) = self.send(*at, side, running)? {
                        self.responses.add_status(*at, side, response.status);
                        let id = id(self.sent);
                        running.sent.push(Sent { at: *at, block, id, wall });
                    }
                }
            }
            for running in both.iter() {
                running.server.must_live()?;
            }
        }
        self.measured += begun.elapsed();
        Ok(())
    }

    /// A directive that PHP does not know has no effect, so there is nothing to measure. Other
    /// messages about a directive, and a value that is the same without the change, are noted.
    fn check_directives(&mut self, both: &[Running; 2]) -> Result<()> {
        if self.number > 0 {
            return Ok(());
        }
        let log = both[1].server.log();
        for (name, _) in &self.asked.changes.directives {
            let warning = format!("{UNKNOWN}{name}`");
            if log.iter().any(|line| line.contains(&warning)) {
                bail!("{}", change::unknown(name));
            }
            let messages = log.iter().filter(|line| line.contains(name.as_str()));
            self.notes.extend(messages.take(MESSAGES_MAX).map(|line| format!("log: {line}")));
        }
        let [before, after] = [directives(&both[0].server)?, directives(&both[1].server)?];
        for (name, _) in &self.asked.changes.directives {
            if let Some(value) = after.get(name).filter(|value| before.get(name) == Some(value)) {
                self.notes.push(format!("`{name}` is `{value}` without the change, too"));
            }
        }
        let is_jit_tried = self.asked.changes.directives.iter().any(|(name, _)| name == JIT);
        if is_jit_tried && after.get(JIT_BUFFER).is_some_and(|size| size.trim() == "0") {
            self.notes.push(format!("`{JIT}` has no effect: `{JIT_BUFFER}` is 0"));
        }
        Ok(())
    }

    /// Ends both servers, and joins their figures with the sent requests.
    fn finish(&mut self, both: [Running; 2]) -> Result<Measured> {
        let boot_ms = Pair { before: both[0].boot_ms, after: both[1].boot_ms };
        let bytes = |running: &Running| -> Result<f64> {
            let first = server::workers(&running.server)?.first().copied();
            #[allow(clippy::cast_precision_loss)] // Far below 2^52.
            Ok(first.map_or(0, memory::private_bytes) as f64)
        };
        let worker_bytes = Pair { before: bytes(&both[0])?, after: bytes(&both[1])? };
        let mut requests = Vec::new();
        for (side, running) in SIDES.into_iter().zip(both) {
            let Running { server, log, sent, .. } = running;
            drop(server);
            self.join(side, sent, &log.finish(), &mut requests);
        }
        Ok(Measured { requests, boot_ms, worker_bytes })
    }

    fn join(
        &mut self,
        side: Side,
        sent: Vec<Sent>,
        log: &HashMap<String, Served>,
        requests: &mut Vec<Request>,
    ) {
        for one in sent {
            let Some(served) = log.get(&one.id) else { continue };
            let path = || self.requests.all[one.at].target.path.clone();
            let route = if served.route.is_empty() { path() } else { served.route.clone() };
            if side == Side::Before || self.routes[one.at].is_empty() {
                self.routes[one.at].clone_from(&route);
            }
            requests.push(Request {
                // Both servers must agree on the name: the change may be another release.
                route: self.routes[one.at].clone(),
                side,
                block: one.block,
                cpu_us: served.cpu_ms.map(|ms| ms * 1e3),
                wall_us: one.wall.as_secs_f64() * 1e6,
            });
        }
    }
}

/// Id of a request: the server's log names it, also if the application responds with its own.
fn id(number: u64) -> String {
    format!("samovar-try-{number:016x}")
}

/// Returns the values of those directives of a server that it reports.
fn directives(server: &Server) -> Result<BTreeMap<String, String>> {
    let question = samovar_wire::Request::Facts;
    let line = control_client::ask(server.control(), &question, control_client::RESPONSE_LIMIT)?;
    let facts: FactsResponse = understand(&line)?;
    Ok(facts.php.into_iter().next().map(|php| php.directives).unwrap_or_default())
}
