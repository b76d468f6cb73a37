//! Tests that sums are correct, and equal for whole and packed requests.

use super::{Aggregate, Limits};
use crate::batch::{Batch, Marks, id_mark, mark};
use crate::bounded_map::OTHER;
use crate::finished::{End, Finished, Model, Numbers};
use crate::histogram::Histogram;
use crate::observation::Witness;
use crate::pinba::{self, Packet, Sender};
use crate::recent_requests::Scene;
use crate::report::{Entry, Wait, WaitKind};
use crate::route::Costs;
use crate::route_name::NOT_FOUND;
use crate::store::RouteMinute;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const LIMITS: Limits = Limits { routes_max: 3, slow_ns: 1_000_000_000 };

fn aggregate<'a>(requests: impl IntoIterator<Item = Finished<'a>>) -> Aggregate {
    let mut batch = Batch::default();
    requests.into_iter().for_each(|request| batch.put(&request));
    let mut aggregate = Aggregate::new(LIMITS);
    aggregate.take(&batch, 1_000_000);
    aggregate
}

fn names(aggregate: &Aggregate) -> Vec<(String, u64)> {
    aggregate.routes().map(|(name, r)| (name.to_owned(), r.costs.requests)).collect()
}

/// A witness that has sampled some requests. It counts requests by route, worker and model, and
/// records the sampled ones.
#[derive(Debug, Default)]
struct Looker {
    counts: Mutex<Counts>,
    seen: Mutex<Seen>,
}

/// Counts by route, pool, worker and model.
type Counts = BTreeMap<(String, String, u32, usize), u64>;
/// Counts by route and mark.
type Seen = BTreeMap<(String, u64), u64>;

impl Looker {
    fn told(&self) -> (Counts, Seen) {
        (self.counts.lock().unwrap().clone(), self.seen.lock().unwrap().clone())
    }
}

impl Witness for Looker {
    fn ended(&self, finished: &Finished, route: &str) -> Option<Scene> {
        if finished.numbers.worker != 0 {
            self.counted(finished, &[(finished.numbers.worker, 1)], route);
        }
        let mark = id_mark(finished.id.as_bytes());
        if LOOKED_FOR.iter().any(|id| id_mark(id.as_bytes()) == mark) {
            self.saw(mark, route);
        }
        None
    }

    fn looks_for(&self, marks: &mut Vec<u64>) {
        marks.extend(LOOKED_FOR.iter().map(|id| id_mark(id.as_bytes())));
    }

    fn saw(&self, mark: u64, route: &str) {
        *self.seen.lock().unwrap().entry((route.to_owned(), mark)).or_default() += 1;
    }

    fn counted(&self, common: &Finished, by_worker: &[(u32, u64)], route: &str) {
        let mut counts = self.counts.lock().unwrap();
        for (worker, requests) in by_worker {
            let key =
                (route.to_owned(), common.pool.to_owned(), *worker, common.numbers.model as usize);
            *counts.entry(key).or_default() += requests;
        }
    }
}

/// Some of the ids `id0`, `id1` …
const LOOKED_FOR: [&str; 3] = ["id3", "id5", "id70"];

/// Returns all visible figures of the requests as text.
fn shown(aggregate: &mut Aggregate) -> String {
    let routes: Vec<_> = aggregate.routes().map(|(n, r)| (n.to_owned(), r.clone())).collect();
    let mut figures: Vec<_> =
        routes.iter().map(|(name, r)| (name, costs(&r.costs), *r.both_ways())).collect();
    figures.sort_by_key(|(name, ..)| *name);
    let models: Vec<_> = Model::ALL.map(|m| costs(aggregate.of_model(m))).into();
    let (used, kept) = (aggregate.routes_used(), aggregate.kept().iter().count());
    let series: Vec<_> = aggregate.seconds().iter().chain(aggregate.minutes().iter()).collect();
    let shown = format!("{figures:#?} {models:#?} {used:?} {kept} {series:#?}");
    let minute = aggregate.close_minute(2_000_000).expect("a minute");
    let mut minutes: Vec<_> = minute.routes.iter().map(|(n, m)| (n, of_minute(m))).collect();
    minutes.sort();
    format!("{shown} {minutes:#?}")
}

fn costs(costs: &Costs) -> String {
    let Costs { wall, queue, cpu, waiting, .. } = costs;
    let times: Vec<_> = [wall, queue, cpu, waiting].map(|h| (h.filled(), h.sum_ns())).into();
    let empty = Histogram::default;
    let (wall, queue, cpu, waiting) = (empty(), empty(), empty(), empty());
    format!("{times:?} {:?}", Costs { wall, queue, cpu, waiting, ..costs.clone() })
}

fn of_minute(minute: &RouteMinute) -> String {
    let RouteMinute { wall, cpu, queue, waiting, .. } = minute;
    let times = [wall, cpu, queue, waiting].map(|h| (h.filled(), h.sum_ns()));
    let empty = Histogram::default;
    let (wall, cpu, queue, waiting) = (empty(), empty(), empty(), empty());
    format!("{times:?} {:?}", RouteMinute { wall, cpu, queue, waiting, ..minute.clone() })
}

#[test]
fn packed_and_whole_requests_give_equal_figures() {
    let mut seed = 1_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..40 {
        // With a limit, the routes beyond it would depend on the order of requests.
        let limits = Limits { routes_max: 100, ..LIMITS };
        let witnesses = [Arc::new(Looker::default()), Arc::new(Looker::default())];
        let of = |witness: &Arc<Looker>| {
            Aggregate::new(limits).witnessed(Some(Arc::clone(witness) as Arc<dyn Witness>))
        };
        let [mut packed, mut whole] = witnesses.each_ref().map(of);
        for batch in 0..=(round % 7) {
            let (mut a, mut b) = (Batch::default(), Batch::default());
            for _ in 0..random(250) {
                let worker = random(4) as u32;
                let of_worker = |n: u64| if worker > 0 { n } else { 0 };
                let numbers = Numbers {
                    status: [200, 404, 499, 500, 999][random(5) as usize],
                    model: Model::ALL[random(4) as usize],
                    end: End::ALL[random(9) as usize],
                    generation: batch,
                    worker,
                    retries: u32::from(random(9) == 0),
                    wall_ns: random(1 << 33) >> random(33),
                    queue_ns: of_worker(random(1 << 33) >> random(33)),
                    run_ns: of_worker(random(1 << 20)),
                    cpu_ns: of_worker(random(1 << 33) >> random(20)),
                    rollback_ns: of_worker(random(9_000)),
                    rollback_pages: random(90) as u32,
                    faults_minor: random(9) as u32,
                    faults_major: u32::from(random(30) == 0),
                    switches_voluntary: random(70_000) as u32,
                    switches_involuntary: random(9) as u32,
                    peak_bytes: random(1 << 33) >> random(33),
                    is_https: random(2) == 0,
                    bytes_in: random(1 << 33) >> random(33),
                    bytes_out: random(1 << 33) >> random(33),
                    is_sampled: random(20) == 0,
                    ..Numbers::default()
                };
                let path =
                    format!("/{}", ["a", "b", "c/7", "d", "(other)", "e", "f"][random(7) as usize]);
                let (script, pool) =
                    (["", "i.php"][random(2) as usize], ["", "x"][random(2) as usize]);
                let id = format!("id{}", random(100));
                let report = Entry::Route("named").encode();
                let report = if random(9) == 0 { &report[..] } else { &[] };
                let one = Finished {
                    numbers,
                    path: &path,
                    script,
                    pool,
                    report,
                    id: &id,
                    ..Finished::default()
                };
                let texts: [&[u8]; 3] = [path.as_bytes(), script.as_bytes(), pool.as_bytes()];
                let marks = Marks { texts: mark(0, &texts), id: id_mark(id.as_bytes()) };
                if numbers.wall_ns >= LIMITS.slow_ns || !report.is_empty() {
                    a.put(&one);
                } else if !a.pack_beside(&numbers, marks) {
                    a.pack(&one, marks);
                }
                b.put(&one);
            }
            assert!(b.alike().next().is_none());
            let now = 1_000_000 + random(3);
            packed.take(&a, now);
            whole.take(&b, now);
        }
        assert_eq!(shown(&mut packed), shown(&mut whole), "round {round}");
        let [of_packed, of_whole] = witnesses.map(|witness| witness.told());
        assert_eq!(of_packed, of_whole, "round {round}");
    }
}

#[test]
fn route_is_name_from_application_or_folded_path() {
    let named = Entry::Route("shop_show").encode();
    let found = aggregate([
        Finished { path: "/p/1", report: &named, script: "index.php", ..Finished::default() },
        Finished { path: "/p/1", script: "index.php", ..Finished::default() },
        Finished { path: "/p/2", script: "index.php", ..Finished::default() },
        Finished { path: "/old.php/3", script: "old.php", ..Finished::default() },
    ]);
    let expected = [("shop_show", 1), ("index.php /p/{n}", 2), ("/old.php/{n}", 1)];
    assert_eq!(names(&found), expected.map(|(name, n)| (name.to_owned(), n)));
}

#[test]
fn invented_paths_are_counted_as_other() {
    let paths: Vec<String> = (0..1_000).map(|n| format!("/a{n}x")).collect();
    let found = aggregate(paths.iter().map(|path| Finished { path, ..Finished::default() }));
    assert_eq!(names(&found).last(), Some(&(OTHER.to_owned(), 997)));
    assert_eq!(found.routes_used(), (3, 997));
    assert_eq!(found.total().requests, 1_000);
}

/// A scanner requested 1,300 paths on a fresh server, and `/search` was `(other)` from then on.
#[test]
fn scanner_does_not_hide_routes_of_application() {
    for (status, model) in [(404, Model::Checkpoint), (404, Model::None), (403, Model::None)] {
        let limits = Limits { routes_max: 1_000, ..LIMITS };
        let mut found = Aggregate::new(limits);
        let of = |status, model| Numbers { status, model, ..Numbers::default() };
        let mut batch = Batch::default();
        for n in 0..1_300 {
            let (numbers, path) = (of(status, model), format!("/x{n}y"));
            batch.put(&Finished { numbers, path: &path, ..Finished::default() });
        }
        for path in ["/search", "/checkout"] {
            let numbers = of(200, Model::Checkpoint);
            batch.put(&Finished { numbers, path, ..Finished::default() });
        }
        found.take(&batch, 1);
        for path in ["/search", "/checkout"] {
            assert_eq!(found.route(path).map(|r| r.costs.requests), Some(1), "{status} {path}");
        }
        assert_eq!(found.total().requests, 1_302);
        if status == 404 {
            assert_eq!(found.routes_used(), (3, 0));
            assert_eq!(found.route(NOT_FOUND).map(|r| r.costs.requests), Some(1_300));
        }
    }
}

#[test]
fn full_table_evicts_routes_with_few_successes() {
    let limits = Limits { routes_max: 16, ..LIMITS };
    let mut found = Aggregate::new(limits);
    let take = |found: &mut Aggregate, path: &str, requests: usize, now| {
        let numbers = Numbers { status: 200, wall_ns: 5, ..Numbers::default() };
        let mut batch = Batch::default();
        let report =
            Entry::Wait(Wait { kind: WaitKind::Lock, peer: "x", times: 1, ns: 3 }).encode();
        let finished = Finished { numbers, path, report: &report, ..Finished::default() };
        (0..requests).for_each(|_| batch.put(&finished));
        found.take(&batch, now);
    };
    take(&mut found, "/established", 20, 60);
    (0..40).for_each(|n| take(&mut found, &format!("/x{n}y"), 1, 60));
    assert!(found.routes_are_full(60));
    assert_eq!(found.route("/search").map(|r| r.costs.requests), None);
    found.close_minute(120).expect("a minute");
    take(&mut found, "/search", 1, 121);
    assert_eq!(found.route("/search").map(|r| r.costs.requests), Some(1));
    assert_eq!(found.route("/established").map(|r| r.costs.requests), Some(20));
    let total: u64 = found.routes().map(|(_, r)| r.costs.requests).sum();
    assert_eq!((total, found.total().requests), (61, 61));
    let waits: u64 = found.routes().flat_map(|(_, r)| r.waits()).map(|(.., w)| w.times).sum();
    assert_eq!(waits, 61);
    // The minute has only the requests since the last one: no figures of the evicted routes.
    let minute = found.close_minute(180).expect("a minute");
    let of_minute: Vec<_> = minute.routes.iter().map(|(n, m)| (&**n, m.requests)).collect();
    assert_eq!(of_minute, [("/search", 1)]);
    assert!(!found.routes_are_full(60 + 10 * 60));
}

/// After 4,000 failures, a slow route showed "no slow and no failed requests yet".
#[test]
fn failures_leave_slow_requests_in_memory_and_in_history() {
    let slow = Numbers { wall_ns: LIMITS.slow_ns, status: 200, ..Numbers::default() };
    let failed = Numbers { status: 500, ..Numbers::default() };
    let mut found = aggregate((0..4_001).map(|n| Finished {
        numbers: if n == 0 { slow } else { failed },
        path: if n == 0 { "/slow" } else { "/fails" },
        id: if n == 0 { "slow" } else { "failed" },
        ..Finished::default()
    }));
    assert!(found.kept().find("slow").is_some());
    let minute = found.close_minute(2_000_000).expect("a minute");
    assert!(minute.kept.iter().any(|kept| &*kept.id == "slow"));
    assert!(minute.kept.len() <= super::KEPT_OF_MINUTE_MAX);
}

#[test]
fn routes_of_other_machines_leave_room_for_own_routes() {
    let sender = Sender { host: "fpm1".into(), server: "shop".into() };
    let mut found = aggregate([]);
    for n in 0..10 {
        let bytes = pinba::encode(&sender, &Finished::default(), &format!("/a{n}x"), &[]);
        found.take_packet(&Packet::decode(&bytes).unwrap(), 1);
    }
    let mut batch = Batch::default();
    for path in ["/a", "/b", "/c"] {
        batch.put(&Finished { path, ..Finished::default() });
    }
    found.take(&batch, 1);
    // The last one takes the place of a route of the other machine.
    let expected = [("/a", 1), ("/b", 1), ("/c", 1), (OTHER, 10)];
    assert_eq!(names(&found), expected.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!(found.routes_used(), (3, 10));
    assert_eq!(found.sources().map(|(host, _, s)| (host, s.requests)).next(), Some(("fpm1", 10)));
}

#[test]
fn waits_are_added_to_route_total_model_and_series() {
    let wait = Wait { kind: WaitKind::Unix, peer: "/run/db", times: 2, ns: 500 };
    let report = Entry::Wait(wait).encode();
    let numbers = Numbers { model: Model::Resident, worker: 9, ..Numbers::default() };
    let found = aggregate([Finished { numbers, report: &report, ..Finished::default() }]);
    let of_route = found.routes().next().map(|(_, route)| route.costs.waiting_ns);
    assert_eq!(of_route, Some(500));
    assert_eq!(found.total().waiting_ns, 500);
    assert_eq!(found.of_model(Model::Resident).waiting_ns, 500);
    assert_eq!(found.of_model(Model::Script).requests, 0);
    assert_eq!(found.seconds().iter().map(|m| m.waiting_ns).sum::<u64>(), 500);
    assert_eq!(found.minutes().iter().map(|m| m.at).collect::<Vec<_>>(), [999_960]);
}

#[test]
fn slow_and_failed_requests_are_kept() {
    let slow = Numbers { wall_ns: LIMITS.slow_ns, status: 200, ..Numbers::default() };
    let failed = Numbers { status: 500, ..Numbers::default() };
    let fine = Numbers { status: 404, ..Numbers::default() };
    let found =
        aggregate([("a", slow), ("b", fine), ("c", failed)].map(|(id, numbers)| Finished {
            numbers,
            id,
            ..Finished::default()
        }));
    let ids: Vec<_> = found.kept().iter().map(|kept| &*kept.id).collect();
    assert_eq!(ids, ["c", "a"]);
    assert!(found.kept().find("a").is_some() && found.kept().find("b").is_none());
}

#[test]
fn minute_is_closed_once_with_its_figures() {
    let mut aggregate = Aggregate::new(LIMITS);
    let mut bring = |now: u64, paths: &[&str]| {
        let ended = aggregate.close_minute(now);
        let mut batch = Batch::default();
        for path in paths {
            let numbers = Numbers { status: 500, wall_ns: 5_000, ..Numbers::default() };
            batch.put(&Finished { numbers, path, ..Finished::default() });
        }
        aggregate.take(&batch, now);
        ended.map(|m| {
            let routes: Vec<_> =
                m.routes.iter().map(|(name, r)| format!("{name} {}", r.requests)).collect();
            (m.at, routes.join(", "), m.kept.len())
        })
    };
    assert_eq!(bring(600, &["/a", "/b"]), None);
    assert_eq!(bring(659, &["/a"]), None);
    assert_eq!(bring(660, &["/c", "/a"]), Some((600, "/a 2, /b 1".to_owned(), 3)));
    assert_eq!(bring(600, &["/c"]), None, "a clock that was set back");
    assert_eq!(bring(800, &[]), Some((660, "/a 1, /c 2".to_owned(), 3)));
    assert_eq!(bring(900, &[]), None, "nothing happened");
}

/// A reload in the middle of a minute: memory has the requests of both releases in different parts,
/// and the history adds the parts of the minute.
#[test]
fn reload_divides_figures_of_its_minute() {
    let mut found = Aggregate::new(LIMITS);
    let take = |found: &mut Aggregate, now: u64, wall_ns: u64, requests: usize| {
        found.close_minute(now);
        let numbers = Numbers { status: 200, wall_ns, worker: 7, ..Numbers::default() };
        let mut batch = Batch::default();
        let finished = Finished { numbers, path: "/a", ..Finished::default() };
        (0..requests).for_each(|_| batch.put(&finished));
        found.take(&batch, now);
    };
    take(&mut found, 600, 1_000_000, 30);
    take(&mut found, 610, 1_000_000, 10);
    let before = found.close_part(625).expect("a part");
    assert_eq!((before.at, before.routes[0].1.requests), (600, 40));
    take(&mut found, 630, 5_000_000, 7);
    let shown = |found: &Aggregate, now| -> Vec<(u64, u64, u64, u64)> {
        let (begin, parts) = found.recent(now).expect("parts");
        assert_eq!(begin, 600);
        let each = parts.iter().filter(|part| !part.routes.is_empty());
        let figures = |of: &RouteMinute| (of.requests, of.wall.quantile_ns(0.5) / 900_000);
        each.map(|part| {
            let (requests, ms) = figures(&part.routes[0].1);
            (part.from, part.until, requests, ms)
        })
        .collect()
    };
    let expected = [(600, 625, 40, 1), (625, 632, 7, 5)];
    assert_eq!(shown(&found, 631), expected, "the open part is there at once");
    let after = found.close_minute(660).expect("a part");
    assert_eq!((after.at, after.routes[0].1.requests), (600, 7));
    assert_eq!(shown(&found, 660), [(600, 625, 40, 1), (625, 660, 7, 5)]);
    assert!(found.close_part(660).is_none(), "nothing happened");
    take(&mut found, 661, 1_000_000, 1);
    assert_eq!(found.close_part(10).map(|m| m.at), Some(660), "a clock that was set back");
}

#[test]
fn garbage_in_report_loses_its_rest() {
    let report = [Entry::Route("r").encode(), Entry::Dropped(4).encode(), vec![77]].concat();
    let found = aggregate([Finished { report: &report, ..Finished::default() }]);
    assert_eq!(found.lost_entries(), (1, 4));
    assert_eq!(names(&found), [("r".to_owned(), 1)]);
}
