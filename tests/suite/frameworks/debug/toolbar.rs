//! The toolbar of a page links to the profile of its own request.

use super::{Bench, developed};
use crate::frameworks::shop::Model;
use crate::frameworks::visitor::{Visitor, between};
use samovar_testkit::http::Response;
use samovar_testkit::{Oracle, eventually};
use std::time::{SystemTime, UNIX_EPOCH};

/// The profiler rounds to whole milliseconds, twice.
const ROUNDING_MS: f64 = 2.0;

#[test]
fn toolbar_with_php_fpm_shows_own_request() {
    let shop = developed();
    let oracle = Oracle::start(&shop.public());
    profiles(&mut Visitor::new(oracle.address()), || ());
}

#[test]
fn toolbar_in_script_model_shows_own_request() {
    profiled(Model::Script);
}

#[test]
fn toolbar_in_resident_model_shows_own_request() {
    profiled(Model::Resident);
}

#[test]
fn toolbar_in_checkpoint_model_shows_own_request() {
    profiled(Model::Checkpoint);
}

fn profiled(model: Model) {
    let bench = Bench::start(model);
    // Takes some time, which must not count as a request's.
    profiles(&mut bench.visitor(), || drop(bench.server.status()));
}

fn profiles(visitor: &mut Visitor, pause: impl Fn()) {
    for (target, route) in [("/", "home"), ("/products/2", "product"), ("/", "home")] {
        pause();
        let sent = now_ms();
        let page = visitor.get(target);
        let received = now_ms();
        assert_eq!(page.status, 200, "{}", page.text());
        let token = token_of(&page);
        assert!(page.text().contains(&format!("Sfjs.loadToolbar('{token}')")), "no toolbar");
        let toolbar = profile(visitor, &format!("/_wdt/{token}"));
        assert_eq!(piece(&toolbar, "HTTP status"), "200 OK");
        assert_eq!(piece(&toolbar, "Route name"), route);
        let memory = piece(&toolbar, "Peak memory usage");
        assert!(number(memory, " MiB") > 0.0, "{memory}");
        assert!(number(piece(&toolbar, "Total time"), " ms") > 0.0);
        let begun =
            first_event_ms(visitor, &token) - number(piece(&toolbar, "Initialization time"), " ms");
        assert!(
            (sent - ROUNDING_MS..=received + ROUNDING_MS).contains(&begun),
            "{target}: sent at {sent}, begun at {begun}, received at {received}"
        );
    }
    dumps(visitor);
}

/// Values passed to `dump()` appear only in the toolbar of their own page.
fn dumps(visitor: &mut Visitor) {
    for (name, other) in [("assam", "sencha"), ("sencha", "assam")] {
        let page = visitor.get(&format!("/ways/dump?name={name}"));
        assert!(page.text().starts_with("<html><body>dumped"), "{}", page.text());
        let toolbar = profile(visitor, &format!("/_wdt/{}", token_of(&page)));
        assert!(toolbar.contains("sf-toolbar-block-dump"), "{toolbar}");
        assert!(toolbar.contains(&format!(">{name}</span>")), "{name}: {toolbar}");
        assert!(!toolbar.contains(&format!(">{other}</span>")), "{other}: {toolbar}");
        assert!(toolbar.contains("WaysController.php"), "{toolbar}");
    }
    let page = visitor.get("/");
    let toolbar = profile(visitor, &format!("/_wdt/{}", token_of(&page)));
    assert!(!toolbar.contains("sf-dump-str"), "{toolbar}");
}

/// Waits for the profile: it is written after the response was sent.
fn profile(visitor: &mut Visitor, target: &str) -> String {
    eventually(target, || {
        let profile = visitor.look(target);
        (profile.status == 200).then(|| profile.text())
    })
}

/// The token that names the page's profile. The page's profile link ends with it.
fn token_of(page: &Response) -> String {
    let token = page.header("x-debug-token").expect("the profiler sets it").to_owned();
    let link = page.header("x-debug-token-link").expect("the profiler sets it");
    assert!(link.ends_with(&format!("/_profiler/{token}")), "{link}");
    token
}

/// Time of the request's first event, in ms since 1970.
fn first_event_ms(visitor: &mut Visitor, token: &str) -> f64 {
    let panel = profile(visitor, &format!("/_profiler/{token}?panel=time"));
    number(between(&panel, "origin: ", "\n"), ",")
}

fn piece<'a>(toolbar: &'a str, name: &str) -> &'a str {
    let (_, rest) = toolbar.split_once(&format!("<b>{name}</b>")).unwrap_or_default();
    between(rest, "<span>", "</span>").trim()
}

fn number(text: &str, unit: &str) -> f64 {
    let digits = text.trim().strip_suffix(unit).unwrap_or_else(|| panic!("{text}: no `{unit}`"));
    digits.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn now_ms() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    now.as_secs_f64() * 1000.0
}
