use super::{
    Boot, Entry, ErrorKind, Malformed, Report, ReportedError, SpanKind, Statement, StatementKind,
    TEXT_BYTES_MAX, TimedSpan, TimedSpans, Wait, WaitKind,
};
use proptest::prelude::*;

fn examples() -> Vec<Entry<'static>> {
    vec![
        Entry::Route("shop_show"),
        Entry::Wait(Wait { kind: WaitKind::Tcp, peer: "10.0.0.5:5432", times: 3, ns: 62_000 }),
        Entry::Wait(Wait { kind: WaitKind::Sleep, peer: "", times: 1, ns: u64::MAX }),
        Entry::Timer {
            hits: 2,
            wall_ns: 5,
            user_ns: 3,
            system_ns: 1,
            tags: vec![("group", "mysql"), ("server", "db1")],
        },
        Entry::Tag("country", "ä"),
        Entry::Place("App\\Foo::bar() src/Foo.php:12"),
        Entry::Dropped(7),
        Entry::Boot(Boot { ago_ns: 9, ns: 8 }),
        Entry::Error(ReportedError {
            kind: ErrorKind::Rendered,
            class: "App\\OutOfStock",
            file: "/srv/Shop.php",
            line: 12,
            message: "a".repeat(512).into(),
            stack: "#0 /srv/index.php(3): App\\Shop->show()",
        }),
        Entry::Statement(Statement {
            kind: StatementKind::Redis,
            text: "GET",
            calls: 21,
            ns: u64::MAX,
            rows: 7,
            place_calls: 20,
            file: "/srv/ProductList.php",
            line: 40,
        }),
        Entry::Spans(TimedSpans(&[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0])),
        Entry::CpuDelay(4),
    ]
}

#[test]
fn encoded_entries_are_parsed() {
    let bytes: Vec<u8> = examples().iter().flat_map(Entry::encode).collect();
    let read: Result<Vec<_>, _> = Report::new(&bytes).collect();
    assert_eq!(read, Ok(examples()));
}

#[test]
fn malformed_entry_ends_the_report() {
    let route = Entry::Route("a").encode();
    for broken in [
        &[99, 0, 0][..],                                     // an unknown tag
        &[1, 200, 0, b'a'],                                  // longer than the rest
        &[1, 1, 0, 0xff],                                    // no UTF-8
        &[2, 1, 0, 0],                                       // a wait without its numbers
        &[2, 13, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // an unknown kind
        &[4, 2, 0, 1, b'a'],                                 // a name without its value
        &[6, 5, 0, 0, 0, 0, 0, 0],                           // too long
        &[7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],                  // a boot without its length
        &[8, 11, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],        // an unknown kind of error
        &[8, 11, 0, 0, 0, 0, 0, 0, 0, 0, 255, 1, 0, 0],      // a message longer than the entry
        &[9, 29, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],  // a statement without a file
        &[10, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],    // a part of a span
        &[11, 4, 0, 1, 0, 0, 0],                             // a delay that is too short
        &[1],
    ] {
        let bytes = [&route[..], broken, &route[..]].concat();
        let mut read = Report::new(&bytes);
        assert_eq!(read.next(), Some(Ok(Entry::Route("a"))), "{broken:?}");
        assert_eq!(read.next(), Some(Err(Malformed { at: route.len() })), "{broken:?}");
        assert_eq!(read.next(), None);
    }
}

#[test]
fn error_with_too_long_message_is_malformed() {
    let error = |message: &str| {
        let lengths = [&[0; 7][..], &(message.len() as u16).to_le_bytes()].concat();
        let payload = [&lengths[..], message.as_bytes(), &[0, 0]].concat();
        [&[8], &(payload.len() as u16).to_le_bytes()[..], &payload[..]].concat()
    };
    let is_read = |bytes: &[u8]| Report::new(bytes).next().is_some_and(|one| one.is_ok());
    assert!(is_read(&error(&"x".repeat(512))));
    assert!(!is_read(&error(&"x".repeat(513))));
}

#[test]
fn span_of_unknown_kind_is_skipped() {
    let wait = TimedSpan { kind: SpanKind::Wait, index: 7, from_us: u32::MAX, us: 9 };
    let bytes = [&[2; 11][..], &TimedSpans::encode(&[wait])].concat();
    let spans = TimedSpans::of(&bytes).map(|spans| spans.iter().collect::<Vec<_>>());
    assert_eq!(spans, Some(vec![wait]));
    assert_eq!(TimedSpans::of(&bytes[1..]), None);
}

#[test]
fn hostile_statement_is_malformed() {
    let statement = |kind: u8, file_len: u8, text: &[u8]| {
        let payload = [&[kind][..], &[0; 28], &[file_len], text].concat();
        [&[9], &(payload.len() as u16).to_le_bytes()[..], &payload[..]].concat()
    };
    let is_read = |bytes: &[u8]| Report::new(bytes).next().is_some_and(|one| one.is_ok());
    assert!(is_read(&statement(0, 0, b"")));
    assert!(is_read(&statement(2, 0, &[b'x'; TEXT_BYTES_MAX])));
    assert!(!is_read(&statement(2, 0, &[b'x'; TEXT_BYTES_MAX + 1])));
    assert!(!is_read(&statement(3, 0, b"")), "an unknown kind");
    assert!(!is_read(&statement(0, 2, b"x")), "a file longer than the entry");
    assert!(!is_read(&statement(0, 0, b"\xff")), "no UTF-8");
}

#[test]
fn boot_within_request_is_limited_to_the_request() {
    let boot = |ago_ns, ns| Boot { ago_ns, ns };
    for (boot, queue_ns, within) in [
        (boot(0, 5), 100, Some((100, 5))),       // of the run
        (boot(50, 20), 100, Some((50, 20))),     // all of it in the queue
        (boot(150, 120), 100, Some((0, 70))),    // it had begun before
        (boot(150, 50), 100, None),              // it was over
        (boot(900, 120), 100, None),             // long
        (boot(5, u64::MAX), 100, Some((95, 5))), // nonsense stays within the request
        (boot(u64::MAX, u64::MAX), 0, None),
    ] {
        assert_eq!(boot.within(queue_ns), within, "{boot:?}");
    }
}

proptest! {
    #[test]
    fn report_of_random_bytes_does_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        prop_assert!(Report::new(&bytes).count() <= bytes.len());
    }
}
