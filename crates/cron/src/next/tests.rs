//! Times of expressions: changes of the clock in both hemispheres, leap days, ends of years, and a
//! comparison with a search minute by minute.

use super::*;
use proptest::prelude::*;

fn zone(name: &str) -> Zone {
    Zone::named(name).expect(name)
}

fn cron(text: &str) -> Cron {
    text.parse().expect(text)
}

fn ms(utc: &str) -> u64 {
    let at: Timestamp = utc.parse().expect(utc);
    u64::try_from(at.as_millisecond()).expect("after 1970")
}

/// Returns the next local times, as `DD HH:MM+OFFSET`, after a time in UTC.
fn times(text: &str, place: &str, after: &str, count: usize) -> Vec<String> {
    let (cron, zone, mut at) = (cron(text), zone(place), ms(after));
    (0..count)
        .map(|_| {
            at = cron.next(at, &zone).expect("a next time");
            let local = zone.local(at);
            format!("{} {}{}", &local[8..10], &local[11..16], &local[19..22])
        })
        .collect()
}

#[test]
fn skipped_time_of_day_runs_once_after_the_gap() {
    // Berlin: at 02:00 on the 29th it becomes 03:00. Sydney: the same on the 4th of October.
    let before = "2026-03-28T12:00:00Z";
    let expected = ["29 03:00+02", "30 02:30+02"];
    assert_eq!(times("30 2 * * *", "Europe/Berlin", before, 2), expected);
    let both = times("0,30 2 * * *", "Europe/Berlin", before, 3);
    assert_eq!(both, ["29 03:00+02", "30 02:00+02", "30 02:30+02"]);
    let merged = times("0 2,3 * * *", "Europe/Berlin", before, 3);
    assert_eq!(merged, ["29 03:00+02", "30 02:00+02", "30 03:00+02"]);
    let south = times("30 2 * * *", "Australia/Sydney", "2026-10-03T12:00:00Z", 2);
    assert_eq!(south, ["04 03:00+11", "05 02:30+11"]);
    // Lord Howe Island: half an hour. Havana: at midnight.
    let half = times("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", 2);
    assert_eq!(half, ["04 02:30+11", "05 02:15+11"]);
    let midnight = times("@daily", "America/Havana", "2026-03-07T12:00:00Z", 2);
    assert_eq!(midnight, ["08 01:00-04", "09 00:00-04"]);
}

#[test]
fn repeated_time_of_day_runs_once() {
    let before = "2026-10-24T12:00:00Z";
    assert_eq!(times("30 2 * * *", "Europe/Berlin", before, 2), ["25 02:30+02", "26 02:30+01"]);
    let three = times("0 3 * * *", "Europe/Berlin", before, 2);
    assert_eq!(three, ["25 03:00+01", "26 03:00+01"]);
    let south = times("30 2 * * *", "Australia/Sydney", "2026-04-04T12:00:00Z", 2);
    assert_eq!(south, ["05 02:30+11", "06 02:30+10"]);
    // From within the second pass, the time of the first one is over.
    let within = times("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1);
    assert_eq!(within, ["26 02:30+01"]);
}

#[test]
fn interval_runs_as_time_passes() {
    let gap = times("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
    assert_eq!(gap, ["29 01:30+01", "29 03:00+02", "29 03:30+02"]);
    let fold = times("0 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 4);
    assert_eq!(fold, ["25 02:00+02", "25 02:00+01", "25 03:00+01", "25 04:00+01"]);
    let half = times("*/30 * * * *", "America/St_Johns", "2026-03-08T05:00:00Z", 3);
    assert_eq!(half, ["08 03:00-02", "08 03:30-02", "08 04:00-02"]);
}

#[test]
fn leap_day_and_end_of_year() {
    let next = |text: &str, after: &str| {
        let at = cron(text).next(ms(after), &zone("UTC")).expect("a next time");
        zone("UTC").local(at)[..16].to_owned()
    };
    assert_eq!(next("0 0 29 2 *", "2026-01-01T00:00:00Z"), "2028-02-29 00:00");
    assert_eq!(next("0 0 29 2 *", "2096-02-29T00:00:00Z"), "2104-02-29 00:00");
    assert_eq!(next("0 0 29 2 */7", "2088-03-01T00:00:00Z"), "2128-02-29 00:00");
    assert_eq!(next("59 23 31 12 *", "2026-12-31T23:58:59.999Z"), "2026-12-31 23:59");
    assert_eq!(next("59 23 31 12 *", "2026-12-31T23:59:00Z"), "2027-12-31 23:59");
    assert_eq!(next("@yearly", "2026-12-31T23:59:59.999Z"), "2027-01-01 00:00");
    assert_eq!(next("0 0 31 * *", "2026-01-31T00:00:00Z"), "2026-03-31 00:00");
    // Days of the month and of the week: one is enough, unless one begins with `*`.
    assert_eq!(next("0 0 13 * fri", "2026-11-10T00:00:00Z"), "2026-11-13 00:00");
    assert_eq!(next("0 0 13 * fri", "2026-11-13T00:00:00Z"), "2026-11-20 00:00");
    assert_eq!(next("0 0 */2 * fri", "2026-11-14T00:00:00Z"), "2026-11-27 00:00");
}

#[test]
fn whole_day_that_a_zone_skipped_runs_once() {
    // Samoa had no 30th of December 2011.
    let days = times("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(days, ["29 12:00-10", "31 00:00+14", "31 12:00+14"]);
}

#[test]
fn zone_has_a_name() {
    assert_eq!(Zone::named("Europe/Berlin").expect("a zone").name(), "Europe/Berlin");
    assert_eq!(Zone::named("Europe/Atlantis"), None);
    assert_eq!(Zone::named(""), None);
}

/// Searches minute by minute.
fn slow_next(cron: &Cron, after_ms: u64, zone: &Zone, minutes: u64) -> Option<u64> {
    const MINUTE: u64 = 60_000;
    let first = after_ms / MINUTE + 1;
    let local = |minute: u64| zone.rules.to_datetime(timestamp(minute * MINUTE).expect("a time"));
    let skipped = |minute: u64| {
        // Local times between that of the previous minute and this one.
        let (mut time, end) = (local(minute - 1), local(minute));
        let step = SignedDuration::from_mins(1);
        time = time.checked_add(step).expect("a time");
        std::iter::from_fn(move || {
            let now = time;
            time = time.checked_add(step).expect("a time");
            (now < end).then_some(now)
        })
    };
    let is_first = |minute: u64| {
        let at = zone.rules.to_ambiguous_timestamp(local(minute)).earlier().expect("a time");
        at == timestamp(minute * MINUTE).expect("a time")
    };
    let runs = |minute: u64| {
        if cron.is_interval() {
            cron.matches(local(minute))
        } else {
            (cron.matches(local(minute)) && is_first(minute))
                || skipped(minute).any(|time| cron.matches(time))
        }
    };
    (first..first + minutes).find(|minute| runs(*minute)).map(|minute| minute * MINUTE)
}

fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (min..=max).prop_map(|value| value.to_string()),
        2 => (1..=max).prop_map(|step| format!("*/{step}")),
        2 => (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (min..=max, min..=max, min..=max).prop_map(|(a, b, c)| format!("{a},{b},{c}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn next_time_equals_that_of_a_search_by_minutes(
        (minute, hour, day, weekday) in (field(0, 59), field(0, 23), field(1, 31), field(0, 7)),
        place in prop::sample::select(vec![
            "Europe/Berlin", "Australia/Sydney", "America/St_Johns", "Australia/Lord_Howe",
            "America/Havana", "Asia/Kolkata", "Africa/Casablanca", "UTC",
        ]),
        // Days around changes of the clock.
        day_of in prop::sample::select(vec![
            "2026-03-07", "2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24", "2026-10-31",
            "2026-02-14", "2026-03-21", "2027-12-31", "2028-02-28",
        ]),
        offset_ms in 0_u64..172_800_000,
    ) {
        let text = format!("{minute} {hour} {day} * {weekday}");
        let (cron, zone) = (cron(&text), zone(place));
        let after = ms(&format!("{day_of}T00:00:00Z")) + offset_ms;
        let minutes = 3 * 24 * 60;
        let next = cron.next(after, &zone).filter(|at| *at <= (after / 60_000 + minutes) * 60_000);
        prop_assert_eq!(next, slow_next(&cron, after, &zone, minutes), "{} in {}", text, place);
    }
}
