//! A shop with planted traffic: counts, failures, waits, statements, percentiles and memory of each
//! route are known, and every place that shows them agrees, in each execution model.
//!
//! A time is compared with two measurements around it, so a busy machine changes all three alike:
//! the script's own is shorter, the client's is longer.

use crate::request_accounting::bench::{
    MODELS, ask, figures, sample, serving, started, total, waited,
};
use samovar_testkit::{Server, eventually};
use serde_json::Value;
use std::time::Instant;

const SHOP: &str = r"
    $begin = hrtime(true);
    $path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    Samovar\route(trim($path, '/'));
    switch ($path) {
        case '/list':
            usleep(1000 * (int) $_GET['ms']);
            break;
        case '/product':
            $db = new PDO('sqlite::memory:');
            $db->exec('CREATE TABLE part (id INTEGER)');
            $part = $db->prepare('SELECT id FROM part WHERE id = ?');
            for ($n = 0; $n < 21; $n++) {
                $part->execute([$n]);
            }
            break;
        case '/checkout':
            http_response_code(500);
            throw new DomainException('planted');
        case '/export':
            $block = str_repeat('x', random_int(9 << 20, (9 << 20) + 1));
            break;
        case '/basket':
            http_response_code(409);
            break;
    }
    header('x-ns: ' . (hrtime(true) - $begin));
    echo 'done';
";

/// Durations of the requests for the list, in ms: each step of 2 from 2 to 80, in mixed order.
const DURATIONS: u64 = 40;
const PRODUCTS: u64 = 7;
const CHECKOUTS: u64 = 6;
const EXPORTS: u64 = 3;
const BASKETS: u64 = 5;
const ALL: u64 = DURATIONS + PRODUCTS + CHECKOUTS + EXPORTS + BASKETS;
/// Maximum error of a histogram, as a divisor.
const HISTOGRAM_ERROR: u64 = 100;

/// Times of the requests for the list in ns, sorted: the script's and the client's.
struct Listed {
    script: Vec<u64>,
    client: Vec<u64>,
}

fn send(server: &Server) -> Listed {
    let mut client = server.client();
    let mut listed = Listed { script: Vec::new(), client: Vec::new() };
    for n in 0..DURATIONS {
        // 17 and 40 have no common divisor, so each duration comes once.
        let ms = 2 * (n * 17 % DURATIONS + 1);
        let begin = Instant::now();
        let response = client.get(&format!("/list?ms={ms}"));
        listed.client.push(u64::try_from(begin.elapsed().as_nanos()).expect("short"));
        let own = response.header("x-ns").and_then(|ns| ns.parse().ok()).expect("a time");
        listed.script.push(own);
    }
    listed.script.sort_unstable();
    listed.client.sort_unstable();
    for (path, times, status) in [
        ("/product", PRODUCTS, 200),
        ("/checkout", CHECKOUTS, 500),
        ("/export", EXPORTS, 200),
        ("/basket", BASKETS, 409),
    ] {
        for _ in 0..times {
            assert_eq!(client.get(path).status, status, "{path}: {}", server.log());
        }
    }
    listed
}

/// Returns the percentile of sorted times: the smallest one that this share of them does not
/// exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

fn check_list(server: &Server, listed: &Listed, model: &str) {
    let found = figures(server, "list", DURATIONS);
    let number = |of: &Value| of.as_u64().expect("a number");
    let costs = &found["costs"];
    assert_eq!(number(&costs["errors"]), 0, "{model}: {found:#}");
    for (percent, key) in [(50, "p50_ns"), (95, "p95_ns"), (99, "p99_ns"), (100, "max_ns")] {
        let shown = number(&costs["wall"][key]);
        let (low, high) =
            (percentile(&listed.script, percent), percentile(&listed.client, percent));
        let range = low - low / HISTOGRAM_ERROR..=high + high / HISTOGRAM_ERROR;
        assert!(range.contains(&shown), "{model}: {key} {shown} is in {range:?}");
    }
    let (script, client) = (listed.script.iter().sum::<u64>(), listed.client.iter().sum::<u64>());
    assert!((script..=client).contains(&number(&costs["wall"]["sum_ns"])), "{model}: {costs:#}");
    assert!((script..=client).contains(&number(&costs["run_ns"])), "{model}: {costs:#}");
    let (sleeps, slept) = waited(&found, "sleep", "");
    let planned: u64 = (1..=DURATIONS).map(|n| 2_000_000 * n).sum();
    assert_eq!(sleeps, DURATIONS, "{model}: {found:#}");
    assert!((planned..=script).contains(&slept), "{model}: {slept} of {planned}");
    let waiting = number(&costs["waiting_ns"]);
    assert!((slept..=client).contains(&waiting), "{model}: {waiting} of {slept}");
    // A rollback is in the CPU time of a request, and not in its run.
    let spent = number(&costs["cpu"]["sum_ns"]) - number(&costs["rollback_ns"]).min(client);
    assert!(spent <= client - slept, "{model}: {costs:#}");
}

fn check_metrics(server: &Server, model: &str) {
    for (route, class, count) in [
        ("list", "2xx", DURATIONS),
        ("product", "2xx", PRODUCTS),
        ("checkout", "5xx", CHECKOUTS),
        ("export", "2xx", EXPORTS),
        ("basket", "4xx", BASKETS),
    ] {
        let labels = format!("{{route=\"{route}\",class=\"{class}\"}}");
        let found = sample(server, &format!("samovar_http_requests_total{labels}"));
        assert_eq!(found, count, "{model}: {labels}");
        let all = total(server, "samovar_http_requests_total", &format!("route=\"{route}\""));
        assert_eq!(all, count, "{model}: {route}");
    }
    let labels = "kind=\"uncaught\",class=\"DomainException\",route=\"checkout\"";
    let errors = sample(server, &format!("samovar_errors_total{{{labels}}}"));
    assert_eq!(errors, CHECKOUTS, "{model}");
    assert_eq!(total(server, "samovar_waits_total", "route=\"list\",kind=\"sleep\""), DURATIONS);
    assert_eq!(total(server, "samovar_model_requests_total", &format!("\"{model}\"")), ALL);
}

fn check_pages(server: &Server, model: &str) {
    let errors: Value = serde_json::from_str(&ask(server, "/api/errors")).expect("JSON");
    let groups = errors.as_array().expect("groups");
    let brief = |group: &Value| (group["count"].clone(), group["latest"]["class"].clone());
    let found: Vec<_> = groups.iter().map(brief).collect();
    assert_eq!(found, [(CHECKOUTS.into(), "DomainException".into())], "{model}: {errors:#}");
    let overview = ask(server, "/?range=15m");
    let share = (10_000 * CHECKOUTS + ALL / 2) / ALL;
    for expected in [
        format!("<dt>Requests</dt><dd>{ALL}<"),
        format!("<dd>{}.{:02} %", share / 100, share % 100),
    ] {
        assert!(overview.contains(&expected), "{model}: {expected}:\n{overview}");
    }
    let routes = ask(server, "/routes?range=15m");
    let row = routes.split("<tr>").find(|row| row.contains("name=checkout")).expect("a row");
    assert_eq!(row.matches(&format!(">{CHECKOUTS}<")).count(), 2, "calls and errors: {row}");
    let status = server.status();
    assert_eq!(status["requests_total"], ALL, "{model}: {status:#}");
    assert_eq!(status["responses_5xx_total"], CHECKOUTS, "{model}: {status:#}");
    eventually("the server is unhealthy", || {
        let health = server.status()["health"].to_string();
        health.contains("requests failed").then_some(())
    });
}

fn check_costs(server: &Server, model: &str) {
    let product = figures(server, "product", PRODUCTS);
    let statements = product["statements"].as_array().expect("a list");
    let part = statements.iter().find(|one| one["text"] == "SELECT id FROM part WHERE id = ?");
    let part = part.unwrap_or_else(|| panic!("{model}: {product:#}"));
    let keys = ["calls", "calls_max", "repeats_max", "repeating_requests"];
    let found = keys.map(|key| part[key].as_u64().expect("a number"));
    assert_eq!(found, [21 * PRODUCTS, 21, 21, PRODUCTS], "{model}: {part:#}");
    assert!(ask(server, "/route?name=product").contains("N+1: 21"), "{model}");
    let export = figures(server, "export", EXPORTS);
    let peak = export["costs"]["peak_bytes_max"].as_u64().expect("a number");
    assert!((9 << 20..11 << 20).contains(&peak), "{model}: {peak}");
}

#[test]
fn planted_figures_are_shown_everywhere() {
    for model in MODELS {
        let server = started(serving(model, SHOP).workers(2), model);
        let listed = send(&server);
        check_list(&server, &listed, model);
        eventually("all requests are counted", || {
            let count = total(&server, "samovar_http_requests_total", "");
            (count == ALL).then_some(())
        });
        check_metrics(&server, model);
        check_pages(&server, model);
        check_costs(&server, model);
        server.stop();
    }
}
