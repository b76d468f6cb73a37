//! `/api/…`: figures as JSON. Times in ns, sizes in bytes.

use crate::comparisons::{Change, RelativeChange, ShareChange};
use crate::planner::Planned;
use crate::query::Query;
use crate::range::{Period, Range};
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use samovar_insight::store::{RouteMinute, RouteSum};
use samovar_insight::{
    Aggregate, Costs, ErrorGroup, Histogram, Model, RecentRequest, RouteFigures, Series,
};
use serde_json::{Value, json};

/// Maximum number of requests in a list.
const REQUESTS_MAX: usize = 100;

pub(super) fn respond(path: &str, query: &Query, sources: &Sources) -> AdminResponse {
    if path == "status" {
        return response::json(&sources.host.status());
    }
    if path == "health" {
        let health = samovar_wire::judged(&sources.host.status());
        let code = if health.healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        return response::json_with(code, &health);
    }
    if path == "plan" {
        return plan(sources);
    }
    let Some(insight) = &sources.insight else { return response::not_found() };
    let now = samovar_insight::now();
    let range = match sources.range(query, now) {
        Ok(range) => range,
        Err(invalid) => {
            let said = json!({"error": invalid.what, "hint": invalid.hint});
            return response::json_with(StatusCode::BAD_REQUEST, &said);
        }
    };
    if range.is_given()
        && let Some(found) = of_range(path, &Asked { range, now, sources })
    {
        return response::json(&found);
    }
    let figures = insight.figures();
    let stored = |id: &str| sources.store().and_then(|store| store.request(id).ok().flatten());
    let name = |of: &str| {
        let encoded = path.strip_prefix(of)?;
        percent_decode_str(encoded).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    let found = match path {
        "overview" => Some(overview(&figures)),
        "routes" => Some(routes(&figures)),
        "requests" => Some(requests(&figures)),
        "errors" => Some(figures.errors().latest().into_iter().map(error).collect()),
        _ => match (name("routes/"), name("requests/")) {
            (Some(name), _) => figures.route(&name).map(|found| route(&name, found)),
            (_, Some(id)) => {
                let kept = figures.request(&id).map(|kept| json!(**kept));
                // The figures are unlocked while the disk is read.
                drop(figures);
                let found = kept.or_else(|| stored(&id).map(|kept| json!(kept)));
                return found.map_or_else(response::not_found, |value| response::json(&value));
            }
            _ => None,
        },
    };
    found.map_or_else(response::not_found, |value| response::json(&value))
}

/// Returns the capacity plan: 503 while the first one is computed, 409 if there cannot be one.
fn plan(sources: &Sources) -> AdminResponse {
    match sources.plan(samovar_insight::now()) {
        Planned::Computing => {
            let hint = "ask again in some seconds";
            let said = json!({"error": "the plan is being computed", "hint": hint});
            response::json_with(StatusCode::SERVICE_UNAVAILABLE, &said)
        }
        Planned::Done { plan: Err(problem), .. } => {
            let said = json!({"error": problem.message(), "hint": problem.hint()});
            response::json_with(StatusCode::CONFLICT, &said)
        }
        Planned::Done { at, plan: Ok(plan) } => {
            response::json(&json!({"computed_at": at, "plan": *plan}))
        }
    }
}

/// A query with a range.
struct Asked<'a> {
    range: Range,
    now: u64,
    sources: &'a Sources,
}

/// Returns the data of a path in a range; `None` if the path has no data of ranges.
fn of_range(path: &str, asked: &Asked) -> Option<Value> {
    let Asked { range, now, sources } = asked;
    let resolved = sources.resolve(range, *now);
    let (period, other) = (resolved.period, resolved.against.clone().ok().flatten());
    let mut missing = Vec::new();
    let mut found = match path {
        "overview" | "routes" => {
            let sums = sources.sums_of(range, period, *now);
            let then = other.map(|other| sources.sums(other, *now));
            missing.push(sums.missing.clone());
            missing.extend(then.iter().map(|then| then.missing.clone()));
            if path == "overview" {
                let total = then.as_ref().map(|then| then.total());
                json!({"total": compared(&sums.total(), total.as_ref())})
            } else {
                let mut names: Vec<_> = sums.routes.keys().collect();
                names.sort();
                let row = |name: &String| {
                    let then = then.as_ref().map(|then| then.routes.get(name));
                    let mut row = compared(&sums.routes[name], then.flatten());
                    row["route"] = json!(name);
                    row
                };
                json!({"routes": names.into_iter().map(row).collect::<Vec<_>>()})
            }
        }
        "requests" => {
            let figures = sources.insight.as_ref()?.figures();
            let inside = figures.kept().latest(REQUESTS_MAX, |kept| {
                period.contains(kept.numbers.began_unix_us / 1_000_000)
            });
            let requests: Vec<_> = inside.iter().map(|kept| brief(kept)).collect();
            json!({"requests": requests})
        }
        _ => {
            let name = path.strip_prefix("routes/")?;
            let name = percent_decode_str(name).decode_utf8().ok()?;
            let timeline = sources.timeline(Some(&name), period, *now);
            let then = other.map(|other| sources.route_in(&name, other, *now));
            missing.push(timeline.missing.clone());
            missing.extend(then.iter().map(|(_, missing)| missing.clone()));
            let whole = |minute: &RouteMinute| costs(&Costs::of_minute(minute));
            let pieces: Vec<_> = timeline.pieces.iter().map(whole).collect();
            let now = timeline.sum();
            json!({
                "route": name,
                "costs": whole(&now),
                "before": then.as_ref().map(|(then, _)| whole(then)),
                "waits": now.waits,
                "timers": now.timers,
                "from": timeline.from,
                "step_seconds": timeline.step,
                "pieces": pieces,
            })
        }
    };
    let seconds = |period: Period| json!({"from": period.from, "to": period.to});
    missing.retain(|why| !why.is_empty());
    missing.extend(resolved.against.err());
    found["range"] = seconds(period);
    found["compared_with"] = other.map_or(Value::Null, seconds);
    found["missing"] = json!(missing.first());
    Some(found)
}

/// Returns sums, those of the other period, and the changes.
fn compared(now: &RouteSum, then: Option<&RouteSum>) -> Value {
    let change = then.map(|then| Change::of(now, then)).unwrap_or_default();
    let relative = |of: Option<RelativeChange>| {
        of.map(|of| interval([of.value, of.low, of.high], of.is_significant()))
    };
    let share = |of: ShareChange| interval([of.value, of.low, of.high], of.is_significant());
    json!({
        "costs": sums(now),
        "before": then.map(sums),
        "change": {
            "p95": relative(change.p95),
            "cpu": relative(change.cpu),
            "errors": change.errors.map(share),
        },
    })
}

fn interval([value, low, high]: [f64; 3], is_significant: bool) -> Value {
    json!({"value": value, "low": low, "high": high, "significant": is_significant})
}

fn sums(of: &RouteSum) -> Value {
    json!({
        "requests": of.requests,
        "errors": of.errors,
        "wall": times(&of.wall),
        "cpu": times(&of.cpu),
        "queue_ns": of.queue_ns,
        "run_ns": of.run_ns,
        "waiting_ns": of.waiting_ns,
        "rollback_ns": of.rollback_ns,
        "peak_bytes_max": of.peak_bytes_max,
    })
}

fn overview(figures: &Aggregate) -> Value {
    let (routes, beyond) = figures.routes_used();
    let models: Value = Model::ALL
        .into_iter()
        .map(|model| (model.name().to_owned(), costs(figures.of_model(model))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "total": costs(&figures.total()),
        "models": models,
        "routes": routes,
        "requests_beyond_routes_max": beyond,
        "seconds": series(figures.seconds()),
        "minutes": series(figures.minutes()),
    })
}

fn routes(figures: &Aggregate) -> Value {
    figures
        .routes()
        .map(|(name, found)| json!({"route": name, "costs": costs(&found.costs)}))
        .collect()
}

fn requests(figures: &Aggregate) -> Value {
    figures.kept().latest(REQUESTS_MAX, |_| true).iter().map(|kept| brief(kept)).collect()
}

fn brief(kept: &RecentRequest) -> Value {
    json!({
        "id": kept.id,
        "route": kept.route,
        "method": kept.method,
        "path": kept.path,
        "status": kept.numbers.status,
        "began_unix_us": kept.numbers.began_unix_us,
        "wall_ns": kept.numbers.wall_ns,
        "cpu_ns": kept.numbers.cpu_ns,
    })
}

/// Returns a group of errors.
fn error(group: &ErrorGroup) -> Value {
    let routes: serde_json::Map<_, _> =
        group.routes().map(|(route, count)| (route.to_owned(), json!(count))).collect();
    let requests: Vec<_> = group.requests().map(|kept| brief(kept)).collect();
    json!({
        "id": format!("{:016x}", group.id),
        "count": group.count,
        "first_at": group.first_at,
        "last_at": group.last_at,
        "first_generation": group.first_generation,
        "last_generation": group.last_generation,
        "first_release": group.first_release,
        "last_release": group.last_release,
        "routes": routes,
        "requests": requests,
        "latest": group.latest,
    })
}

fn route(name: &str, found: &RouteFigures) -> Value {
    let waits: Vec<_> = found
        .waits()
        .map(|(kind, peer, w)| json!({"kind": kind, "peer": peer, "times": w.times, "ns": w.ns}))
        .collect();
    let timers: Vec<_> = found
        .timers()
        .map(|(tags, t)| {
            json!({
                "tags": tags,
                "hits": t.hits,
                "requests": t.requests,
                "wall_ns": t.wall_ns,
                "user_ns": t.user_ns,
                "system_ns": t.system_ns,
            })
        })
        .collect();
    let tags: Vec<_> = found
        .tags()
        .map(|(name, value, requests)| json!({"name": name, "value": value, "requests": requests}))
        .collect();
    let statements: Vec<_> = found
        .statements()
        .iter()
        .map(|s| {
            json!({
                "kind": s.kind,
                "text": s.text.as_ref(),
                "calls": s.calls,
                "requests": s.requests,
                "calls_max": s.calls_max,
                "ns": s.ns,
                "rows": s.rows,
                "file": s.file,
                "line": s.line,
                "repeats_max": s.repeats_max,
                "repeating_requests": s.repeating,
            })
        })
        .collect();
    let histogram = found.costs.wall.filled();
    json!({
        "route": name,
        "costs": costs(&found.costs),
        "waits": waits,
        "timers": timers,
        "tags": tags,
        "statements": statements,
        "cpu_delay_ns": found.cpu_delay_ns,
        "wall_histogram": histogram,
    })
}

fn times(of: &Histogram) -> Value {
    json!({
        "count": of.count(),
        "sum_ns": of.sum_ns(),
        "p50_ns": of.quantile_ns(0.5),
        "p95_ns": of.quantile_ns(0.95),
        "p99_ns": of.quantile_ns(0.99),
        "max_ns": of.max_ns(),
    })
}

fn costs(of: &Costs) -> Value {
    json!({
        "requests": of.requests,
        "errors": of.errors(),
        "retries": of.retries,
        "wall": times(&of.wall),
        "queue": times(&of.queue),
        "cpu": times(&of.cpu),
        "waiting": times(&of.waiting),
        "run_ns": of.run_ns,
        "waiting_ns": of.waiting_ns,
        "rollback_ns": of.rollback_ns,
        "rollback_pages": of.rollback_pages,
        "faults_minor": of.faults_minor,
        "faults_major": of.faults_major,
        "switches_voluntary": of.switches_voluntary,
        "switches_involuntary": of.switches_involuntary,
        "peak_bytes_max": of.peak_bytes_max,
        "peak_bytes": of.peak_bytes,
        "grown_bytes": of.grown_bytes,
        "bytes_in": of.bytes_in,
        "bytes_out": of.bytes_out,
    })
}

fn series(of: &Series) -> Value {
    let moments: Vec<_> = of
        .iter()
        .map(|m| {
            json!({
                "at": m.at,
                "requests": m.requests,
                "errors": m.errors,
                "wall_ns": m.wall_ns,
                "queue_ns": m.queue_ns,
                "queue_ns_max": m.queue_ns_max,
                "cpu_ns": m.cpu_ns,
                "rollback_ns": m.rollback_ns,
                "waiting_ns": m.waiting_ns,
                "front_ns": m.front_ns,
                "heat": m.heat,
            })
        })
        .collect();
    json!({"step_seconds": of.step(), "moments": moments})
}
