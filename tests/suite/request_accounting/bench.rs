//! A server with an admin listener, and the listener's figures of a route.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually, family};
use serde_json::Value;
use std::net::SocketAddr;

/// Execution models.
pub(crate) const MODELS: [&str; 3] = ["script", "checkpoint", "resident"];

/// A server that runs `work` (statements) for each request, in `model`.
pub(crate) fn serving(model: &str, work: &str) -> Start {
    let whole = match model {
        "script" => work.to_owned(),
        "checkpoint" => format!("Samovar\\checkpoint();\n{work}"),
        _ => format!("Samovar\\serve(function () {{\n{work}\n}});"),
    };
    with_admin(Server::script(&format!("<?php\n{whole}")))
}

pub(crate) fn with_admin(start: Start) -> Start {
    start.config("admin = '127.0.0.1:0'\n")
}

/// Starts the server and waits until its workers have booted.
pub(crate) fn started(start: Start, model: &str) -> Server {
    let server = start.start();
    eventually("workers of that model", || {
        let status = server.status();
        let workers = status["workers"].as_array()?;
        let is_there = |worker: &Value| worker["model"] == model && worker["state"] == "idle";
        workers.iter().all(is_there).then_some(())
    });
    server
}

/// CPU time of the workers so far, from the kernel's scheduler. They must be idle: then it waits
/// until all sleep, since the kernel adds up the time of a process when that stops running.
pub(crate) fn cpu_of_workers(server: &Server) -> u64 {
    let of = |pid: i32| {
        eventually("the worker sleeps", || {
            family::state_of(pid).filter(|state| state.starts_with('S'))
        });
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("it runs");
        text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).expect("a number")
    };
    server.worker_pids().into_iter().map(of).sum()
}

pub(crate) fn ask(server: &Server, path: &str) -> String {
    let status = server.status();
    let admin: SocketAddr =
        status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    Client::connect(admin).request(&Request::get(path)).text()
}

/// Figures of `route`, as soon as `requests` requests are counted.
pub(crate) fn figures(server: &Server, route: &str, requests: u64) -> Value {
    let path = format!(
        "/api/routes/{}",
        route.replace(' ', "%20").replace('/', "%2F").replace('?', "%3F")
    );
    eventually(&format!("{requests} requests of {route}"), || {
        let figures: Value = serde_json::from_str(&ask(server, &path)).ok()?;
        (figures["costs"]["requests"] == requests).then_some(figures)
    })
}

/// Number and total ns of the waits of this kind for peers with this end of their name.
pub(crate) fn waited(figures: &Value, kind: &str, peer: &str) -> (u64, u64) {
    let all = figures["waits"].as_array().expect("a list");
    let is_it = |wait: &&Value| {
        wait["kind"] == kind && wait["peer"].as_str().is_some_and(|name| name.ends_with(peer))
    };
    let number = |wait: &Value, key: &str| wait[key].as_u64().expect("a number");
    all.iter()
        .filter(is_it)
        .fold((0, 0), |(times, ns), wait| (times + number(wait, "times"), ns + number(wait, "ns")))
}

/// Sum of all samples of `/metrics` of this family that have this text in their labels.
pub(crate) fn total(server: &Server, family: &str, labels: &str) -> u64 {
    let page = ask(server, "/metrics");
    let of_family = page.lines().filter_map(|line| line.strip_prefix(family));
    let found = of_family.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels));
    let value = |rest: &str| rest.rsplit(' ').next()?.parse::<u64>().ok();
    found.filter_map(value).sum()
}

/// Value of the sample of `/metrics` with this name and these labels.
pub(crate) fn sample(server: &Server, name: &str) -> u64 {
    let page = ask(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    let value = line.unwrap_or_else(|| panic!("{name} is in\n{page}")).trim();
    value.parse().expect("a whole number")
}
