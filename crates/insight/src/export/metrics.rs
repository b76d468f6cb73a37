//! Metrics of the aggregate, with names and units in Prometheus' style.

use crate::aggregate::Aggregate;
use crate::bounds::Bounds;
use crate::export::exposition::{Buckets, Exemplar, Families, Kind};
use crate::finished::{End, Model};
use crate::histogram::Histogram;
use crate::route::{Costs, RouteFigures};
use crate::sink::{Fate, Tally};
use crate::sources::SourceFigures;
use crate::store::EventKind;
use std::sync::Arc;

const NS_PER_S: f64 = 1e9;
/// Counter of a route: its name, help and value.
type RouteCounter = (&'static str, &'static str, fn(&Costs) -> f64);

const ROUTE_COUNTERS: &[RouteCounter] = &[
    ("samovar_request_cpu_seconds", "CPU time of workers, including rollbacks.", |c| {
        seconds(c.cpu.sum_ns())
    }),
    ("samovar_request_queue_seconds", "Time requests waited for a worker.", |c| {
        seconds(c.queue.sum_ns())
    }),
    ("samovar_request_run_seconds", "Time requests spent in a worker.", |c| seconds(c.run_ns)),
    ("samovar_request_body_bytes", "Size of request bodies.", |c| c.bytes_in as f64),
    ("samovar_response_body_bytes", "Size of response bodies.", |c| c.bytes_out as f64),
    ("samovar_request_retries", "Repeated runs of requests whose worker died.", |c| {
        c.retries as f64
    }),
    ("samovar_request_memory_bytes", "Sum of the peaks of PHP's memory.", |c| c.peak_bytes as f64),
];

fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S
}

/// Writes all families. `lost` is the number of requests that never reached the aggregate.
pub fn metrics(figures: &Aggregate, lost: u64, page: &mut dyn Families) {
    requests(figures, page);
    durations(figures, page);
    for (name, help, value) in ROUTE_COUNTERS {
        page.family(name, Kind::Counter, help);
        for (route, found) in figures.routes() {
            page.sample(&[("route", route)], value(&found.costs));
        }
    }
    memory(figures, page);
    waits(figures, page);
    timers(figures, page);
    models(figures, page);
    sources(figures, page);
    itself(figures, lost, page);
}

fn memory(figures: &Aggregate, page: &mut dyn Families) {
    page.family(
        "samovar_request_memory_peak_bytes",
        Kind::Gauge,
        "Highest peak of PHP's memory in this minute and the one before.",
    );
    for (route, found) in figures.routes() {
        page.sample(&[("route", route)], found.recent_peak_bytes() as f64);
    }
    page.family(
        "samovar_request_memory_growth_bytes",
        Kind::Gauge,
        "Memory of PHP that requests have left in resident workers since the start.",
    );
    for (route, found) in figures.routes() {
        page.sample(&[("route", route)], found.costs.grown_bytes as f64);
    }
}

fn requests(figures: &Aggregate, page: &mut dyn Families) {
    const CLASSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];
    page.family("samovar_http_requests", Kind::Counter, "Requests, by route and status class.");
    for (route, found) in figures.routes() {
        for (class, count) in CLASSES.iter().zip(found.costs.by_class).filter(|(_, n)| *n > 0) {
            page.sample(&[("route", route), ("class", class)], count as f64);
        }
    }
    page.family("samovar_requests_ended", Kind::Counter, "Requests, by route and outcome.");
    for (route, found) in figures.routes() {
        for (end, count) in End::ALL.iter().zip(found.costs.by_end).filter(|(_, n)| *n > 0) {
            page.sample(&[("route", route), ("end", end.name())], count as f64);
        }
    }
    page.family(
        "samovar_errors",
        Kind::Counter,
        "Exceptions and fatal errors, by kind, class and route.",
    );
    for (kind, class, route, count) in figures.errors().counters() {
        page.sample(&[("kind", kind), ("class", class), ("route", route)], count as f64);
    }
}

fn durations(figures: &Aggregate, page: &mut dyn Families) {
    let bounds = figures.bounds();
    page.family(
        "samovar_http_request_duration_seconds",
        Kind::Histogram,
        "Time from the head of a request to the last byte of its response.",
    );
    for (route, found) in figures.routes() {
        let exemplar = exemplar(found);
        histogram(&[("route", route)], (bounds, &found.costs.wall), exemplar.as_ref(), page);
    }
    let total = figures.total();
    for (name, kind, help, of) in [
        (
            "samovar_queue_duration_seconds",
            Kind::Histogram,
            "Time requests waited for a worker.",
            &total.queue,
        ),
        (
            "samovar_cpu_duration_seconds",
            Kind::Histogram,
            "CPU time per request, including the preceding rollback.",
            &total.cpu,
        ),
        (
            "samovar_waiting_duration_seconds",
            Kind::Histogram,
            "Time PHP waited per request.",
            &total.waiting,
        ),
    ] {
        page.family(name, kind, help);
        histogram(&[], (bounds, of), None, page);
    }
}

fn exemplar(route: &RouteFigures) -> Option<Exemplar> {
    let numbers = route.traced()?;
    let trace_id = format!("{:032x}", u128::from_be_bytes(numbers.trace_id));
    let at = numbers.began_unix_us as f64 / 1e6;
    Some(Exemplar { trace_id, value: seconds(numbers.wall_ns), at })
}

fn histogram(
    labels: &[(&str, &str)],
    (bounds, times): (&Bounds, &Histogram),
    exemplar: Option<&Exemplar>,
    page: &mut dyn Families,
) {
    page.buckets(
        labels,
        &Buckets {
            bounds: &bounds.ns().iter().copied().map(seconds).collect::<Vec<_>>(),
            cumulative: &times.cumulative(bounds.ns()),
            count: times.count(),
            sum: seconds(times.sum_ns()),
            exemplar,
            times: Some(times),
        },
    );
}

fn waits(figures: &Aggregate, page: &mut dyn Families) {
    page.family("samovar_wait_seconds", Kind::Counter, "Time PHP waited, by kind and peer.");
    for (route, found) in figures.routes() {
        for (kind, peer, wait) in found.waits() {
            page.sample(&[("route", route), ("kind", kind), ("peer", peer)], seconds(wait.ns));
        }
    }
    page.family("samovar_waits", Kind::Counter, "Number of times PHP waited, by kind and peer.");
    for (route, found) in figures.routes() {
        for (kind, peer, wait) in found.waits() {
            page.sample(&[("route", route), ("kind", kind), ("peer", peer)], wait.times as f64);
        }
    }
}

/// A timer's tags are one label: timers have different tags, but all samples of a family must have
/// the same labels.
fn timers(figures: &Aggregate, page: &mut dyn Families) {
    type Value = fn(&crate::route::TimerFigures) -> f64;
    let families: [(&'static str, &str, Value); 3] = [
        ("samovar_timer_hits", "Number of timer runs.", |t| t.hits as f64),
        ("samovar_timer_seconds", "Wall time of timers.", |t| seconds(t.wall_ns)),
        ("samovar_timer_cpu_seconds", "CPU time of timers.", |t| seconds(t.user_ns + t.system_ns)),
    ];
    for (name, help, value) in families {
        page.family(name, Kind::Counter, help);
        for (route, found) in figures.routes() {
            for (tags, timer) in found.timers() {
                let tags: Vec<_> = tags.iter().map(|(n, v)| format!("{n}={v}")).collect();
                page.sample(&[("route", route), ("tags", &tags.join(","))], value(timer));
            }
        }
    }
}

fn models(figures: &Aggregate, page: &mut dyn Families) {
    type Value = fn(&Costs) -> f64;
    let families: [(&'static str, &str, Value); 5] = [
        ("samovar_model_requests", "Requests, by execution model.", |c| c.requests as f64),
        ("samovar_model_cpu_seconds", "CPU time, by execution model.", |c| seconds(c.cpu.sum_ns())),
        ("samovar_model_waiting_seconds", "Time PHP waited, by execution model.", |c| {
            seconds(c.waiting_ns)
        }),
        ("samovar_rollback_seconds", "Time spent in rollbacks, by execution model.", |c| {
            seconds(c.rollback_ns)
        }),
        (
            "samovar_rollback_pages",
            "Memory pages restored by rollbacks, by execution model.",
            |c| c.rollback_pages as f64,
        ),
    ];
    for (name, help, value) in families {
        page.family(name, Kind::Counter, help);
        for model in Model::ALL {
            page.sample(&[("model", model.name())], value(figures.of_model(model)));
        }
    }
}

/// Other machines that report their requests.
fn sources(figures: &Aggregate, page: &mut dyn Families) {
    type Value = fn(&SourceFigures) -> f64;
    let families: [(&'static str, &str, Kind, Value); 3] = [
        ("samovar_source_requests", "Requests reported by other machines.", Kind::Counter, |s| {
            s.requests as f64
        }),
        (
            "samovar_source_errors",
            "Failed requests reported by other machines.",
            Kind::Counter,
            |s| s.errors as f64,
        ),
        (
            "samovar_source_last_seen_timestamp_seconds",
            "Time of the last report from another machine.",
            Kind::Gauge,
            |s| s.last_seen as f64,
        ),
    ];
    for (name, help, kind, value) in families {
        page.family(name, kind, help);
        for (host, server, found) in figures.sources() {
            page.sample(&[("host", host), ("server", server)], value(found));
        }
    }
}

/// Writes the counters of all importers and exporters.
pub fn ways(tallies: &[Arc<Tally>], page: &mut dyn Families) {
    page.family(
        "samovar_insight_records",
        Kind::Counter,
        "Records received or sent, by channel and result.",
    );
    for tally in tallies {
        for fate in Fate::ALL {
            let labels = [("way", tally.way()), ("fate", fate.name())];
            page.sample(&labels, tally.get(fate) as f64);
        }
    }
}

/// Writes the counters of events.
pub fn events(by_kind: impl Iterator<Item = (EventKind, u64)>, page: &mut dyn Families) {
    page.family("samovar_events", Kind::Counter, "Server events, by kind.");
    for (kind, n) in by_kind.filter(|(kind, _)| *kind != EventKind::Unknown) {
        page.sample(&[("kind", kind.name())], n as f64);
    }
}

/// Writes the data that the aggregate itself has lost.
fn itself(figures: &Aggregate, lost: u64, page: &mut dyn Families) {
    let (routes, folded) = figures.routes_used();
    let (malformed, dropped) = figures.lost_entries();
    page.family("samovar_routes", Kind::Gauge, "Routes with their own figures.");
    page.sample(&[], routes as f64);
    for (name, help, value) in [
        ("samovar_requests_over_routes_max", "Requests counted under the route (other).", folded),
        (
            "samovar_error_groups_evicted",
            "Groups of errors replaced by newer ones.",
            figures.errors().evicted(),
        ),
        ("samovar_insight_requests_dropped", "Requests missing from all figures.", lost),
        ("samovar_insight_reports_malformed", "Malformed reports from workers.", malformed),
        (
            "samovar_insight_entries_dropped",
            "Waits and timers dropped because the request's report was full.",
            dropped,
        ),
    ] {
        page.family(name, Kind::Counter, help);
        page.sample(&[], value as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::metrics;
    use crate::aggregate::{Aggregate, Limits};
    use crate::batch::Batch;
    use crate::bounds::Bounds;
    use crate::export::exposition::{Exposition, Format};
    use crate::finished::{End, Finished, Model, Numbers};
    use crate::report::{Entry, ErrorKind, ReportedError, Wait, WaitKind};
    use std::collections::HashSet;

    fn page(format: Format) -> String {
        let wait = Wait { kind: WaitKind::Tcp, peer: "db:5432", times: 2, ns: 62_000_000 };
        let timer = Entry::Timer {
            hits: 3,
            wall_ns: 2_000_000_000,
            user_ns: 500_000_000,
            system_ns: 0,
            tags: vec![("group", "mysql"), ("server", "a")],
        };
        let error = Entry::Error(ReportedError {
            kind: ErrorKind::Uncaught,
            class: "App\\OutOfStock",
            file: "/srv/Shop.php",
            line: 12,
            message: "no \"stock\"".into(),
            stack: "",
        });
        let report: Vec<u8> = [Entry::Route("shop"), Entry::Wait(wait), timer, error]
            .iter()
            .flat_map(Entry::encode)
            .collect();
        let numbers = Numbers {
            status: 200,
            worker: 1,
            model: Model::Checkpoint,
            end: End::Completed,
            wall_ns: 80_000_000,
            cpu_ns: 7_000_000,
            trace_id: [0xab; 16],
            is_sampled: true,
            ..Numbers::default()
        };
        let mut batch = Batch::default();
        batch.put(&Finished { numbers, report: &report, ..Finished::default() });
        let mut figures = Aggregate::new(Limits { routes_max: 10, slow_ns: u64::MAX });
        figures.take(&batch, 1);
        let mut page = Exposition::new(format);
        metrics(&figures, 5, &mut page);
        String::from_utf8(page.finish()).expect("text")
    }

    #[test]
    fn metrics_contain_every_figure() {
        let page = page(Format::OpenMetrics);
        for expected in [
            "samovar_http_requests_total{route=\"shop\",class=\"2xx\"} 1",
            "samovar_http_request_duration_seconds_bucket{route=\"shop\",le=\"0.05\"} 0",
            "samovar_http_request_duration_seconds_sum{route=\"shop\"} 0.08",
            "trace_id=\"abababababababababababababababab\"} 0.08",
            "samovar_request_cpu_seconds_total{route=\"shop\"} 0.007",
            "samovar_wait_seconds_total{route=\"shop\",kind=\"tcp\",peer=\"db:5432\"} 0.062",
            "samovar_waits_total{route=\"shop\",kind=\"tcp\",peer=\"db:5432\"} 2",
            "samovar_timer_hits_total{route=\"shop\",tags=\"group=mysql,server=a\"} 3",
            "samovar_timer_cpu_seconds_total{route=\"shop\",tags=\"group=mysql,server=a\"} 0.5",
            "samovar_model_requests_total{model=\"checkpoint\"} 1",
            "samovar_requests_ended_total{route=\"shop\",end=\"completed\"} 1",
            "samovar_errors_total{kind=\"uncaught\",class=\"App\\\\OutOfStock\",route=\"shop\"} 1",
            "samovar_insight_requests_dropped_total 5",
        ] {
            assert!(page.contains(expected), "{expected} is not in\n{page}");
        }
    }

    /// Returns a quantile as Prometheus' `histogram_quantile` computes it: interpolated between two
    /// bounds.
    fn quantile(q: f64, page: &str) -> f64 {
        let name = "samovar_http_request_duration_seconds_bucket{route=\"shop\",le=\"";
        let lines = page.lines().filter_map(|line| line.strip_prefix(name)?.split_once("\"} "));
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let buckets: Vec<_> = lines.map(|(le, n)| (number(le), number(n))).collect();
        let rank = q * buckets.last().expect("a bucket").1;
        let (mut from, mut below) = (0.0, 0.0);
        for (bound, count) in buckets {
            if count >= rank {
                return from + (bound - from) * (rank - below) / (count - below);
            }
            (from, below) = (bound, count);
        }
        f64::NAN
    }

    /// The 95th percentile was displayed as 97 ms for 59 ms, with bounds 2.5 times apart.
    #[test]
    fn interpolated_quantiles_are_near_with_usual_bounds_only() {
        let shop = Entry::Route("shop").encode();
        let planted = |bounds: Bounds, scale: u64| {
            let mut figures = Aggregate::new(Limits { routes_max: 10, slow_ns: u64::MAX });
            figures = figures.bounded(bounds);
            for chunk in 0..100 {
                let mut batch = Batch::default();
                for n in 0..100_u64 {
                    // 20 to 60 ms, evenly, for a scale of 1,000.
                    let wall_ns = (20_000 + 4 * (chunk * 100 + n)) * scale;
                    let numbers = Numbers { status: 200, worker: 1, wall_ns, ..Numbers::default() };
                    let finished = Finished { numbers, report: &shop, ..Finished::default() };
                    batch.put(&finished);
                }
                figures.take(&batch, 1);
            }
            let mut page = Exposition::new(Format::Text);
            metrics(&figures, 0, &mut page);
            String::from_utf8(page.finish()).expect("text")
        };
        for scale in [40, 150, 1_000, 1_700, 9_000, 100_000] {
            let page = planted(Bounds::default(), scale);
            for q in [0.5, 0.9, 0.95, 0.99] {
                let truth = (20_000.0 + 40_000.0 * q) * scale as f64 / 1e9;
                let shown = quantile(q, &page);
                // The distance of two bounds is the limit; it is reached if all times of a bucket
                // are at its end.
                assert!((0.66..1.5).contains(&(shown / truth)), "{q}: {shown}, not {truth}");
            }
        }
        let shown = quantile(0.95, &planted(Bounds::default(), 1_000));
        assert!((shown / 0.058 - 1.0).abs() < 0.25, "{shown}");
        let coarse = [25, 50, 100].map(std::time::Duration::from_millis);
        let page = planted(Bounds::of(&coarse), 1_000);
        assert!(quantile(0.95, &page) > 1.25 * 0.058, "{page}");
        assert_eq!(page.matches("duration_seconds_bucket{route=").count(), 4);
    }

    #[test]
    fn metrics_contain_each_family_once() {
        let page = page(Format::Text);
        let names: Vec<_> = page.lines().filter(|l| l.starts_with("# TYPE")).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    }
}
