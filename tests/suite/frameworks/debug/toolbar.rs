//! The toolbar of a page leads to the profile of that request, and to no other's.

use super::{Bench, developed};
use crate::frameworks::shop::Model;
use crate::frameworks::visitor::{Visitor, between};
use samovar_testkit::http::Response;
use samovar_testkit::{Oracle, eventually};
use std::time::{SystemTime, UNIX_EPOCH};

/// The profiler rounds to whole milliseconds, twice.
const ROUNDING_MS: f64 = 2.0;

#[test]
fn debug_toolbar_of_the_oracle_is_the_requests() {
    let shop = developed();
    let oracle = Oracle::start(&shop.public());
    profiles(&mut Visitor::new(oracle.address()), || ());
}

#[test]
fn debug_toolbar_in_script_is_the_requests() {
    profiled(Model::Script);
}

#[test]
fn debug_toolbar_in_resident_is_the_requests() {
    profiled(Model::Resident);
}

#[test]
fn debug_toolbar_in_checkpoint_is_the_requests() {
    profiled(Model::Checkpoint);
}

fn profiled(model: Model) {
    let bench = Bench::start(model);
    // Takes a while: time that is no request's.
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

/// What `dump()` was given is in the toolbar of its page alone.
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

/// The profile is written when the answer was sent: not at once.
fn profile(visitor: &mut Visitor, target: &str) -> String {
    eventually(target, || {
        let profile = visitor.look(target);
        (profile.status == 200).then(|| profile.text())
    })
}

/// The page's link to its profile ends in its name.
fn token_of(page: &Response) -> String {
    let token = page.header("x-debug-token").expect("the profiler sets it").to_owned();
    let link = page.header("x-debug-token-link").expect("the profiler sets it");
    assert!(link.ends_with(&format!("/_profiler/{token}")), "{link}");
    token
}

/// When the first event of the request happened, since 1970.
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
