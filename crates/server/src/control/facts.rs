//! Facts about PHP, routes and the machine: the response to `facts`.

pub(crate) mod machine;

use super::report::StatusSources;
use samovar_config::DEFAULT_POOL;
use samovar_insight::{End, Insight, RouteFigures, StatementFigures};
use samovar_supervisor::{PhpSetup, Report};
use samovar_wire::{
    FactsResponse, PhpFacts, ROUTE_STATEMENTS_MAX, ROUTE_WAITS_MAX, ROUTES_MAX, RouteFacts,
    StatementFacts, WaitLine,
};
use std::cmp::Reverse;

/// Returns the facts that `samovar doctor` checks, in addition to the status.
pub(crate) fn facts(sources: &StatusSources) -> FactsResponse {
    let is_one = sources.pools.is_empty();
    let first = (DEFAULT_POOL, sources.supervisor.report());
    let others = sources.pools.iter().map(|pool| (&*pool.name, pool.supervisor.report()));
    let all: Vec<_> = std::iter::once(first).chain(others).collect();
    let workers = all.iter().flat_map(|(_, report)| &report.workers).map(|worker| worker.pid);
    let php = |(name, report): &(&str, Report)| {
        php(if is_one { "" } else { name }, &report.php, report.setup.as_deref())
    };
    FactsResponse {
        php: all.iter().map(php).collect(),
        routes: sources.insight.as_deref().map(routes),
        machine: machine::facts(workers),
        settings: (*sources.settings).clone(),
    }
}

/// Returns the facts about a PHP; unknown ones are empty.
fn php(pool: &str, version: &str, setup: Option<&PhpSetup>) -> PhpFacts {
    let known =
        PhpFacts { pool: pool.to_owned(), version: version.to_owned(), ..PhpFacts::default() };
    let Some(setup) = setup else { return known };
    PhpFacts {
        root: setup.root.clone(),
        script: setup.script.clone(),
        directives: setup.directives.clone(),
        extensions: setup.extensions.clone(),
        environment: Some(setup.environment.clone()),
        ..known
    }
}

fn routes(insight: &Insight) -> Vec<RouteFacts> {
    let figures = insight.figures();
    let mut routes: Vec<_> = figures.routes().collect();
    routes.sort_by_key(|(_, route)| Reverse(route.costs.cpu.sum_ns()));
    routes.iter().take(ROUTES_MAX).map(|(name, figures)| route(name, figures)).collect()
}

fn route(name: &str, figures: &RouteFigures) -> RouteFacts {
    let costs = &figures.costs;
    let ended = |end: End| costs.by_end[end as usize];
    let mut waits: Vec<_> = figures.waits().collect();
    waits.sort_by_key(|(_, _, wait)| Reverse(wait.ns));
    let wait = |(kind, peer, wait): (&str, &str, &samovar_insight::WaitFigures)| WaitLine {
        kind: kind.to_owned(),
        peer: peer.to_owned(),
        times: wait.times,
        ns: wait.ns,
    };
    RouteFacts {
        route: name.to_owned(),
        requests: costs.requests,
        run: costs.cpu.count(),
        errors: costs.errors(),
        died: ended(End::Died) + ended(End::Cut),
        fatal: ended(End::Fatal) + ended(End::Overtime),
        aborted: ended(End::Aborted),
        wall_ns: costs.wall.sum_ns(),
        run_ns: costs.run_ns,
        cpu_ns: costs.cpu.sum_ns(),
        queue_ns: costs.queue.sum_ns(),
        waiting_ns: costs.waiting_ns,
        cpu_delay_ns: figures.cpu_delay_ns,
        faults_major: costs.faults_major,
        peak_bytes_max: costs.peak_bytes_max,
        bytes_out: costs.bytes_out,
        waits: waits.into_iter().take(ROUTE_WAITS_MAX).map(wait).collect(),
        repeated: figures.repeated_statements(ROUTE_STATEMENTS_MAX).iter().map(statement).collect(),
    }
}

fn statement(figures: &StatementFigures) -> StatementFacts {
    StatementFacts {
        text: figures.text.to_string(),
        calls: figures.calls,
        requests: figures.requests,
        repeating: figures.repeating,
        repeats_max: figures.repeats_max,
        ns: figures.ns,
        place: figures.place().unwrap_or_default(),
    }
}
