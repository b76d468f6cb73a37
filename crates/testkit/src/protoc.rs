//! Messages through `protoc` and the definitions in crates/insight/tests/transports: a decoder that
//! shares no code with ours.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// A Pinba packet.
pub const PINBA: (&str, &str) = ("pinba.proto", "Pinba.Request");
/// Spans, as sent to a collector.
pub const TRACES: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportTraceServiceRequest");
/// Metrics, as sent to a collector.
pub const METRICS: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportMetricsServiceRequest");
/// Profiles, as sent to Pyroscope.
pub const PUSH: (&str, &str) = ("pyroscope.proto", "pyroscope.PushRequest");
/// A collector's response to spans.
pub const RESPONSE: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportTraceServiceResponse");

/// Decodes bytes to text.
pub fn decode(message: (&str, &str), bytes: &[u8]) -> String {
    String::from_utf8(run("decode", message, bytes)).expect("protoc's text")
}

/// Encodes text to bytes.
pub fn encode(message: (&str, &str), text: &str) -> Vec<u8> {
    run("encode", message, text.as_bytes())
}

fn run(way: &str, (file, message): (&str, &str), input: &[u8]) -> Vec<u8> {
    let folder = crate::workspace().join("crates/insight/tests/transports");
    let folder = folder.display();
    let mut protoc = Command::new("protoc")
        .args([&format!("--{way}={message}"), &format!("--proto_path={folder}"), file])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("protoc is there (hint: scripts/setup.sh test)");
    let mut stdin = protoc.stdin.take().expect("a pipe");
    stdin.write_all(input).expect("protoc reads");
    drop(stdin);
    let output = protoc.wait_with_output().expect("protoc ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
