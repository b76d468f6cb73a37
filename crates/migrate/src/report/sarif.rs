//! The report as SARIF 2.1.0.

use crate::finding::{Finding, Severity};
use crate::rules::rules;
use crate::scan::Checked;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Parameters of FNV-1a with 64 bits: the fingerprint must be the same in all releases.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

pub(super) fn render(checked: &Checked) -> String {
    let mut used: BTreeMap<&str, &Finding> = BTreeMap::new();
    for (_, findings) in &checked.files {
        for finding in findings {
            used.entry(finding.rule).or_insert(finding);
        }
    }
    let descriptions: Vec<Value> = used
        .iter()
        .map(|(id, finding)| {
            let rule = rules().iter().find(|rule| rule.id == *id);
            let says = rule.map_or("", |rule| rule.says);
            let text = if says.is_empty() { finding.message.as_str() } else { says };
            json!({
                "id": id,
                "shortDescription": {"text": text},
                "helpUri": finding.url,
                "defaultConfiguration": {"level": level(finding)},
            })
        })
        .collect();
    let ids: Vec<&str> = used.keys().copied().collect();
    let results: Vec<Value> = checked
        .files
        .iter()
        .flat_map(|(path, findings)| {
            let ids = &ids;
            findings.iter().map(move |finding| {
                let uri = uri(path);
                let text = match finding.action.as_str() {
                    "" => finding.message.clone(),
                    action => format!("{}; {action}", finding.message),
                };
                json!({
                    "ruleId": finding.rule,
                    "ruleIndex": ids.binary_search(&finding.rule).unwrap_or_default(),
                    "level": level(finding),
                    "message": {"text": text},
                    "locations": [{"physicalLocation": {
                        "artifactLocation": {"uri": uri},
                        "region": {"startLine": finding.line, "startColumn": finding.column},
                    }}],
                    "partialFingerprints": {"ruleFileLine/v1": fingerprint(&uri, finding)},
                })
            })
        })
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "samovar migrate check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": descriptions,
            }},
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&log).expect("texts and numbers");
    text.push('\n');
    text
}

fn level(finding: &Finding) -> &'static str {
    match finding.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    }
}

/// A relative path or a `file:` address, with the bytes escaped that an address cannot contain.
fn uri(path: &Path) -> String {
    let mut text = String::new();
    if path.is_absolute() {
        text.push_str("file://");
    }
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn fingerprint(uri: &str, finding: &Finding) -> String {
    let mut hash = FNV_START;
    for byte in [finding.rule, "\0", uri, "\0", &finding.text].iter().flat_map(|text| text.bytes())
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
    }
    format!("{hash:016x}")
}
