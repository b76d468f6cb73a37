use super::*;
use crate::store::StoreLimits;
use samovar_insight::Model;
use samovar_spy::profile::Weight;
use std::time::Duration;

const NOW: u64 = 60_000;

fn row(generation: u64, samples: u64) -> Row {
    let mut profile = Profile::new();
    if samples > 0 {
        profile.add_mark("[rollback]", Weight { samples, wall_ns: samples, cpu_ns: 0 });
    }
    Row { generation, model: Model::Script, requests: samples * 2, profile, ..Row::default() }
}

fn minute(at: u64, rows: &[(&str, u64, u64)]) -> Minute {
    let rows = rows.iter().map(|(route, generation, n)| (Box::from(*route), row(*generation, *n)));
    Minute { at, rows: rows.collect() }
}

fn empty() -> Store {
    let limits = StoreLimits { bytes_max: 1 << 20, keep: Duration::from_hours(24) };
    Store::open(None, limits, 1).expect("memory")
}

fn respond(store: &Store, running: &Minute, question: &ProfileQuestion) -> ProfileResult {
    let default_pool = "default";
    Sources { store, running, now: NOW + 5, run: 1, hertz: 49, default_pool }.respond(question)
}

fn ask(question: &ProfileQuestion) -> ProfileResult {
    let mut store = empty();
    for (at, generation, samples) in [(NOW - 3_600, 1, 1), (NOW - 120, 1, 10), (NOW - 60, 2, 100)] {
        store.put(&minute(at, &[("/a", generation, samples)])).expect("room");
    }
    let running = minute(NOW, &[("/a", 2, 1_000), ("/b", 2, 4)]);
    respond(&store, &running, question)
}

fn samples(side: &Side) -> u64 {
    side.profile.total().samples
}

#[test]
fn response_merges_stored_and_current_minutes() {
    let all = ask(&ProfileQuestion::default());
    assert_eq!((samples(&all.now), all.now.requests), (1_114, 2_228));
    assert_eq!(all.now.generations, BTreeSet::from([1, 2]));
    assert_eq!(all.routes, [("/a".to_owned(), 1_110), ("/b".to_owned(), 4)]);
    let of_route = ProfileQuestion { route: Some("/b".to_owned()), ..ProfileQuestion::default() };
    assert_eq!(samples(&ask(&of_route).now), 4);
    let old = ProfileQuestion { generation: Some(1), ..ProfileQuestion::default() };
    assert_eq!(samples(&ask(&old).now), 10);
    let before = ProfileQuestion { to: NOW - 60, ..ProfileQuestion::default() };
    assert_eq!(samples(&ask(&before).now), 10);
}

#[test]
fn response_contains_period_to_compare_with() {
    let earlier = Some(Against::Earlier { seconds: 3_600 });
    let response = ask(&ProfileQuestion { against: earlier, ..ProfileQuestion::default() });
    assert_eq!(response.before.as_ref().map(samples), Some(1));
    let reload = Some(Against::Reload);
    let response = ask(&ProfileQuestion { against: reload, ..ProfileQuestion::default() });
    assert_eq!((samples(&response.now), response.before.as_ref().map(samples)), (1_104, Some(10)));
    let first =
        ProfileQuestion { against: reload, generation: Some(1), ..ProfileQuestion::default() };
    assert_eq!(ask(&first).error.as_deref(), Some(NO_RELOAD));
}

#[test]
fn any_two_generations_are_compared_in_their_last_minutes() {
    let mut store = empty();
    for (at, generation, samples) in
        [(NOW - 50_000, 1, 1), (NOW - 40_000, 2, 20), (NOW - 39_940, 2, 300), (NOW - 60, 3, 4_000)]
    {
        let at = at - at % 60;
        store
            .put(&Minute { at, rows: of_pools(&[("", "/a", generation, samples)]) })
            .expect("room");
    }
    let running = Minute { at: NOW - NOW % 60, rows: of_pools(&[("", "/a", 3, 50_000)]) };
    let told = |generation, number| {
        let against = Some(Against::Generation { number });
        let question = ProfileQuestion { against, generation, ..ProfileQuestion::default() };
        let response = respond(&store, &running, &question);
        (response.error, samples(&response.now), response.before.as_ref().map(samples))
    };
    assert_eq!(told(None, 2), (None, 54_000, Some(320)), "the last ten minutes");
    assert_eq!(told(Some(2), 1), (None, 320, Some(1)), "both are over");
    assert_eq!(told(Some(1), 3), (None, 1, Some(54_000)));
    for missing in [4, u64::MAX] {
        let (error, ..) = told(None, missing);
        assert!(error.is_some_and(|error| error.contains(&missing.to_string())), "{missing}");
    }
}

/// Two pools, of which the second was reloaded more often: (pool, route, generation, samples).
fn of_pools(rows: &[(&str, &str, u64, u64)]) -> Vec<(Box<str>, Row)> {
    let named = |(pool, route, generation, samples): &(&str, &str, u64, u64)| {
        (Box::from(*route), Row { pool: (*pool).into(), ..row(*generation, *samples) })
    };
    rows.iter().map(named).collect()
}

#[test]
fn generations_are_selected_per_pool() {
    let mut store = empty();
    for (at, generation, samples) in [(NOW - 180, 3, 1), (NOW - 120, 4, 20), (NOW - 60, 5, 300)] {
        let own = ("", "default: /a", generation.min(4), samples * 1_000);
        let rows = of_pools(&[own, ("api", "api: /a", generation, samples)]);
        store.put(&Minute { at, rows }).expect("room");
    }
    let running = Minute { at: NOW, rows: of_pools(&[("api", "api: (boot)", 5, 4)]) };
    let of = |pool: Option<&str>| ProfileQuestion {
        pool: pool.map(str::to_owned),
        ..ProfileQuestion::default()
    };
    let told = |question: &ProfileQuestion| {
        let response = respond(&store, &running, question);
        assert_eq!(response.error, None);
        (samples(&response.now), response.before.as_ref().map(samples))
    };
    assert_eq!(told(&of(None)), (321_325, None), "of all");
    assert_eq!(told(&of(Some("api"))), (325, None));
    assert_eq!(told(&of(Some("default"))), (321_000, None));
    let reload = |pool| ProfileQuestion { against: Some(Against::Reload), ..of(pool) };
    assert_eq!(told(&reload(Some("api"))), (304, Some(20)), "generation 5 against 4");
    assert_eq!(told(&reload(Some("default"))), (320_000, Some(1_000)), "4 against 3");
    assert_eq!(told(&reload(None)), told(&reload(Some("default"))));
    let route =
        |pool, route: &str| ProfileQuestion { route: Some(route.to_owned()), ..reload(pool) };
    assert_eq!(told(&route(None, "api: /a")), (300, Some(20)), "the route says whose it is");
    for (pool, expected) in [("api", (300, Some(20))), ("default", (320_000, Some(1_000)))] {
        assert_eq!(
            told(&route(Some(pool), "/a")),
            expected,
            "who names the pool need not repeat it"
        );
    }
    let third = ProfileQuestion { generation: Some(4), ..of(Some("api")) };
    assert_eq!(told(&third), (20, None));
    let routes = respond(&store, &running, &of(Some("api"))).routes;
    assert_eq!(routes, [("api: /a".to_owned(), 321), ("api: (boot)".to_owned(), 4)]);
}

#[test]
fn query_without_data_explains_available_data() {
    let nowhere = ProfileQuestion { route: Some("/c".to_owned()), ..ProfileQuestion::default() };
    let why = ask(&nowhere).error.expect("nothing is there");
    assert!(why.contains("`/a`, `/b`"), "{why}");
    let before = ProfileQuestion { from: 1, to: 2, ..ProfileQuestion::default() };
    assert!(ask(&before).error.is_some_and(|why| why.contains("49 times a second")));
}

#[test]
fn response_survives_json_round_trip() {
    let wire = ask(&ProfileQuestion::default()).to_wire();
    let text = samovar_wire::line(&wire);
    let again: ProfileResponse = serde_json::from_str(&text).expect("as it was written");
    let packed = serde_json::from_value(again.now.profile).expect("packed");
    let profile = samovar_spy::profile::packed::unpack(packed).expect("a profile");
    assert_eq!(profile.total().samples, 1_114);
}
