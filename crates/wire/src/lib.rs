//! Messages of the control socket, defined once for both ends (server and commands) and for all
//! readers of a status, such as the admin listener's pages.
//!
//! A request is one line of plain words, which a person can type too. Its response is one line of
//! JSON. Fields that an older or newer server does not send are empty, so a `samovar` of another
//! version can still be used. This crate depends on no other crate of the server.
//!
//! | file | content |
//! |---|---|
//! | `status.rs` | state of the server |
//! | `counters.rs` | part of the status: counters of the front, each declared once |
//! | `resources.rs` | part of the status: kernel resources of the process |
//! | `shared.rs` | part of the status: memory that workers share |
//! | `health.rs` | health problems found in a status |
//! | `figures.rs` | request statistics |
//! | `facts.rs` | data that `samovar doctor` checks |
//! | `capacity.rs` | use of cores and memory, and an estimate of the rest |
//! | `profile.rs` | profiles of the workers |
//! | `calls.rs` | call graphs of requests |
//! | `boot.rs` | cost of the boot |
//! | `includes.rs` | files that requests include |
//! | `queues.rs` | queues of jobs |
//! | `schedules.rs` | schedules |
//! | `record.rs` | recorded requests and their replays |
//! | `traceparent.rs` | a span and its trace, in the header that carries them |
//! | `upgrade.rs` | replacement of the server by a new process |
//! | `rejection.rs` | reasons why a request is invalid |

mod boot;
mod calls;
mod canary;
mod capacity;
mod counters;
mod facts;
mod figures;
mod finding;
mod health;
mod includes;
mod php;
mod profile;
mod queues;
mod record;
mod rejection;
mod resources;
mod schedules;
mod shared;
mod status;
mod traceparent;
mod upgrade;
mod upstreams;

pub use boot::BootResponse;
pub use calls::{CallsQuestion, CallsResponse};
pub use canary::{
    CANARY_STEPS_MAX, CanaryAction, CanaryAssignment, CanaryBrief, CanaryError, CanaryQuestion,
    CanaryResponse, CanaryRoute, CanaryState, CanaryStatus,
};
pub use capacity::CapacityStatus;
pub use counters::{CounterKind, CounterMetric, PoolCounters, ServerCounters};
pub use facts::{
    FactsResponse, MachineFacts, PhpFacts, ROUTE_STATEMENTS_MAX, ROUTE_WAITS_MAX, RouteFacts,
    SettingsFacts, StatementFacts,
};
pub use figures::{Figures, ROUTES_MAX, RouteLine, WAITS_MAX, WaitLine};
pub use finding::{About, Health, HealthProblem, Severity};
pub use health::{SAVES_MAX, dear, judge, judged};
pub use includes::{IncludesQuestion, IncludesResponse};
pub use php::{MessagesStatus, OpcacheStatus};
pub use profile::{Against, ProfileQuestion, ProfileResponse, ProfileSide};
pub use queues::{
    DeadJob, QueueAction, QueueMinute, QueueQuestion, QueueResponse, QueueStatus, QueueTotals,
};
pub use record::{
    RecordAction, RecordQuestion, RecordResponse, RecordedDetails, RecordedRequest,
    RecordingStatus, ReplayNetwork, ReplayQuestion, ReplayResponse, ResponseCopy,
};
pub use rejection::Misunderstood;
pub use resources::{Descriptors, Resources};
pub use schedules::{
    ScheduleAction, ScheduleQuestion, ScheduleResponse, ScheduleResults, ScheduleStatus,
};
pub use shared::{SharedBreaker, SharedCache, SharedObject, SharedStatus};
pub use status::{
    Application, CertificateStatus, ConsoleStatus, EngineStatus, FrontStatus, GrowthStatus,
    ImageFinding, ImageStatus, LinkingStatus, PoolStatus, ProfileStatus, RecentStatus,
    SavingStatus, ScalingStatus, Status, StorageStatus, WorkerStatus,
};
pub use traceparent::{TRACEPARENT_BYTES, TraceFlags, Traceparent};
pub use upgrade::{UpgradeOptions, UpgradeResponse};
pub use upstreams::{UpstreamAddress, UpstreamError, UpstreamStatus, UpstreamTally};

use serde::{Deserialize, Serialize};
use std::fmt;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Queries the state of the server; the response is a [`Status`].
    Status,
    /// Queries the request statistics; the response is [`Figures`].
    Figures,
    /// Queries the data that `samovar doctor` checks; the response is a [`FactsResponse`].
    Facts,
    /// Boots the application again. The response, a [`ReloadResponse`], is sent when the reload has
    /// ended.
    Reload(ReloadOptions),
    /// Replaces this server by a new process. The response, an [`UpgradeResponse`], is sent when
    /// the upgrade has ended.
    Upgrade(UpgradeOptions),
    /// Queries profiles of the workers; the response is a [`ProfileResponse`].
    Profile(Box<ProfileQuestion>),
    /// Queries call graphs of requests; the response is a [`CallsResponse`].
    Calls(Box<CallsQuestion>),
    /// Queries the cost of the boot; the response is a [`BootResponse`].
    Boot {
        /// Pool; `None`: the default pool.
        pool: Option<String>,
    },
    /// Queries the files that requests include; the response is an [`IncludesResponse`].
    Includes(Box<IncludesQuestion>),
    /// Queries or changes queues of jobs; the response is a [`QueueResponse`].
    Queue(Box<QueueQuestion>),
    /// Queries schedules, or runs one; the response is a [`ScheduleResponse`].
    Schedule(Box<ScheduleQuestion>),
    /// Queries or changes a canary; the response is a [`CanaryResponse`].
    Canary(Box<CanaryQuestion>),
    /// Queries or changes recorded requests; the response is a [`RecordResponse`].
    Record(Box<RecordQuestion>),
    /// Runs a recorded request again; the response is a [`ReplayResponse`].
    Replay(Box<ReplayQuestion>),
    /// Drains the server and ends it; the response is [`Stopping`].
    Stop,
}

/// Options of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadOptions {
    /// Whether the new generation takes over as soon as it has booted, without further checks.
    pub force: bool,
    /// Probe to use instead of `reload_probe`.
    pub probe: Option<String>,
    /// Reloads only this pool.
    pub pool: Option<String>,
    /// Label of the release, instead of the one in the settings.
    pub release: Option<String>,
}

impl fmt::Display for Request {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Status => to.write_str("status"),
            Request::Figures => to.write_str("figures"),
            Request::Facts => to.write_str("facts"),
            Request::Boot { pool: None } => to.write_str("boot"),
            Request::Boot { pool: Some(name) } => write!(to, "boot pool={name}"),
            Request::Stop => to.write_str("stop"),
            Request::Profile(question) => write!(to, "profile {}", line(question)),
            Request::Calls(question) => write!(to, "calls {}", line(question)),
            Request::Includes(question) => write!(to, "includes {}", line(question)),
            Request::Queue(question) => write!(to, "queue {}", line(question)),
            Request::Schedule(question) => write!(to, "schedule {}", line(question)),
            Request::Canary(question) => write!(to, "canary {}", line(question)),
            Request::Record(question) => write!(to, "record {}", line(question)),
            Request::Replay(question) => write!(to, "replay {}", line(question)),
            Request::Upgrade(options) => write!(to, "upgrade {}", line(options)),
            Request::Reload(ReloadOptions { force, probe, pool, release }) => {
                to.write_str("reload")?;
                if *force {
                    to.write_str(" force")?;
                }
                if let Some(name) = pool {
                    write!(to, " pool={name}")?;
                }
                if let Some(label) = release {
                    write!(to, " release={label}")?;
                }
                probe.as_ref().map_or(Ok(()), |target| write!(to, " probe={target}"))
            }
        }
    }
}

impl std::str::FromStr for Request {
    type Err = Misunderstood;

    fn from_str(line: &str) -> Result<Request, Misunderstood> {
        let mut words = line.split_ascii_whitespace();
        let command = words.next().unwrap_or_default();
        let is_alone = words.clone().next().is_none();
        match command {
            "status" if is_alone => Ok(Request::Status),
            "figures" if is_alone => Ok(Request::Figures),
            "facts" if is_alone => Ok(Request::Facts),
            "boot" => boot(words),
            "stop" if is_alone => Ok(Request::Stop),
            "profile" => ProfileQuestion::parse(line.trim_start()).map(Request::Profile),
            "calls" => CallsQuestion::parse(line.trim_start()).map(Request::Calls),
            "includes" => IncludesQuestion::parse(line.trim_start()).map(Request::Includes),
            "queue" => QueueQuestion::parse(line.trim_start()).map(Request::Queue),
            "schedule" => ScheduleQuestion::parse(line.trim_start()).map(Request::Schedule),
            "canary" => CanaryQuestion::parse(line.trim_start()).map(Request::Canary),
            "record" => RecordQuestion::parse(line.trim_start()).map(Request::Record),
            "replay" => ReplayQuestion::parse(line.trim_start()).map(Request::Replay),
            "upgrade" => UpgradeOptions::parse(line.trim_start()).map(Request::Upgrade),
            "reload" => ReloadOptions::parse(words).map(Request::Reload),
            _ => Err(Misunderstood::Command),
        }
    }
}

/// Parses the options of `boot`: none, or `pool=export`.
fn boot<'a>(words: impl Iterator<Item = &'a str>) -> Result<Request, Misunderstood> {
    let mut pool = None;
    for word in words {
        match word.split_once('=') {
            Some(("pool", name)) if !name.is_empty() => pool = Some(name.to_owned()),
            _ => return Err(Misunderstood::Command),
        }
    }
    Ok(Request::Boot { pool })
}

impl ReloadOptions {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<ReloadOptions, Misunderstood> {
        let mut options = ReloadOptions::default();
        for word in words {
            match word.split_once('=') {
                None if word == "force" => options.force = true,
                Some(("probe", target)) if target.starts_with('/') => {
                    options.probe = Some(target.to_owned());
                }
                Some(("pool", name)) if !name.is_empty() => options.pool = Some(name.to_owned()),
                Some(("release", label)) if !label.is_empty() => {
                    options.release = Some(label.to_owned());
                }
                _ => return Err(Misunderstood::ReloadOptions),
            }
        }
        Ok(options)
    }
}

/// JSON output of `samovar reload`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadResponse {
    /// Generation that serves now; 0: there is no new one.
    pub generation: u64,
    /// Label of its release; empty: none was given, or there are several pools.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Time from the command to the takeover.
    pub milliseconds: u64,
    /// Keys of changed settings that only a restart can apply.
    pub needs_restart: Vec<String>,
    /// Keys that apply to all pools and take effect only when all pools are reloaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_all: Vec<String>,
    /// Reason why there is no new generation; with several pools, the reasons of those that failed.
    pub error: Option<String>,
    /// Result of each pool that was to be reloaded; empty if the server has one pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolReloaded>,
}

/// Result of one pool's reload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolReloaded {
    /// Name of the pool.
    pub name: String,
    /// Generation that serves now; 0: there is no new one.
    pub generation: u64,
    /// Label of its release; empty: none was given.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Reason why there is no new generation.
    pub error: Option<String>,
}

impl ReloadResponse {
    /// Returns the response for a reload that failed for this reason.
    pub fn refused(why: String) -> ReloadResponse {
        ReloadResponse { error: Some(why), ..ReloadResponse::default() }
    }
}

/// Response to `stop`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stopping {
    /// Whether the server drains.
    pub stopping: bool,
}

/// Response to a line that is not a valid command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Description of the error.
    pub error: String,
}

/// Returns a response as one line of JSON. Numbers, strings and lists always serialize.
pub fn line(response: &impl Serialize) -> String {
    serde_json::to_string(response).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_written_as_line_parses_to_same_request() {
        let mut requests = vec![Request::Status, Request::Figures, Request::Facts, Request::Stop];
        requests.extend([None, Some("api".to_owned())].map(|pool| Request::Boot { pool }));
        for against in [None, Some(Against::Reload), Some(Against::Earlier { seconds: 60 })] {
            let route = Some("index.php /a b\n{n}".to_owned());
            let question = ProfileQuestion { route, to: 7, against, ..ProfileQuestion::default() };
            requests.push(Request::Profile(Box::new(question)));
        }
        let (route, day) = (Some("a b\n".to_owned()), Some(3));
        requests.push(Request::Calls(Box::new(CallsQuestion {
            pool: Some("api".to_owned()),
            route,
            day,
            sign_s: None,
        })));
        let route = Some("a {b}\n".to_owned());
        let question = IncludesQuestion { pool: Some("api".to_owned()), route };
        requests.push(Request::Includes(Box::new(question)));
        assert!(matches!("includes".parse(), Ok(Request::Includes(_))), "a person asks so");
        requests.push(Request::Queue(Box::new(QueueQuestion {
            action: QueueAction::Retry,
            queue: "emails".to_owned(),
            ids: vec![7],
            after: 3,
            until: 9,
            limit: 20,
            to: "mails".to_owned(),
            dead: true,
        })));
        requests.push(Request::Schedule(Box::new(ScheduleQuestion {
            action: ScheduleAction::Run,
            schedule: "report".to_owned(),
        })));
        assert!(matches!("schedule".parse(), Ok(Request::Schedule(_))), "a person asks so");
        assert!(matches!("queue".parse(), Ok(Request::Queue(_))), "a person asks so");
        assert!(matches!("profile".parse(), Ok(Request::Profile(_))), "a person asks so");
        for action in [RecordAction::List, RecordAction::Start, RecordAction::Remove] {
            let path = Some("/a b*\n".to_owned());
            let question =
                RecordQuestion { action, path, id: Some(7), ..RecordQuestion::default() };
            requests.push(Request::Record(Box::new(question)));
        }
        for network in [ReplayNetwork::Auto, ReplayNetwork::Refuse] {
            let xdebug = Some("127.0.0.1:9003".to_owned());
            let question = ReplayQuestion { id: 3, network, xdebug, trace: true, profile: true };
            requests.push(Request::Replay(Box::new(question)));
        }
        assert!(matches!("record".parse(), Ok(Request::Record(_))), "a person asks so");
        for binary in [None, Some("/opt/samovar 2/bin/samovar".into())] {
            requests.push(Request::Upgrade(UpgradeOptions { binary }));
        }
        for action in [CanaryAction::Status, CanaryAction::Start, CanaryAction::Abort] {
            let root = Some("/srv/a b".into());
            let shares_ppm = vec![10_000, 1_000_000];
            let question = CanaryQuestion { action, shares_ppm, root, ..CanaryQuestion::default() };
            requests.push(Request::Canary(Box::new(question)));
        }
        assert!(matches!("canary".parse(), Ok(Request::Canary(_))), "a person asks so");
        assert!(matches!("upgrade".parse(), Ok(Request::Upgrade(_))), "a person asks so");
        assert!(matches!("calls".parse(), Ok(Request::Calls(_))), "and so");
        for force in [false, true] {
            for probe in [None, Some("/"), Some("/health?full=1")] {
                let probe = probe.map(str::to_owned);
                for pool in [None, Some("api".to_owned())] {
                    let probe = probe.clone();
                    for release in [None, Some("v1.2+3".to_owned())] {
                        let (probe, pool) = (probe.clone(), pool.clone());
                        let options = ReloadOptions { force, probe, pool, release };
                        requests.push(Request::Reload(options));
                    }
                }
            }
        }
        for request in requests {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
    }

    #[test]
    fn invalid_line_is_rejected_with_its_reason() {
        for options in ["loudly", "probe=health", "probe", "force=1", "pool", "pool="] {
            let line = format!("reload {options}");
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::ReloadOptions), "{line}");
        }
        for line in ["profile 7", "profile {", "profile {} x"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Profile), "{line}");
        }
        for line in ["queue emails", "queue {"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Queue), "{line}");
        }
        for line in ["schedule report", "schedule {"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Schedule), "{line}");
        }
        for line in ["canary now", "canary {", "canary {\"action\":\"sing\"}"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Canary), "{line}");
        }
        for line in ["record now", "record {", "record {\"action\":\"sing\"}"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Record), "{line}");
        }
        for line in ["replay", "replay 3", "replay {\"id\":-1}"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Replay), "{line}");
        }
        for line in ["upgrade now", "upgrade {"] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Upgrade), "{line}");
        }
        for line in ["", "dance", "status stop", "stop it", "boot now", "boot pool="] {
            assert_eq!(line.parse::<Request>(), Err(Misunderstood::Command), "{line}");
        }
    }
}
