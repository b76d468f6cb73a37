use super::{Against, DAY_S, HOUR_S, Known, Period, Range, Span, parse};
use crate::format;
use crate::known_releases::KnownRelease;
use crate::query::{Query, link};

const NOW: u64 = 1_795_860_023; // 2026-11-28 10:00:23

fn range(query: &str) -> Range {
    Range::of(&Query::new(query), NOW).unwrap_or_else(|e| panic!("{query}: {e}"))
}

fn known(release: Option<u64>) -> Known {
    let one = |at| KnownRelease::since(at, "generation 2".to_owned());
    let releases = release.map(one).into_iter().collect();
    Known { now: NOW, start: NOW - 5 * HOUR_S, releases }
}

#[test]
fn query_selects_range_and_comparison() {
    let (from, to) = (1_795_852_800, 1_795_856_400);
    for (query, span, against) in [
        ("", Span::Last(1), Against::Previous),
        ("range=&from=&to=&compare=", Span::Last(1), Against::Previous),
        ("range=15m", Span::Last(0), Against::Previous),
        ("range=7d&compare=none", Span::Last(4), Against::None),
        ("range=release", Span::Release, Against::Release),
        ("range=release&compare=day", Span::Release, Against::Day),
        ("range=start&compare=release", Span::Start, Against::Release),
        (
            "from=2026-11-28T08:00&to=2026-11-28T09:00",
            Span::Custom(from, Some(to)),
            Against::Previous,
        ),
        ("range=6h&from=1795852800", Span::Custom(from, None), Against::Previous),
        ("from=2026-11-28+08%3A00%3A00Z", Span::Custom(from, None), Against::Previous),
        // The end of today is a common end of a range.
        (
            "from=2026-11-28&to=2026-11-29",
            Span::Custom(1_795_824_000, Some(NOW + 1)),
            Against::Previous,
        ),
    ] {
        let found = range(query);
        assert_eq!((found.span, found.against), (span, against), "{query}");
    }
}

#[test]
fn links_keep_parameters_of_query() {
    for query in [
        "range=6h",
        "range=release&compare=day",
        "compare=none",
        "from=2026%2D11%2D28T08%3A00%3A00&to=2026%2D11%2D28T09%3A00%3A00&compare=previous",
    ] {
        let pairs = range(query).pairs();
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(link("", &pairs), format!("?{query}"));
    }
    assert_eq!(range("").pairs(), []);
    assert_eq!(range("compare=none").with_span(Span::Start).pairs().len(), 2);
}

#[test]
fn invalid_value_is_refused_with_a_hint() {
    for (query, what, hint) in [
        (
            "range=2h",
            "unknown value of `range`: `2h`",
            "15m, 1h, 6h, 1d, 7d, release, previous-release, release:LABEL, start",
        ),
        ("range=%ff", "`range` is not UTF-8", "percent-encode"),
        ("compare=%3Cscript%3E", "`<script>`", "previous, day, release, none"),
        ("from=yesterday", "`from` is not a time: `yesterday`", "2026-11-28T10:00"),
        ("from=2026-02-31", "`from` is not a time", "UTC"),
        ("from=2026-11-28T24:00", "`from` is not a time", "UTC"),
        ("from=2026-1-2", "`from` is not a time", "UTC"),
        ("from=99999999999999999999", "`from` is not a time", "UTC"),
        ("from=-5", "`from` is not a time", "UTC"),
        ("from=١٢٣", "`from` is not a time", "UTC"),
        ("to=2026-11-28", "`to` needs `from`", "from="),
        ("from=2026-11-29", "`from` is in the future: 2026-11-29", "UTC"),
        ("from=2026-11-28T09:00&to=2026-11-28T09:00", "not after its begin", "UTC"),
        ("from=0", "longer than 3650 days", "UTC"),
    ] {
        let found = Range::of(&Query::new(query), NOW).expect_err(query);
        assert!(found.what.contains(what) && found.hint.contains(hint), "{query}: {found}");
    }
    let long = format!("range={}", "ä".repeat(3_000));
    let found = Range::of(&Query::new(&long), NOW).expect_err("too long");
    assert!(found.what.len() < 100, "{found}");
}

#[test]
fn times_are_parsed_as_they_are_formatted() {
    for at in [0, 951_826_599, 951_782_400, 1_795_331_650, 4_107_542_400, 253_402_300_799] {
        assert_eq!(parse(&super::input(at)), Some(at));
        assert_eq!(parse(&format::moment(at)), Some(at));
        assert_eq!(parse(&at.to_string()), Some(at));
    }
}

#[test]
fn periods_have_whole_minutes_and_equal_length() {
    let of = |query: &str, release| {
        let found = range(query).resolve(&known(release));
        let relative = |at: u64| NOW.cast_signed() - at.cast_signed();
        let shown = |p: Period| (relative(p.from), relative(p.to));
        (shown(found.period), found.against.map(|against| against.map(shown)))
    };
    let (h, d) = (HOUR_S.cast_signed(), DAY_S.cast_signed());
    for (query, release, expected) in [
        ("range=1h&compare=none", None, ((h + 23, -1), Ok(None))),
        ("range=1h", None, ((h + 23, -1), Ok(Some((2 * h + 23, h + 23))))),
        ("range=1h&compare=day", None, ((h + 23, -1), Ok(Some((d + h + 23, d - 1))))),
        // A week consists of whole hours.
        ("range=7d", None, ((7 * d + 23, -1), Ok(Some((14 * d + 23, 7 * d + 23))))),
        ("range=start", None, ((5 * h, -1), Ok(Some((10 * h + 1, 5 * h))))),
        // Seconds after a reload, the hour before it is there.
        ("range=release", Some(7), ((7, -1), Ok(Some((h + 7, 7))))),
        ("range=release&compare=previous", Some(7), ((7, -1), Ok(Some((h + 7, 7))))),
        // Later, as much time as since then.
        ("range=release", Some(3 * h), ((3 * h, -1), Ok(Some((6 * h + 1, 3 * h))))),
        // Without a reload, the start is the release.
        ("range=15m&compare=release", Some(2 * h), ((15 * 60 + 23, -1), Ok(Some((3 * h, 2 * h))))),
    ] {
        assert_eq!(
            of(query, release.map(|ago: i64| NOW - ago.cast_unsigned())),
            expected,
            "{query}"
        );
    }
    for (query, release, why) in [
        ("range=1h&compare=release", Some(60), "begins before this release"),
        ("range=1h&compare=release", None, "no start or reload"),
        ("range=7d&compare=day", None, "overlap"),
    ] {
        let found = of(query, release.map(|ago: u64| NOW - ago)).1.expect_err(query);
        assert!(found.contains(why), "{query}: {found}");
    }
}

/// `1.0`, then `1.1` for less than a second, then `1.0` again, then a release without label.
#[test]
fn release_of_less_than_a_second_has_no_range() {
    let release = |label: &str, from: u64, to: Option<u64>| KnownRelease {
        label: label.to_owned(),
        from,
        to,
        ..KnownRelease::default()
    };
    let releases = vec![
        release("1.0", NOW - 100, Some(NOW - 50)),
        release("1.1", NOW - 50, Some(NOW - 50)),
        release("", NOW - 50, None),
    ];
    let known = Known { now: NOW, start: NOW - 100, releases };
    let previous = range("range=previous-release");
    assert_eq!(previous.check(&known), Ok(()));
    assert_eq!(previous.resolve(&known).period, Period { from: NOW - 100, to: NOW - 50 });
    for query in ["range=release:1.1", "range=1h&compare=release:1.1"] {
        let found = range(query).check(&known).expect_err(query);
        assert!(found.what.contains("`1.1` served for less than a second"), "{found}");
    }
    assert!(range("range=release:1.0").check(&known).is_ok());
}
