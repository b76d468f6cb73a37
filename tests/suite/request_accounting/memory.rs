//! Memory of PHP by route: the peak of its requests, and the memory that they keep.

use super::bench::{MODELS, sample, serving, started, total};
use samovar_testkit::{Server, eventually};

const LEAK_BYTES: i64 = 100_000;
const LARGE_BYTES: i64 = 20_000_000;

const WORK: &str = "$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
    if ($path === '/leak') { $GLOBALS['kept'][] = str_repeat('x', 100_000); }
    if ($path === '/large') { $text = str_repeat('y', 20_000_000); unset($text); }
    if ($path === '/drop') { unset($GLOBALS['kept']); }
    echo 'ok';";

fn of(server: &Server, family: &str, path: &str) -> i64 {
    let name = format!("samovar_request_memory_{family}{{route=\"index.php {path}\"}}");
    let page = super::bench::ask(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(&*name));
    line.map_or(0, |line| line.trim().parse().expect("a whole number"))
}

#[test]
fn peak_of_route_is_that_of_its_largest_request() {
    for model in MODELS {
        let server = started(serving(model, WORK), model);
        server.get("/large");
        server.get("/ok");
        eventually(model, || (of(&server, "peak_bytes", "/ok") > 0).then_some(()));
        let [large, small] = ["/large", "/ok"].map(|path| of(&server, "peak_bytes", path));
        assert!((LARGE_BYTES..LARGE_BYTES + 5_000_000).contains(&large), "{model}: {large}");
        assert!(small < 5_000_000, "{model}: {small}");
        let name = "samovar_request_memory_bytes_total{route=\"index.php /large\"}";
        assert_eq!(sample(&server, name), large.cast_unsigned(), "{model}: one request");
    }
}

#[test]
fn growth_is_that_of_the_leaking_route() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        // The first request is the baseline.
        for path in ["/ok", "/leak", "/ok", "/leak", "/ok", "/leak", "/large", "/ok"] {
            assert_eq!(server.get(path).text(), "ok", "{model}");
        }
        let seen = || total(&server, "samovar_http_requests_total", "\"index.php /ok\"");
        eventually(model, || (seen() == 4).then_some(()));
        let [leaked, ok] = ["/leak", "/ok"].map(|path| of(&server, "growth_bytes", path));
        let expected = if model == "resident" { 3 * LEAK_BYTES } else { 0 };
        assert!((expected..=expected + 60_000).contains(&leaked), "{model}: {leaked}");
        assert!(ok.abs() < 50_000, "{model}: {ok}");
        // Memory that a request frees counts, too.
        server.get("/drop");
        eventually(model, || {
            let dropped = of(&server, "growth_bytes", "/drop");
            (model != "resident" || dropped <= -(expected / 2)).then_some(())
        });
    }
}
