//! A minute → the bodies of requests to Pyroscope: a profile of CPU time and one of the clock's for each route, pool, generation
//! and model, in pprof's format, with labels.
//!
//! The messages are those of `push/v1/push.proto` and `types/v1/types.proto` in github.com/grafana/pyroscope/api.

use crate::running::{Minute, Row};
use prost::Message;
use samovar_insight::OTHER;
use samovar_spy::profile::Profile;
use samovar_spy::profile::pprof::{Value, render_one};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, UNIX_EPOCH};

/// Routes' rows of one minute that have profiles of their own; all others are one for each pool, generation and model.
const ROWS_MAX: usize = 100;
/// One profile, before it is packed: Pyroscope takes 4 MiB unless it is told otherwise.
const PROFILE_BYTES_MAX: usize = 3 << 20;
/// Profiles of so many bytes go together.
const BODY_BYTES: usize = 1 << 20;
/// Different stacks of a profile.
const STACKS_MAX: usize = 10_000;
/// Bytes of a label's value: Pyroscope's limit.
const VALUE_BYTES_MAX: usize = 2_048;
const MINUTE_S: u64 = 60;

/// What Pyroscope's pages look for: `process_cpu:cpu:nanoseconds:cpu:nanoseconds` and the like.
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

/// What all profiles of this server have.
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

/// The bodies, each with how many profiles it has.
pub(super) fn of(minute: &Minute, labels: &[(String, String)], now: u64) -> Vec<(Vec<u8>, u64)> {
    let duration = now.saturating_sub(minute.at).clamp(1, MINUTE_S);
    let when = (UNIX_EPOCH + Duration::from_secs(minute.at), Duration::from_secs(duration));
    let (mut bodies, mut request, mut bytes) = (Vec::new(), PushRequest::default(), 0);
    for (route, row, profile) in rows(minute) {
        for (name, value) in KINDS {
            let rendered = render_one(&profile, value, when, PROFILE_BYTES_MAX);
            // Writing to memory cannot fail; and who has used no CPU time has no such profile.
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

/// Those that were seen, the heaviest first; the lightest of many are added up.
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

/// In the order of their names, as Pyroscope has them.
fn with(all: &[(String, String)], name: &str, route: &str, row: &Row) -> Vec<LabelPair> {
    let generation = row.generation.to_string();
    let own = [
        ("__name__", name),
        ("generation", &*generation),
        ("model", row.model.name()),
        ("route", cut(route)),
    ];
    // The default pool's have none: so they are the same series before and after there are others.
    let pool = (!row.pool.is_empty()).then_some(("pool", &*row.pool));
    let all = all.iter().map(|(name, value)| (&**name, &**value));
    let sorted: BTreeMap<&str, &str> = all.chain(own).chain(pool).collect();
    let pair = |(name, value): (&str, &str)| LabelPair { name: name.into(), value: value.into() };
    sorted.into_iter().map(pair).collect()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]
}

/// An id that no other profile has (UUID, version 4): std's hash tables have a random seed each.
fn id() -> String {
    let random = || u128::from(RandomState::new().hash_one(()));
    let bits = random() << 64 | random();
    let bits = bits & !(0xf << 76 | 0b11 << 62) | 0x4 << 76 | 0b10 << 62;
    let text = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
