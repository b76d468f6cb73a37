//! Messages through `protoc` and the definitions in crates/insight/tests/transports: a reader that shares nothing with ours.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// A Pinba packet.
pub const PINBA: (&str, &str) = ("pinba.proto", "Pinba.Request");
/// Spans, as a collector is sent them.
pub const TRACES: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportTraceServiceRequest");
/// Figures, as a collector is sent them.
pub const METRICS: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportMetricsServiceRequest");
/// Profiles, as Pyroscope is sent them.
pub const PUSH: (&str, &str) = ("pyroscope.proto", "pyroscope.PushRequest");
/// What a collector answers to spans.
pub const ANSWER: (&str, &str) = ("otlp.proto", "opentelemetry.proto.ExportTraceServiceResponse");

/// Bytes as text.
pub fn decode(message: (&str, &str), bytes: &[u8]) -> String {
    String::from_utf8(run("decode", message, bytes)).expect("protoc's text")
}

/// Text as bytes.
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
