//! A profile as lines `outer;inner 12`, the input of flame graph scripts.

use super::stacks::Profile;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The profile, one line per stack of functions.
pub fn render(profile: &Profile) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (calls, weight) in profile.stacks() {
        let names: Vec<_> =
            calls.iter().map(|call| profile.function(*call).label().replace(';', ":")).collect();
        *lines.entry(names.join(";")).or_default() += weight.samples;
    }
    let mut out = String::new();
    for (stack, samples) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{stack} {samples}");
    }
    out
}
