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
    Row { generation, model: Model::Script, requests: samples * 2, profile }
}

fn minute(at: u64, rows: &[(&str, u64, u64)]) -> Minute {
    let rows = rows.iter().map(|(route, generation, n)| (Box::from(*route), row(*generation, *n)));
    Minute { at, rows: rows.collect() }
}

fn ask(question: &ProfileQuestion) -> Answer {
    let limits = StoreLimits { bytes_max: 1 << 20, keep: Duration::from_hours(24) };
    let mut store = Store::open(None, limits, 1).expect("memory");
    for (at, generation, samples) in [(NOW - 3_600, 1, 1), (NOW - 120, 1, 10), (NOW - 60, 2, 100)] {
        store.put(&minute(at, &[("/a", generation, samples)])).expect("room");
    }
    let running = minute(NOW, &[("/a", 2, 1_000), ("/b", 2, 4)]);
    Sources { store: &store, running: &running, now: NOW + 5, run: 1, hertz: 49 }.answer(question)
}

fn samples(side: &Side) -> u64 {
    side.profile.total().samples
}

#[test]
fn what_is_kept_and_what_runs_is_one_answer() {
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
fn another_time_stands_beside_it() {
    let earlier = Some(Against::Earlier { seconds: 3_600 });
    let answer = ask(&ProfileQuestion { against: earlier, ..ProfileQuestion::default() });
    assert_eq!(answer.before.as_ref().map(samples), Some(1));
    let reload = Some(Against::Reload);
    let answer = ask(&ProfileQuestion { against: reload, ..ProfileQuestion::default() });
    assert_eq!((samples(&answer.now), answer.before.as_ref().map(samples)), (1_104, Some(10)));
    let first =
        ProfileQuestion { against: reload, generation: Some(1), ..ProfileQuestion::default() };
    assert_eq!(ask(&first).error.as_deref(), Some(NO_RELOAD));
}

#[test]
fn who_asks_for_what_is_not_there_is_told_what_is() {
    let nowhere = ProfileQuestion { route: Some("/c".to_owned()), ..ProfileQuestion::default() };
    let why = ask(&nowhere).error.expect("nothing is there");
    assert!(why.contains("`/a`, `/b`"), "{why}");
    let before = ProfileQuestion { from: 1, to: 2, ..ProfileQuestion::default() };
    assert!(ask(&before).error.is_some_and(|why| why.contains("49 times a second")));
}

#[test]
fn an_answer_goes_over_the_socket() {
    let wire = ask(&ProfileQuestion::default()).to_wire();
    let text = samovar_wire::line(&wire);
    let again: ProfileAnswer = serde_json::from_str(&text).expect("as it was written");
    let packed = serde_json::from_value(again.now.profile).expect("packed");
    let profile = samovar_spy::profile::packed::unpack(packed).expect("a profile");
    assert_eq!(profile.total().samples, 1_114);
}
