//! A page of a framework: the sum of its functions' CPU time equals the page's CPU time without
//! tracing.

#![allow(clippy::cast_precision_loss)] // Counts of requests.

use crate::calls::{calls, graph, text};
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, workspace};
use serde_json::Value;
use std::collections::HashMap;

const TARGET: &str = "/";
const ROUTE: &str = "resident.php /";
/// Requests of each kind in a round. For a measurement, set `CALLS_REQUESTS=100`.
const REQUESTS: usize = 15;
/// Maximum number of rounds; the first undisturbed one suffices. `CALLS_ROUNDS=100` runs 100 rounds
/// and prints their spread.
const ROUNDS: usize = 12;
/// A tolerance of 25 %: the cost of resources shared between cores varies over time. On a quiet
/// machine the deviation is 5 %.
const FACTOR_MAX: f64 = 1.25;

fn from_environment(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Number of requests so far, and the sum of all functions' own CPU time in ns.
fn own_cpu(server: &Server) -> (f64, f64) {
    let Some(found) = graph(server, ROUTE) else { return (0.0, 0.0) };
    let all = found["functions"].as_array().into_iter().flatten();
    let sum = all.filter_map(|function| function["cpu_own"].as_f64()).sum();
    (found["requests"].as_f64().unwrap_or(0.0), sum)
}

/// CPU time in ns of each request, by the ID that was sent with it. It is absent if the worker
/// reported it too late for the log line.
fn logged(server: &Server) -> HashMap<String, Option<f64>> {
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some((line["user_agent"].as_str()?.to_owned(), line["cpu_ms"].as_f64().map(|ms| ms * 1e6)))
    };
    server.stdout().lines().filter_map(line).collect()
}

struct Page<'a> {
    server: &'a Server,
    client: Client,
    signature: &'a str,
    asked: usize,
}

impl Page<'_> {
    fn ask(&mut self, is_traced: bool) -> String {
        self.asked += 1;
        let id = format!("{}-{is_traced}", self.asked);
        let request = Request::get(TARGET).header("User-Agent", &id);
        let request =
            if is_traced { request.header("X-Samovar-Trace", self.signature) } else { request };
        assert_eq!(self.client.request(&request).status, 200);
        id
    }

    /// Sends requests until one is traced: the tracing worker may be busy with the previous one.
    fn ask_traced(&mut self) -> String {
        let before = self.server.status()["requests_traced_total"].as_u64();
        eventually("a traced request", || {
            let id = self.ask(true);
            (self.server.status()["requests_traced_total"].as_u64() > before).then_some(id)
        })
    }

    /// Returns the functions' total, and the traced requests' CPU time including the cost of
    /// tracing. Both are multiples of an untraced request's CPU time.
    fn round(&mut self, requests: usize) -> (f64, f64) {
        let (mut plain, mut traced) = (Vec::new(), Vec::new());
        let from = own_cpu(self.server);
        for _ in 0..requests {
            plain.push(self.ask(false));
            traced.push(self.ask_traced());
        }
        let (count, sum) = eventually("all their graphs", || {
            let now = own_cpu(self.server);
            let new = (now.0 - from.0, now.1 - from.1);
            (new.0 >= traced.len() as f64).then_some(new)
        });
        let costs = eventually("all their lines", || {
            let costs = logged(self.server);
            plain.iter().chain(&traced).all(|id| costs.contains_key(id)).then_some(costs)
        });
        let mean = |ids: &[String]| {
            let known: Vec<_> = ids.iter().filter_map(|id| costs[id]).collect();
            known.iter().sum::<f64>() / known.len().max(1) as f64
        };
        let truth = mean(&plain);
        (sum / count / truth, mean(&traced) / truth)
    }
}

#[test]
fn function_times_of_page_add_up_to_request_time() {
    let copy = copy_of(&workspace().join("examples/symfony"));
    let config = "[profile]\ntrace_key = 'a key of a good length'\n";
    let server = Server::at(copy.path().join("public/resident.php")).workers(1).config(config);
    let server = server.args(["--access-log", "-", "--access-log-format", "json"]).start();
    let signature = text(&calls(&server, &["--sign", "1h"]).stdout).trim().to_owned();
    let client = server.client();
    let mut page = Page { server: &server, client, signature: &signature, asked: 0 };
    let rounds = from_environment("CALLS_ROUNDS", 0);
    // The first requests load files that later ones find loaded.
    page.round(3);
    let mut seen = Vec::new();
    for _ in 0..rounds.max(ROUNDS) {
        let (corrected, raw) = page.round(from_environment("CALLS_REQUESTS", REQUESTS));
        println!(
            "{corrected:.3} of the CPU time without tracing; {raw:.3} with what tracing takes"
        );
        seen.push((corrected, raw));
        let is_near = (1.0 / FACTOR_MAX..FACTOR_MAX).contains(&corrected);
        // Tracing cost that is not subtracted would be clearly visible: a page makes a thousand
        // calls.
        if rounds == 0 && is_near && raw - 1.0 > 2.0 * (corrected - 1.0).abs() {
            return;
        }
    }
    assert!(rounds > 0, "the functions do not come to what the page takes: {seen:?}");
}
