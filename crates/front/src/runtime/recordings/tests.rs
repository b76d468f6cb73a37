//! Tests of conditions and limits of recordings.

use super::*;
use samovar_ring::request::{RequestHead, encode_with};

fn order(count: usize) -> RecordOrder {
    RecordOrder { count, limit: Duration::from_mins(1), ..RecordOrder::default() }
}

fn record(to: &Arc<Recordings>, path: &str, body: usize, status: u16) {
    let Some(place) = to.hold(path.as_bytes()) else { return };
    let body = vec![0; body];
    place.draft("", input(path, body), Vec::new()).finish(status, End::Completed);
}

fn input(target: &str, body: Vec<u8>) -> RecordedInput {
    let head = RequestHead { target: target.as_bytes(), ..RequestHead::default() };
    let mut encoded = Vec::new();
    encode_with(&head, [], [], &mut encoded).expect("it fits");
    RecordedInput { head: encoded, body, ..RecordedInput::default() }
}

fn targets(of: &Recordings) -> Vec<String> {
    of.all().iter().map(|recorded| recorded.input.target.clone()).collect()
}

#[test]
fn star_of_a_path_pattern_matches_any_characters() {
    for (pattern, path, expected) in [
        ("/", "/", true),
        ("/", "/a", false),
        ("/api/*", "/api/", true),
        ("/api/*", "/api/a/b", true),
        ("/api/*", "/ap", false),
        ("*/edit", "/a/edit/edit", true),
        ("*/edit", "/a/edit/x", false),
        ("/a*b*c", "/aXbXbXc", true),
        ("/a*b*c", "/aXbXbX", false),
        ("*", "", true),
        ("", "", true),
        ("", "/", false),
    ] {
        assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
    }
}

#[test]
fn recording_ends_after_its_number_of_requests() {
    let recordings = Arc::new(Recordings::default());
    record(&recordings, "/before", 0, 200);
    recordings.begin(RecordOrder { path: Some("/a*".to_owned()), ..order(2) }).expect("a thread");
    for path in ["/a1", "/b", "/a2", "/a3"] {
        record(&recordings, path, 0, 200);
    }
    assert_eq!(targets(&recordings), ["/a1", "/a2"]);
    assert_eq!((recordings.state(), recordings.is_on()), (None, false));
    assert!(!recordings.stop());
    let ids: Vec<_> = recordings.all().iter().map(|recorded| recorded.id).collect();
    assert_eq!(ids, [1, 2]);
    assert_eq!(recordings.remove(Some(7)), 0);
    assert_eq!(recordings.remove(Some(1)), 1);
    assert_eq!(recordings.remove(None), 1);
}

#[test]
fn failed_requests_are_kept_by_status_or_end() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(RecordOrder { is_failed: true, ..order(10) }).expect("a thread");
    record(&recordings, "/good", 0, 200);
    record(&recordings, "/bad", 0, 500);
    assert_eq!(targets(&recordings), ["/bad"]);
}

#[test]
fn recording_ends_after_its_time() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(RecordOrder { limit: Duration::ZERO, ..order(10) }).expect("a thread");
    assert!(recordings.is_on());
    record(&recordings, "/late", 0, 200);
    assert_eq!((targets(&recordings).len(), recordings.is_on()), (0, false));
}

#[test]
fn total_size_is_limited_and_oldest_are_dropped() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(order(RECORDED_REQUESTS_MAX)).expect("a thread");
    for _ in 0..100 {
        record(&recordings, "/", RECORDED_BODY_BYTES_MAX, 200);
        // Otherwise there may be no place for the next one.
        recordings.all();
    }
    let kept = recordings.all();
    assert!(kept.len() < 64 && kept.last().is_some_and(|last| last.id == 100));
    assert!(recordings.store().bytes <= TOTAL_BYTES_MAX);
}

#[test]
fn number_of_held_requests_is_limited_and_falls_again() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(order(10)).expect("a thread");
    let mut drafts: Vec<_> = Vec::new();
    while let Some(place) = recordings.hold(b"/") {
        drafts.push(place.draft("", RecordedInput::default(), Vec::new()));
    }
    assert_eq!((drafts.len(), recordings.missed()), (HELD_MAX, 1));
    drafts.clear();
    assert_eq!(recordings.store().held, 0);
    assert_eq!(recordings.store().queued, 0, "it is not searched if it is not kept");
    // Its client leaves while its body is read.
    drop(recordings.hold(b"/").expect("a place"));
    assert_eq!(recordings.store().held, 0);
}

/// The later recording has other conditions, and may keep no secrets.
#[test]
fn request_is_kept_only_by_the_recording_that_holds_it() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(RecordOrder { has_secrets: true, ..order(10) }).expect("a thread");
    let draft = |path: &str| {
        let place = recordings.hold(path.as_bytes()).expect("a place");
        place.draft("", input(path, Vec::new()), Vec::new())
    };
    let early = draft("/early");
    recordings.begin(order(10)).expect("a thread");
    let late = draft("/late");
    early.finish(200, End::Completed);
    late.finish(200, End::Completed);
    assert_eq!(targets(&recordings), ["/late"]);
    assert_eq!(recordings.state().map(|state| state.left), Some(9));
}

#[test]
fn tap_keeps_the_start_of_a_body_and_hashes_all() {
    let tap = ResponseTap::default();
    tap.add(b"nothing yet");
    assert_eq!(tap.take(), None);
    tap.begin(
        200,
        b"A: b=c\nSet-cookie: sid=7; path=/\nX-Auth-Token: 7\n\
          Location: /a?token=7\nlink: /a?b=7\n",
        b"first",
    );
    tap.add(&vec![b'x'; RECORDED_BODY_BYTES_MAX]);
    tap.complete();
    let response = tap.take().expect("a response");
    assert_eq!(response.body.len(), RECORDED_BODY_BYTES_MAX);
    assert_eq!(response.bytes as usize, RECORDED_BODY_BYTES_MAX + 5);
    assert!(response.is_complete && response.hash != [0; 32]);
    let head = response_head(&response.head, &SecretNames::of(&[]));
    assert_eq!(
        String::from_utf8_lossy(&head),
        "A: b=c\nSet-cookie: sid=(redacted)\nX-Auth-Token: (redacted)\nLocation: (redacted)\n\
         link: /a?b=7\n"
    );
}

/// The head cannot be encoded again: it is too long with the replaced values.
#[test]
fn request_that_cannot_be_redacted_is_counted_and_its_place_is_free_again() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(order(10)).expect("a thread");
    let place = recordings.hold(b"/").expect("a place");
    let invalid = RecordedInput { head: vec![1], ..RecordedInput::default() };
    place.draft("", invalid, Vec::new()).finish(200, End::Completed);
    record(&recordings, "/?token=1", 0, 200);
    assert_eq!(targets(&recordings), ["/?token=(redacted)"]);
    assert_eq!((recordings.missed(), recordings.store().held), (1, 0));
    recordings.begin(order(10)).expect("a thread");
    assert_eq!(recordings.missed(), 0);
}

/// A thread that has ended early drops its jobs.
#[test]
fn dropped_job_is_counted() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(order(10)).expect("a thread");
    let (queue, jobs) = std::sync::mpsc::sync_channel(HELD_MAX);
    recordings.store().session.as_mut().expect("a session").queue = queue;
    record(&recordings, "/queued", 0, 200);
    drop(jobs);
    record(&recordings, "/rejected", 0, 200);
    assert_eq!((targets(&recordings).len(), recordings.missed()), (0, 2));
    assert_eq!(recordings.store().held, 0);
}

#[test]
fn request_whose_client_has_left_says_so() {
    let recordings = Arc::new(Recordings::default());
    recordings.begin(order(10)).expect("a thread");
    for end in [End::Aborted, End::Completed, End::Cut] {
        let place = recordings.hold(b"/").expect("a place");
        place.draft("", input("/", Vec::new()), Vec::new()).finish(499, end);
    }
    let left: Vec<bool> = recordings.all().iter().map(|one| one.has_client_left).collect();
    assert_eq!(left, [true, false, false]);
}
