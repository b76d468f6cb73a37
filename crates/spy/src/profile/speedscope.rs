//! A profile in speedscope's format: <https://www.speedscope.app/file-format-schema.json>.

use super::stacks::Profile;
use serde_json::{Value, json};

/// The profile of times as JSON, with `name` as its title.
pub fn render(profile: &Profile, name: &str) -> String {
    document(profile, name, "nanoseconds")
}

/// The profile of a measure in bytes as JSON, with `name` as its title.
pub fn render_bytes(profile: &Profile, name: &str) -> String {
    document(profile, name, "bytes")
}

fn document(profile: &Profile, name: &str, unit: &str) -> String {
    let frames: Vec<Value> = profile
        .functions()
        .iter()
        .map(|function| {
            if function.is_internal() {
                json!({"name": function.label()})
            } else {
                json!({"name": function.label(), "file": function.file, "line": function.line})
            }
        })
        .collect();
    let stacks = profile.stacks();
    let samples: Vec<Vec<u32>> =
        stacks.iter().map(|(calls, _)| calls.iter().map(|call| call.function).collect()).collect();
    let weights: Vec<u64> = stacks.iter().map(|(_, weight)| weight.wall_ns).collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": frames},
        "profiles": [{
            "type": "sampled",
            "name": name,
            "unit": unit,
            "startValue": 0,
            "endValue": weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight)),
            "samples": samples,
            "weights": weights,
        }],
        "name": name,
        "activeProfileIndex": 0,
        "exporter": concat!("samovar ", env!("CARGO_PKG_VERSION")),
    });
    document.to_string()
}
