use super::{PEERS_MAX, RouteFigures, TIMERS_MAX, TimerFigures, WaitFigures};
use crate::finished::{End, Numbers};
use crate::report::{Entry, Wait, WaitKind};

fn wait(peer: &str, ns: u64) -> Entry<'_> {
    Entry::Wait(Wait { kind: WaitKind::Tcp, peer, times: 1, ns })
}

fn timer<'a>(tags: &[(&'a str, &'a str)]) -> Entry<'a> {
    Entry::Timer { hits: 2, wall_ns: 10, user_ns: 4, system_ns: 1, tags: tags.to_vec() }
}

#[test]
fn costs_are_added_up() {
    let mut route = RouteFigures::default();
    for (status, end) in [(200, End::Completed), (503, End::Refused), (999, End::Completed)] {
        let numbers = Numbers { status, end, wall_ns: 1_000, worker: 7, ..Numbers::default() };
        route.costs.add(&numbers);
    }
    let costs = &route.costs;
    assert_eq!((costs.requests, costs.errors(), costs.wall.sum_ns()), (3, 1, 3_000));
    assert_eq!(costs.by_class, [1, 0, 1, 0, 0, 1]);
    assert_eq!(costs.by_end[End::Refused as usize], 1);
}

#[test]
fn waits_are_separate_by_peer_up_to_a_cap() {
    let mut route = RouteFigures::default();
    route.add(&wait("db:5432", 5));
    route.add(&wait("db:5432", 6));
    for n in 0..2 * PEERS_MAX {
        route.add(&wait(&format!("10.0.0.{n}:80"), 1));
    }
    let all: Vec<_> = route.waits().collect();
    assert_eq!(all[0], ("tcp", "db:5432", &WaitFigures { times: 2, ns: 11 }));
    let beyond = WaitFigures { times: PEERS_MAX as u64 + 1, ns: PEERS_MAX as u64 + 1 };
    assert_eq!(all.last(), Some(&("tcp", "(other)", &beyond)));
    let lock = Wait { kind: WaitKind::Lock, peer: "session file", times: 1, ns: 7 };
    route.add(&Entry::Wait(lock));
    let all: Vec<_> = route.waits().collect();
    assert_eq!(all.last(), Some(&("lock", "(other)", &WaitFigures { times: 1, ns: 7 })));
    assert_eq!(all.len(), PEERS_MAX + 2);
}

#[test]
fn timers_are_separate_by_set_of_tags() {
    let mut route = RouteFigures::default();
    route.add(&timer(&[("group", "db"), ("host", "a")]));
    route.add(&timer(&[("host", "a"), ("group", "db")]));
    route.add(&timer(&[("group", "db\u{1f}host")]));
    let all: Vec<_> = route.timers().collect();
    let twice = TimerFigures { hits: 4, requests: 2, wall_ns: 20, user_ns: 8, system_ns: 2 };
    assert_eq!(all[0], (vec![("group", "db"), ("host", "a")], &twice));
    assert_eq!(all[1].0, [("group", "db host")]);
    for n in 0..2 * TIMERS_MAX {
        route.add(&timer(&[("n", &n.to_string())]));
    }
    assert_eq!(route.timers().count(), TIMERS_MAX + 1);
    assert_eq!(route.timers().last().map(|(tags, _)| tags), Some(vec![]));
}

#[test]
fn request_tags_are_counted() {
    let mut route = RouteFigures::default();
    route.add(&Entry::Tag("country", "de"));
    route.add(&Entry::Tag("country", "de"));
    route.add(&Entry::Tag("country", "fr"));
    let all: Vec<_> = route.tags().collect();
    assert_eq!(all, [("country", "de", 2), ("country", "fr", 1)]);
}
