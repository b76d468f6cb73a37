//! An invented shop: its server, and its figures of one day.

// Invented figures are computed as floats and are never negative.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]

use crate::called;
use samovar_admin::Host;
use samovar_insight::export::exposition::Exposition;
use samovar_insight::store::{Event, EventKind, Minute, Store, StoreLimits};
use samovar_insight::{
    Aggregate, Batch, Boot, Entry, ErrorKind, Finished, HistoryOptions, Insight, Limits, Model,
    Numbers, Release, ReportedError, Wait, WaitKind, Witness as _, intake,
};
use samovar_profile::calls::{Calls, Selected};
use samovar_profile::loads::Explained;
use samovar_profile::{At, Profiles, Sample};
use samovar_spy::profile::Weight;
use samovar_spy::{Activity, Frame, Function};
use samovar_wire::{CanaryStatus, DeadJob, QueueResponse, Status};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

const MS: u64 = 1_000_000;
/// Minutes of a day.
pub(crate) const MINUTES: u64 = 24 * 60;
const PER_SECOND: u64 = 9;
const DAY_S: u64 = 86_400;
const AFTERNOON_S: u64 = 15 * 3_600;
const LIMITS: Limits = Limits { routes_max: 100, slow_ns: 1_000 * MS };

/// Route: (name, path, share of requests, CPU ms, PostgreSQL ms, other wait, its ms).
type Route = (&'static str, &'static str, u64, f64, f64, Option<(WaitKind, &'static str)>, f64);

const ROUTES: [Route; 11] = [
    ("shop_show", "/p/1042-copper-kettle", 30, 7.0, 11.0, None, 0.0),
    (
        "shop_list",
        "/c/kettles",
        22,
        12.0,
        16.0,
        Some((WaitKind::Unix, "/run/redis/redis.sock")),
        0.6,
    ),
    ("home", "/", 16, 5.0, 3.0, Some((WaitKind::Unix, "/run/redis/redis.sock")), 0.4),
    ("search", "/search", 9, 9.0, 4.0, Some((WaitKind::Tcp, "10.0.0.8:9200")), 38.0),
    (
        "cart_show",
        "/cart",
        8,
        6.0,
        7.0,
        Some((WaitKind::Lock, "/var/lib/php/sessions/sess_9f2c")),
        2.0,
    ),
    (
        "checkout_pay",
        "/checkout/pay",
        2,
        14.0,
        22.0,
        Some((WaitKind::Tcp, "192.0.2.44:443")),
        240.0,
    ),
    ("api_stock", "/api/stock", 7, 1.2, 1.8, None, 0.0),
    ("account_orders", "/account/orders", 3, 8.0, 46.0, None, 0.0),
    (
        "admin_report",
        "/admin/report",
        1,
        130.0,
        380.0,
        Some((WaitKind::File, "/srv/shop/var/report.csv")),
        9.0,
    ),
    ("index.php /p/{n}/reviews", "/p/1042/reviews", 4, 5.0, 9.0, None, 0.0),
    ("/feed.xml", "/feed.xml", 1, 3.0, 6.0, Some((WaitKind::Sleep, "")), 4.0),
];

/// Random numbers by xorshift64; the seed is fixed, so each run invents the same day.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number around one, with a long tail to the right.
    fn about(&mut self) -> f64 {
        let bell = (0..6).map(|_| self.roll()).sum::<f64>() / 3.0 - 1.0;
        let tail = if self.roll() > 0.985 { 3.0 + 6.0 * self.roll() } else { 1.0 };
        (bell * 1.1).exp() * tail
    }
}

/// Figures of the shop.
pub(crate) struct Shop {
    insight: Arc<Insight>,
    dice: Mutex<(Dice, u64)>,
}

impl Shop {
    /// Invents the last `minutes`, at most a day, in memory and in a history at `path`.
    pub(crate) fn open(path: &Path, minutes: u64) -> Result<Shop, Box<dyn std::error::Error>> {
        let (front, outlet) = intake();
        // Figures are added directly. The channel must stay open as long as the program runs.
        std::mem::forget(front);
        let limits = StoreLimits { bytes_max: 256 << 20, days_max: 30 };
        let (mut store, _) = Store::open(path, limits)?;
        let mut dice = (Dice(0x9e37_79b9_7f4a_7c15), 0);
        let mut figures = Aggregate::new(LIMITS);
        let now = samovar_insight::now();
        let end = now - now % 60;
        for minute in MINUTES - minutes..MINUTES {
            let at = end - (MINUTES - minute) * 60;
            // The last quarter of an hour is displayed by the second.
            let is_close = MINUTES - minute <= 17;
            let (pieces, requests) = if is_close { (60, PER_SECOND) } else { (1, 60 * PER_SECOND) };
            for piece in 0..pieces {
                figures.take(&requests_of(&mut dice, at + piece, requests), at + piece);
            }
            let event =
                |(kind, text): (EventKind, &str)| Event { at: at + 20, kind, text: text.into() };
            let events = event_at(minute).map(event).into_iter().collect();
            let happened = Minute { at, ..Minute::default() };
            let releases = release_at(minute, at + 20).into_iter().collect();
            store.put(&Minute {
                events,
                releases,
                ..figures.close_minute(at + 60).unwrap_or(happened)
            })?;
        }
        let mut second = end;
        while second < samovar_insight::now() {
            figures.take(&requests_of(&mut dice, second, PER_SECOND), second);
            second += 1;
        }
        let history = HistoryOptions { path: path.to_owned(), limits, trouble: Box::new(|_| ()) };
        let insight = Arc::new(Insight::start(outlet, LIMITS, Some(history))?);
        *insight.figures() = figures;
        Ok(Shop { insight, dice: Mutex::new(dice) })
    }

    pub(crate) fn insight(&self) -> Arc<Insight> {
        Arc::clone(&self.insight)
    }

    /// Adds the requests of one second.
    #[allow(dead_code, reason = "the test uses only existing data")]
    pub(crate) fn second(&self, now: u64) {
        let mut dice = self.dice.lock().expect("no panic while it is locked");
        self.insight.figures().take(&requests_of(&mut dice, now, PER_SECOND), now);
    }
}

/// Returns the requests of a period, at most `requests`: more by day than by night. The time of day
/// is always three in the afternoon, so the pages do not depend on the real time.
fn requests_of(dice: &mut (Dice, u64), at: u64, requests: u64) -> Batch {
    let mut batch = Batch::default();
    let age = samovar_insight::now().saturating_sub(at) % DAY_S;
    let hour = ((AFTERNOON_S + DAY_S - age) % DAY_S) as f64 / DAY_S as f64 * std::f64::consts::TAU;
    let load = 0.6 - 0.4 * hour.cos();
    let all = (requests as f64 * load * (0.7 + 0.6 * dice.0.roll())).round() as u64;
    for _ in 0..all {
        dice.1 += 1;
        let n = dice.1;
        request(&mut dice.0, n, at, &mut batch);
    }
    batch
}

/// Returns the release that began in a minute.
fn release_at(minute: u64, at: u64) -> Option<Release> {
    let (generation, label) = match MINUTES - minute {
        1_300 => (1, "v2.3.0"),
        640 => (2, "v2.4.0"),
        70 => (2, "v2.4.1"),
        9 => (3, "v2.5.0-rc.1+8c1f2e0"),
        _ => return None,
    };
    Some(Release { at, pool: String::new(), generation, label: label.into() })
}

fn event_at(minute: u64) -> Option<(EventKind, &'static str)> {
    match MINUTES - minute {
        1_300 => Some((EventKind::Start, "samovar 0.1.0")),
        640 => Some((EventKind::Reload, "generation 2 took over from generation 1 in 840 ms")),
        410 => Some((EventKind::Crash, "worker 4117 of generation 2 died: segmentation fault")),
        409 => Some((EventKind::Limit, "limits.queue_max reached: 12 requests rejected")),
        48 => Some((
            EventKind::ReloadFailed,
            "generation 3 does not boot: Class \"App\\Tax\" not found",
        )),
        9 => Some((EventKind::Reload, "generation 3 took over from generation 2 in 912 ms")),
        _ => None,
    }
}

fn route(dice: &mut Dice) -> &'static Route {
    let all: u64 = ROUTES.iter().map(|route| route.2).sum();
    let mut left = (dice.roll() * all as f64) as u64;
    for route in &ROUTES {
        if left < route.2 {
            return route;
        }
        left -= route.2;
    }
    &ROUTES[0]
}

fn request(dice: &mut Dice, n: u64, at: u64, batch: &mut Batch) {
    let (name, path, _, cpu, database, other, more) = route(dice);
    let now = samovar_insight::now();
    // Since the last reload the lists are slower: an index is missing.
    let worse = if *name == "shop_list" && at + 9 * 60 > now { 2.2 } else { 1.0 };
    let ms = |mean: f64, dice: &mut Dice| (mean * dice.about() * MS as f64) as u64;
    let cpu_ns = ms(*cpu, dice);
    let database_ns = ms(*database * worse, dice);
    let other_ns = ms(*more, dice);
    let stalls = if dice.roll() > 0.9985 { 1_400 * MS } else { 0 };
    let queue_ns = if dice.roll() > 0.9 { ms(2.0, dice) } else { 20_000 + cpu_ns / 300 };
    // No failures in the last minutes, otherwise the health check might report a problem.
    let has_failed = dice.roll() > 0.9985 && at + 3 * 60 < now;
    let rollback_ns = 90_000 + cpu_ns / 90;
    let run_ns = cpu_ns + database_ns + other_ns + stalls + MS / 3;
    let mut report = Vec::new();
    if !name.contains('/') {
        report.extend(Entry::Route(name).encode());
    }
    let queries = (database_ns / (2 * MS) + 1) as u32;
    let mut wait = |kind, peer, times, ns| {
        report.extend(Entry::Wait(Wait { kind, peer, times, ns }).encode());
    };
    wait(WaitKind::Tcp, "10.0.0.5:5432", queries, database_ns + stalls);
    if let Some((kind, peer)) = other {
        wait(*kind, *peer, 1, other_ns);
    }
    if stalls > 0 && queue_ns > MS {
        // A worker that was forked for this request.
        let boot = Boot { ago_ns: queue_ns / 2, ns: queue_ns / 3 };
        report.extend(Entry::Boot(boot).encode());
    }
    let mut timer = |tags: &[(&str, &str)], hits, wall_ns| {
        let (user_ns, system_ns) = (wall_ns / 12, wall_ns / 60);
        let tags = tags.to_vec();
        report.extend(Entry::Timer { hits, wall_ns, user_ns, system_ns, tags }.encode());
    };
    timer(&[("group", "pgsql"), ("op", "select")], queries, database_ns + stalls);
    timer(&[("group", "twig"), ("op", "render")], 1, cpu_ns / 3);
    let country = ["de", "fr", "nl", "at"][(n % 4) as usize];
    report.extend(Entry::Tag("country", country).encode());
    if stalls > 0 {
        let place = "App\\Catalogue\\Repository::page() src/Catalogue/Repository.php:118";
        report.extend(Entry::Place(place).encode());
    }
    if has_failed {
        let error = |kind, class, line, message: &'static str, stack| {
            let file = "/srv/shop/src/Catalogue/Repository.php";
            let message = message.into();
            Entry::Error(ReportedError { kind, class, file, line, message, stack }).encode()
        };
        report.extend(error(
            ErrorKind::Rendered,
            "App\\Catalogue\\OutOfStock",
            118,
            "no stock of item 4711",
            "#0 /srv/shop/src/Shop.php(31): App\\Catalogue\\Repository->page()\n\
             #1 /srv/shop/public/index.php(9): App\\Shop->show()",
        ));
        report.extend(error(ErrorKind::Previous, "PDOException", 96, "server has gone away", ""));
    }
    let script = if name.starts_with("index.php") { "index.php" } else { "" };
    let numbers = Numbers {
        began_unix_us: at * 1_000_000 + n % 1_000_000,
        status: if has_failed { 500 } else { 200 },
        model: Model::Checkpoint,
        generation: 3,
        worker: 4_100 + (n % 8) as u32,
        wall_ns: queue_ns + run_ns + ms(0.4, dice),
        queue_ns,
        run_ns,
        cpu_ns: cpu_ns + rollback_ns,
        rollback_ns,
        rollback_pages: 140,
        faults_minor: 3,
        switches_voluntary: queries + 1,
        switches_involuntary: 1,
        peak_bytes: 9_000_000 + cpu_ns / 20,
        bytes_out: 18_000 + cpu_ns / 900,
        ..Numbers::default()
    };
    let id = format!("{n:016x}");
    batch.put(&Finished {
        numbers,
        method: "GET",
        path,
        script,
        id: &id,
        pool: "",
        report: &report,
    });
}

/// Samples of the generation before the last reload and of the current one: (stack, outermost call
/// first; samples before, samples now).
const STACKS: [(&[&str], u64, u64); 7] = [
    (&["{main}", "Kernel::handle", "Shop::show", "Prices::discounts"], 40, 260),
    (&["{main}", "Kernel::handle", "Shop::show", "PDOStatement::execute"], 300, 290),
    (&["{main}", "Kernel::handle", "Shop::show", "Twig::render", "Twig::escape"], 160, 90),
    (&["{main}", "Kernel::handle", "Shop::show", "Twig::render"], 120, 130),
    (&["{main}", "Kernel::handle", "Router::match"], 60, 55),
    (&["{main}", "Kernel::handle"], 20, 25),
    (&["{main}", "Kernel::boot"], 30, 30),
];

/// Requests of each generation.
const SAMPLED_REQUESTS: u64 = 1_000;

fn sampled() -> Arc<Profiles> {
    let profiles = Profiles::start(samovar_profile::Options {
        default_pool: "default",
        path: None,
        bytes_max: 1 << 20,
        keep: Duration::from_hours(1),
        hertz: 49,
        is_told: true,
        trouble: Box::new(|trouble| panic!("{trouble}")),
        handover_gate: samovar_insight::HandoverGate::now(),
        push: None,
    });
    let profiles = profiles.expect("a thread");
    for generation in [2, 3] {
        profiles.knows("", generation as u32, generation);
        for (names, before, now) in STACKS {
            let samples = if generation == 2 { before } else { now };
            let frame = |name: &&str| {
                let file = format!("/srv/shop/src/{}.php", name.replace("::", "/"));
                let function =
                    Function { name: (*name).to_owned(), file, line: 12, ..Function::default() };
                Frame { function: Arc::new(function), line: 20 }
            };
            let frames: Vec<_> = names.iter().rev().map(frame).collect();
            let waits = names.last().is_some_and(|name| name.starts_with("PDO"));
            let peer = "tcp 10.0.0.5:5432".to_owned();
            let poll = Activity::Waiting { call: "poll".to_owned(), peer };
            let activity = if waits { &poll } else { &Activity::Running };
            profiles.add(&Sample {
                pool: "",
                generation,
                model: Model::Checkpoint,
                is_boot: false,
                request: Some(("sampled", "/index.php", "/p/1")),
                at: At::Php(&frames, activity),
                weight: Weight { samples, wall_ns: samples * 20 * MS, cpu_ns: samples * 20 * MS },
            });
        }
        let worker = generation as u32;
        let numbers = Numbers { worker, model: Model::Checkpoint, ..Numbers::default() };
        for n in 0..SAMPLED_REQUESTS {
            let id = if n == 0 { "sampled" } else { "" };
            profiles.ended(&Finished { numbers, id, ..Finished::default() }, "shop_show");
        }
    }
    Arc::new(profiles)
}

/// The shop's server.
pub(crate) struct Server;

impl Host for Server {
    fn canary(&self) -> Option<CanaryStatus> {
        let route = |name: &str, requests: [u64; 2], cpu_ms: [f64; 2]| {
            json!({
                "route": name, "requests": requests, "cpu_ns": cpu_ms.map(|ms| ms * 1e6),
                "latency_ns": cpu_ms.map(|ms| ms * 2.4e6), "memory_bytes": [2.1e6, 2.2e6],
                "failure": [0.001, 0.001],
            })
        };
        let said = json!({
            "state": "running", "generation": 4, "release": "2.8.0", "by": "cookie",
            "share_ppm": 50_000, "next_ppm": [250_000, 1_000_000], "step_s": 300, "age_s": 140,
            "requests": [11_870, 612], "evidence": 0.21, "evidence_figure": "CPU time",
            "evidence_route": "shop_show",
            "routes": [
                route("", [11_870, 612], [3.1, 3.2]),
                route("shop_show", [6_210, 330], [4.0, 4.3]),
                route("shop_list", [3_950, 190], [2.2, 2.2]),
            ],
        });
        serde_json::from_value(said).ok()
    }

    fn status(&self) -> Status {
        let states = ["idle", "busy", "idle", "idle", "busy", "idle", "idle", "booting"];
        let worker = |(n, state): (u64, &str)| {
            json!({
                "pid": 4_100 + n, "state": state, "model": "checkpoint",
                "requests": 12_345 / (n + 1), "rollbacks": 12_345 / (n + 1), "hot_pages": 136,
                "rss_bytes": 31_000_000 + n * 700_000, "age_seconds": 543.2, "generation": 3,
            })
        };
        let workers: Vec<_> = (0..).zip(states).map(worker).collect();
        let finding = |kind: &str, action: &str, what: &str, place: &str, advice: &str| {
            json!({
                "kind": kind, "action": action, "what": what, "where": place, "advice": advice,
            })
        };
        let said = json!({
            "version": "0.1.0", "pid": 4_090, "uptime_seconds": 78_000.5,
            "listen": ["0.0.0.0:8080"], "draining": false, "generation": 3, "reloading": false,
            "queue_depth": 0, "in_flight": 2, "connections": 61, "requests_total": 612_345,
            "responses_5xx_total": 812, "rejected_total": 12, "timeouts_total": 1,
            "retries_total": 2, "worker_restarts_total": 2,
            "image": {
                "mode": "shared", "bytes": 17_400_000, "regions": 171, "boot_ms": 184.2,
                "hot_pages": 136, "rollbacks_total": 610_000, "rollback_us_p50": 92.0,
                "rollback_us_p99": 410.0, "searches_total": 120,
                "connection_resets_total": 3, "refork_total": 7,
                "refork_reasons": {"child": 5, "connection": 2},
                "findings": [
                    finding("connection", "note", "a connection to 10.0.0.5:5432",
                        "/srv/shop/src/Kernel.php:41",
                        "the connection is kept for all requests: see the guide"),
                    finding("random", "note", "mt_rand() was seeded during the boot",
                        "/srv/shop/vendor/faker/src/Generator.php:12",
                        "each request gets a new seed"),
                ],
            },
            "workers": workers,
            "upstreams": [
                {"address": "unix:/run/php/php8.2-fpm.sock", "connections": 2,
                    "connections_max": 64, "queue_max": 512, "requests_total": 18_402,
                    "responses_total": 18_399, "waited_seconds": 1_512.0, "troubles": {"closed": 3},
                    "last_trouble": {
                        "reason": "closed", "words": "",
                        "at": samovar_insight::now().saturating_sub(1_320),
                    }},
            ],
            "queues": [
                {"name": "emails", "ready": 1_204, "delayed": 31, "running": 4, "dead": 3,
                    "oldest_ms": 1_230_000, "oldest_max_ms": 900_000, "pushed_total": 182_044,
                    "done_total": 180_790, "failed_total": 214, "retried_total": 199,
                    "dead_total": 15, "failures": {
                        "Symfony\\Component\\Mailer\\Exception\\TransportException": 198,
                        "(timeout)": 16,
                    }},
                {"name": "thumbnails", "running": 2, "pushed_total": 9_310, "done_total": 9_308},
                {"name": "export", "ready": 5, "oldest_ms": 61_000, "paused": true,
                    "oldest_max_ms": 900_000},
            ],
            "consoles": [
                {"name": "messages", "pid": 4_201, "state": "running", "restarts": 0,
                    "rss_bytes": 42_000_000, "age_seconds": 7_812.0},
                {"name": "mails", "pid": 4_202, "state": "running", "restarts": 3,
                    "rss_bytes": 38_000_000, "age_seconds": 212.0},
            ],
        });
        serde_json::from_value(said).expect("a status")
    }

    fn ready(&self, _: Option<&str>) -> Result<String, String> {
        Ok("ready".to_owned())
    }

    fn metrics(&self, _page: &mut Exposition) {}

    fn dead_jobs(&self, _: &str, _: i64, _: usize) -> QueueResponse {
        let now_ms = samovar_insight::now() * 1_000;
        let job = |id, error: &str, class: &str, place: &str| DeadJob {
            id,
            pushed_ms: now_ms.saturating_sub(7_200_000),
            died_ms: now_ms.saturating_sub(1_320_000),
            attempts: 5,
            key: Some(format!("user-{id}")),
            class: class.to_owned(),
            place: place.to_owned(),
            error: error.to_owned(),
            payload: format!("{{\"to\":{id},\"template\":\"welcome\"}}"),
            ..DeadJob::default()
        };
        let class = "Symfony\\Component\\Mailer\\Exception\\TransportException";
        let refused = format!(
            "{class}: Connection could not be established with host \"smtp.shop.example:587\" in \
             /srv/shop/vendor/symfony/mailer/Transport/Smtp/Stream.php:154\nStack trace:\n#0 …"
        );
        let place = "/srv/shop/vendor/symfony/mailer/Transport/Smtp/Stream.php:154";
        let slow = "the batch did not end within the queue's timeout";
        let jobs = vec![
            job(18_301, &refused, class, place),
            job(18_344, &refused, class, place),
            job(19_007, slow, "(timeout)", ""),
        ];
        QueueResponse { jobs, ..QueueResponse::default() }
    }

    fn boot(&self, _: Option<&str>) -> Option<Explained> {
        Some(called::boot())
    }

    fn calls(
        &self,
        _: Option<&str>,
        day: Option<u64>,
        route: Option<&str>,
    ) -> Option<Result<Selected, String>> {
        static CALLS: OnceLock<Arc<Calls>> = OnceLock::new();
        Some(CALLS.get_or_init(called::calls).select("", day, route))
    }

    fn profiles(&self) -> Option<Arc<Profiles>> {
        static PROFILES: OnceLock<Arc<Profiles>> = OnceLock::new();
        Some(Arc::clone(PROFILES.get_or_init(sampled)))
    }
}
