//! Requests, by route: waits, repetitions, and failures.

use super::figures::{mean_time, percent, share, waited};
use crate::check::{Check, Checked, Group};
use crate::facts::{Facts, NO_REQUESTS, REQUESTS_MIN};
use crate::finding::Findings;
use samovar_wire::RouteFacts;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "n-plus-one",
        group: Group::Requests,
        finds: "a statement that requests repeat from one line",
        why: "one query for all rows takes one round trip",
        run: n_plus_one,
    },
    Check {
        code: "slow-peer",
        group: Group::Requests,
        finds: "a peer that takes most of a route's time",
        why: "PHP cannot be faster than this peer",
        run: slow_peer,
    },
    Check {
        code: "dns-lookups",
        group: Group::Requests,
        finds: "requests that resolve a name",
        why: "the result is the same each time",
        run: dns_lookups,
    },
    Check {
        code: "session-lock",
        group: Group::Requests,
        finds: "requests that wait for their visitor's other requests",
        why: "a session file is locked until the session is closed",
        run: session_lock,
    },
    Check {
        code: "lock-wait",
        group: Group::Requests,
        finds: "requests that wait for a lock, except that of a session",
        why: "requests run one after another",
        run: lock_wait,
    },
    Check {
        code: "sleeps",
        group: Group::Requests,
        finds: "requests that call sleep() or usleep()",
        why: "the worker runs no other request meanwhile",
        run: sleeps,
    },
    Check {
        code: "disk-wait",
        group: Group::Requests,
        finds: "requests that wait for a disk",
        why: "files of each request belong on a tmpfs or in a cache",
        run: disk_wait,
    },
    Check {
        code: "static-through-php",
        group: Group::Requests,
        finds: "static files that PHP sends",
        why: "the server sends files without a worker",
        run: static_through_php,
    },
    Check {
        code: "not-found",
        group: Group::Requests,
        finds: "much CPU time for paths that do not exist",
        why: "scanners and missing files need no PHP",
        run: not_found,
    },
    Check {
        code: "route-errors",
        group: Group::Requests,
        finds: "a route that often fails",
        why: "the last minute of `errors` hides rare routes",
        run: route_errors,
    },
    Check {
        code: "fatal-errors",
        group: Group::Requests,
        finds: "requests that PHP ended: fatal errors, memory and time limits",
        why: "the response is incomplete or a 500",
        run: fatal_errors,
    },
    Check {
        code: "worker-deaths",
        group: Group::Requests,
        finds: "requests that failed because their worker died",
        why: "an extension or the memory of the machine",
        run: worker_deaths,
    },
    Check {
        code: "clients-leave",
        group: Group::Requests,
        finds: "clients that leave before the end of the response",
        why: "a sign of slow responses, or of timeouts of a proxy",
        run: clients_leave,
    },
    Check {
        code: "php-messages",
        group: Group::Requests,
        finds: "many warnings, notices and errors of PHP",
        why: "each one is formatted and logged by the request",
        run: php_messages,
    },
];

/// Share of a route's requests that repeat a statement from which on it is a finding.
const REPEATING_MIN: f64 = 0.01;
/// Share of a route's wall time that one peer must take.
const PEER_SHARE_MIN: f64 = 0.6;
/// Mean wall time of a request in ns below which a route's peers are not looked at.
const SLOW_NS_MIN: f64 = 20e6;
/// Requests of a route from which on its disk waits are not only those of a cold cache.
const WARM_REQUESTS_MIN: u64 = 200;
/// Share of a route's wall time for a small cause: name lookups, locks, the disk.
const WAIT_SHARE_MIN: f64 = 0.05;
/// Mean wait per request in ns for a small cause.
const WAIT_NS_MIN: f64 = 500_000.0;
/// Name lookups per request from which on they are a finding.
const LOOKUPS_MIN: f64 = 0.5;
/// Share of all CPU time for paths that do not exist.
const NOT_FOUND_SHARE_MIN: f64 = 0.2;
/// Share of a route's requests that fail.
const ERRORS_SHARE_MIN: f64 = 0.05;
/// Share of clients that leave.
const ABORTED_SHARE_MIN: f64 = 0.1;
/// Number of messages of PHP from which on they are not only those of a cold cache.
const MESSAGES_ALL_MIN: u64 = 20;
/// Messages of PHP per request.
const MESSAGES_MIN: f64 = 0.1;
/// Class of session files in waits.
const SESSION: &str = "session";
/// Route of paths that do not exist.
const NOT_FOUND: &str = "(not found)";

/// Extensions of files that a server sends without PHP.
const STATIC: [&str; 22] = [
    "avif",
    "css",
    "eot",
    "gif",
    "ico",
    "jpeg",
    "jpg",
    "js",
    "map",
    "mjs",
    "mp3",
    "mp4",
    "otf",
    "png",
    "svg",
    "ttf",
    "wasm",
    "webm",
    "webmanifest",
    "webp",
    "woff",
    "woff2",
];

fn n_plus_one(facts: &Facts, out: &mut Findings) -> Checked {
    for route in facts.routes()? {
        for statement in &route.repeated {
            let often = share(statement.repeating, route.requests);
            if often < REPEATING_MIN {
                continue;
            }
            let times = statement.repeats_max;
            let text = format!(
                "{} runs one statement up to {times} times per request: {}",
                route.route, statement.text
            );
            let hint = "load all rows with one statement (`IN (…)`, a join, eager loading of the \
                        ORM)";
            out.warning(text, hint)
                .value(format!("in {} of the requests", percent(often)))
                .place(&*statement.place)
                .gain(format!(
                    "{} of {} per request",
                    mean_time(statement.ns, route.requests),
                    mean_time(route.wall_ns, route.requests)
                ));
        }
    }
    Ok(())
}

fn slow_peer(facts: &Facts, out: &mut Findings) -> Checked {
    for route in facts.routes()? {
        let is_remote = |kind: &str| matches!(kind, "tcp" | "unix" | "udp");
        let Some(wait) = route.waits.iter().find(|wait| is_remote(&wait.kind)) else { continue };
        let part = share(wait.ns, route.wall_ns);
        if part < PEER_SHARE_MIN || share(wait.ns, route.requests) < SLOW_NS_MIN {
            continue;
        }
        let text = format!("{} waits for {} most of the time", route.route, wait.peer);
        let hint = "look at its statements (dashboard, page Statements), cache its results, or run \
                    independent queries concurrently (Samovar\\run)";
        out.note(text, hint).value(percent(part)).place(&*route.route).gain(format!(
            "{} of {} per request",
            mean_time(wait.ns, route.requests),
            mean_time(route.wall_ns, route.requests)
        ));
    }
    Ok(())
}

fn dns_lookups(facts: &Facts, out: &mut Findings) -> Checked {
    for route in facts.routes()? {
        let (times, ns) = waited(route, "dns", |_| true);
        let each = share(times, route.requests);
        if each < LOOKUPS_MIN {
            continue;
        }
        let text = format!("{} resolves names in its requests", route.route);
        let hint = "run a caching resolver on this machine (systemd-resolved, unbound), put the \
                    name into /etc/hosts, or keep the connection open";
        let value = format!("{each:.1} lookups per request");
        let cost = format!("{} per request", mean_time(ns, route.requests));
        // Without a measurable cost it is only a remark.
        let is_slow = share(ns, route.requests) >= WAIT_NS_MIN;
        let found = if is_slow { out.warning(text, hint) } else { out.note(text, hint) };
        found.value(value).place(&*route.route).gain(cost);
    }
    Ok(())
}

/// Adds a warning for each route that waits for this kind of peer.
fn waits(
    facts: &Facts,
    out: &mut Findings,
    (kind, what, hint): (&str, &str, &str),
    peer: fn(&str) -> bool,
) -> Checked {
    waits_of(facts, out, (kind, what, hint), peer, 0)
}

/// The same for routes with this number of requests.
fn waits_of(
    facts: &Facts,
    out: &mut Findings,
    (kind, what, hint): (&str, &str, &str),
    peer: fn(&str) -> bool,
    requests_min: u64,
) -> Checked {
    for route in facts.routes()?.into_iter().filter(|route| route.requests >= requests_min) {
        let (_, ns) = waited(route, kind, peer);
        let part = share(ns, route.wall_ns);
        if part < WAIT_SHARE_MIN || share(ns, route.requests) < WAIT_NS_MIN {
            continue;
        }
        out.warning(format!("{} {what}", route.route), hint)
            .value(format!("{} of its time", percent(part)))
            .place(&*route.route)
            .gain(format!("{} per request", mean_time(ns, route.requests)));
    }
    Ok(())
}

fn session_lock(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "call session_write_close() as soon as the session is written, or open it with \
                read_and_close";
    waits(facts, out, ("lock", "waits for the lock of its session", hint), |p| p.contains(SESSION))
}

fn lock_wait(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "hold the lock for less time, or split it; the dashboard's page of the route has \
                the position in PHP";
    waits(facts, out, ("lock", "waits for a lock", hint), |peer| !peer.contains(SESSION))
}

fn sleeps(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "poll in the client, or push a job to a queue";
    waits(facts, out, ("sleep", "sleeps", hint), |_| true)
}

fn disk_wait(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "put files of each request (sessions, caches) on a tmpfs, or add memory for the \
                page cache";
    if !facts.routes()?.iter().any(|route| route.requests >= WARM_REQUESTS_MIN) {
        return Err(NO_REQUESTS);
    }
    waits_of(facts, out, ("file", "waits for a disk", hint), |_| true, WARM_REQUESTS_MIN)
}

/// Returns whether a route's name ends with the path of a static file.
fn is_static(route: &RouteFacts) -> bool {
    let name = route.route.rsplit(' ').next().unwrap_or_default();
    let Some((before, extension)) = name.rsplit_once('.') else { return false };
    before.contains('/') && STATIC.contains(&extension.to_ascii_lowercase().as_str())
}

fn static_through_php(facts: &Facts, out: &mut Findings) -> Checked {
    let total = facts.total()?;
    let routes = facts.routes.iter().flatten();
    let files: Vec<_> = routes.filter(|route| route.run > 0 && is_static(route)).collect();
    let (run, cpu_ns) = files.iter().fold((0, 0), |(run, ns), route| {
        (u64::saturating_add(run, route.run), u64::saturating_add(ns, route.cpu_ns))
    });
    let Some(first) = files.iter().max_by_key(|route| route.run) else { return Ok(()) };
    if run < REQUESTS_MIN {
        return Ok(());
    }
    let text = format!("PHP sends static files, such as {}", first.route);
    let hint = "put the files below the document root, or send them with X-Accel-Redirect or \
                X-Sendfile (`sendfile`)";
    out.warning(text, hint)
        .value(format!("{} of the requests to PHP", percent(share(run, total.run))))
        .place(&*first.route)
        .gain(format!("{} of CPU time per file", mean_time(cpu_ns, run)));
    Ok(())
}

fn not_found(facts: &Facts, out: &mut Findings) -> Checked {
    let total = facts.total()?;
    for route in facts.routes.iter().flatten() {
        let is_it = route.route == NOT_FOUND || route.route.ends_with(": (not found)");
        let part = share(route.cpu_ns, total.cpu_ns);
        if is_it && route.run >= REQUESTS_MIN && part >= NOT_FOUND_SHARE_MIN {
            let hint = "answer known bad paths with a `[[location]]` (`status`), and correct links \
                        to missing files; the access log has the paths";
            out.warning("requests to paths that do not exist take much of the CPU time", hint)
                .value(percent(part))
                .place(&*route.route)
                .gain(format!("{} of CPU time per request", mean_time(route.cpu_ns, route.run)));
        }
    }
    Ok(())
}

fn route_errors(facts: &Facts, out: &mut Findings) -> Checked {
    for route in facts.routes()? {
        let part = share(route.errors, route.requests);
        if part >= ERRORS_SHARE_MIN {
            let hint = "see the page Errors of the dashboard, or the log";
            out.warning(format!("{} fails", route.route), hint)
                .value(format!("{} of {} requests", percent(part), route.requests))
                .place(&*route.route);
        }
    }
    Ok(())
}

/// Adds a warning for each route with such an end; a few requests suffice.
fn ends(
    facts: &Facts,
    out: &mut Findings,
    (what, hint): (&str, &str),
    count: fn(&RouteFacts) -> u64,
) -> Checked {
    let total = facts.total()?;
    for route in facts.routes.iter().flatten().filter(|route| count(route) > 0) {
        let requests = if count(route) == 1 { "request" } else { "requests" };
        out.warning(format!("{what} {}", route.route), hint)
            .value(format!("{} {requests}", count(route)))
            .place(&*route.route);
    }
    if total.requests == 0 { Err(NO_REQUESTS) } else { Ok(()) }
}

fn fatal_errors(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "the log has the error and the line; so has the page Errors of the dashboard";
    ends(facts, out, ("PHP ended requests of", hint), |route| route.fatal)
}

fn worker_deaths(facts: &Facts, out: &mut Findings) -> Checked {
    let hint = "the log has the signal; an out-of-memory kill is in the kernel's log";
    ends(facts, out, ("workers died in requests of", hint), |route| route.died)
}

fn clients_leave(facts: &Facts, out: &mut Findings) -> Checked {
    for route in facts.routes()? {
        let part = share(route.aborted, route.requests);
        if part >= ABORTED_SHARE_MIN {
            let hint = "compare the response time with the timeout of the proxy and of the client";
            out.note(format!("clients of {} leave before the end", route.route), hint)
                .value(percent(part))
                .place(&*route.route);
        }
    }
    Ok(())
}

fn php_messages(facts: &Facts, out: &mut Findings) -> Checked {
    let status = facts.status()?;
    let requests = status.front.pools.requests_total;
    if requests < REQUESTS_MIN {
        return Err(NO_REQUESTS);
    }
    let of = |one: &samovar_wire::MessagesStatus| {
        [one.error_total, one.warning_total, one.notice_total, one.deprecated_total]
            .into_iter()
            .fold(0, u64::saturating_add)
    };
    let all = status.applications();
    let messages = all.iter().map(|one| of(one.messages)).fold(0, u64::saturating_add);
    let each = share(messages, requests);
    if messages >= MESSAGES_ALL_MIN && each >= MESSAGES_MIN {
        let hint = "correct the code; deprecations also become errors in a later PHP (`samovar \
                    migrate check`)";
        out.warning("PHP reports messages in many requests", hint)
            .value(format!("{each:.1} per request"));
    }
    Ok(())
}
