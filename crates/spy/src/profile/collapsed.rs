//! A profile as lines `outer;inner 12`, the input of flame graph scripts.

use super::stacks::{Profile, Weight};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The profile, one line per stack of functions, with its number of samples.
pub fn render(profile: &Profile) -> String {
    lines(profile, |weight| weight.samples)
}

/// The profile of a measure in bytes, one line per stack of functions, with its bytes.
pub fn render_bytes(profile: &Profile) -> String {
    lines(profile, |weight| weight.wall_ns)
}

fn lines(profile: &Profile, value: fn(Weight) -> u64) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (calls, weight) in profile.stacks() {
        let names: Vec<_> =
            calls.iter().map(|call| profile.function(*call).label().replace(';', ":")).collect();
        *lines.entry(names.join(";")).or_default() += value(weight);
    }
    let mut out = String::new();
    for (stack, value) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{stack} {value}");
    }
    out
}
