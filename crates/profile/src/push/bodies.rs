//! A minute → request bodies for Pyroscope: one profile of CPU time and one of wall time per route,
//! pool, generation and model, in pprof's format, with labels.
//!
//! The messages are those of `push/v1/push.proto` and `types/v1/types.proto` in
//! github.com/grafana/pyroscope/api.

use crate::current_minute::{Minute, Row};
use prost::Message;
use samovar_insight::OTHER;
use samovar_spy::profile::Profile;
use samovar_spy::profile::pprof::{Value, render_one};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, UNIX_EPOCH};

/// Maximum number of rows of a minute with profiles of their own. The others are added up to one
/// per pool, generation and model.
const ROWS_MAX: usize = 100;
/// Maximum size of one profile before compression: Pyroscope accepts 4 MiB by default.
const PROFILE_BYTES_MAX: usize = 3 << 20;
/// A body is complete when its profiles reach this size.
const BODY_BYTES: usize = 1 << 20;
/// Maximum number of distinct stacks in a profile.
const STACKS_MAX: usize = 10_000;
/// Maximum bytes of a label's value: Pyroscope's limit.
const VALUE_BYTES_MAX: usize = 2_048;
const MINUTE_S: u64 = 60;

/// Names and values of the profiles, as Pyroscope's pages expect them:
/// `process_cpu:cpu:nanoseconds:cpu:nanoseconds` and similar.
const KINDS: [(&str, Value); 2] = [("process_cpu", Value::Cpu), ("wall", Value::Wall)];

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<RawProfileSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct RawProfileSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

/// Returns the labels that all profiles of this server have.
pub(super) fn labels(
    service: &str,
    host: &str,
    more: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = BTreeMap::from([("hostname", host), ("service_name", service)]);
    all.extend(more.iter().map(|(name, value)| (&**name, &**value)));
    let whole = all.into_iter().filter(|(_, value)| !value.is_empty());
    whole.map(|(name, value)| (name.to_owned(), cut(value).to_owned())).collect()
}

/// Returns the bodies, each with its number of profiles.
pub(super) fn of(minute: &Minute, labels: &[(String, String)], now: u64) -> Vec<(Vec<u8>, u64)> {
    let duration = now.saturating_sub(minute.at).clamp(1, MINUTE_S);
    let when = (UNIX_EPOCH + Duration::from_secs(minute.at), Duration::from_secs(duration));
    let (mut bodies, mut request, mut bytes) = (Vec::new(), PushRequest::default(), 0);
    for (route, row, profile) in rows(minute) {
        for (name, value) in KINDS {
            let rendered = render_one(&profile, value, when, PROFILE_BYTES_MAX);
            // Writing to memory cannot fail. A row without CPU time has no profile of it.
            let Ok(Some(raw_profile)) = rendered else { continue };
            bytes += raw_profile.len();
            let samples = vec![RawSample { raw_profile, id: id() }];
            let labels = with(labels, name, route, row);
            request.series.push(RawProfileSeries { labels, samples });
            if bytes >= BODY_BYTES {
                bodies.push(std::mem::take(&mut request));
                bytes = 0;
            }
        }
    }
    if !request.series.is_empty() {
        bodies.push(request);
    }
    let encoded = |body: PushRequest| (body.encode_to_vec(), body.series.len() as u64);
    bodies.into_iter().map(encoded).collect()
}

/// Returns the rows with samples, most samples first. Rows beyond the limit are added up.
fn rows(minute: &Minute) -> Vec<(&str, &Row, Cow<'_, Profile>)> {
    let seen = minute.rows.iter().filter(|(_, row)| !row.profile.is_empty());
    let mut seen: Vec<_> = seen.map(|(route, row)| (&**route, row)).collect();
    seen.sort_by_key(|(_, row)| std::cmp::Reverse(row.profile.total().samples));
    let others = seen.split_off(seen.len().min(ROWS_MAX));
    let mut sums: Vec<(&Row, Profile)> = Vec::new();
    for (_, row) in others {
        let is_it =
            |(other, _): &&mut (&Row, Profile)| other.is_of(&row.pool, row.generation, row.model);
        match sums.iter_mut().find(is_it) {
            Some((_, sum)) => sum.merge(&row.profile, STACKS_MAX),
            None => sums.push((row, row.profile.clone())),
        }
    }
    let own = seen.into_iter().map(|(route, row)| (route, row, Cow::Borrowed(&row.profile)));
    let sums = sums.into_iter().map(|(row, sum)| (OTHER, row, Cow::Owned(sum)));
    own.chain(sums).collect()
}

/// Returns the labels sorted by name, as Pyroscope requires.
fn with(all: &[(String, String)], name: &str, route: &str, row: &Row) -> Vec<LabelPair> {
    let generation = row.generation.to_string();
    let own = [
        ("__name__", name),
        ("generation", &*generation),
        ("model", row.model.name()),
        ("route", cut(route)),
    ];
    // The default pool has no such label, so its series stay the same when other pools are added.
    let pool = (!row.pool.is_empty()).then_some(("pool", &*row.pool));
    let all = all.iter().map(|(name, value)| (&**name, &**value));
    let sorted: BTreeMap<&str, &str> = all.chain(own).chain(pool).collect();
    let pair = |(name, value): (&str, &str)| LabelPair { name: name.into(), value: value.into() };
    sorted.into_iter().map(pair).collect()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]
}

/// Returns a random id (UUID, version 4). Each `RandomState` of std has its own random seed.
fn id() -> String {
    let random = || u128::from(RandomState::new().hash_one(()));
    let bits = random() << 64 | random();
    let bits = bits & !(0xf << 76 | 0b11 << 62) | 0x4 << 76 | 0b10 << 62;
    let text = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
