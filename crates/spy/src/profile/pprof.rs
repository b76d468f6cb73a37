//! A profile as `go tool pprof` takes it: profile.proto, gzipped.
//!
//! The messages are those of github.com/google/pprof/proto/profile.proto, without the fields that we have nothing for.

use super::{Call, Profile};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Clone, PartialEq, Message)]
struct Document {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
    #[prost(int64, tag = "5")]
    start_line: i64,
}

/// The table of texts; the empty one comes first, as the format wants it.
struct Texts {
    all: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Texts {
    fn new() -> Self {
        Self { all: vec![String::new()], numbers: HashMap::from([(String::new(), 0)]) }
    }

    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = signed(self.all.len() as u64);
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// The profile, gzipped: samples, wall time and CPU time of each stack. It took `duration`, from `began` on.
pub fn render(
    profile: &Profile,
    began: SystemTime,
    duration: Duration,
    hertz: u32,
) -> io::Result<Vec<u8>> {
    let mut texts = Texts::new();
    let mut kind =
        |name: &str, unit: &str| ValueType { r#type: texts.number(name), unit: texts.number(unit) };
    let sample_type =
        vec![kind("samples", "count"), kind("wall", "nanoseconds"), kind("cpu", "nanoseconds")];
    let period_type = Some(sample_type[1]);
    let (location, places) = locations(profile);
    let sample = profile.stacks().into_iter().map(|(calls, weight)| Sample {
        // The innermost call first.
        location_id: calls.iter().rev().map(|call| places[call]).collect(),
        value: vec![signed(weight.samples), signed(weight.wall_ns), signed(weight.cpu_ns)],
    });
    let sample = sample.collect();
    let functions = profile.functions().iter().zip(1..).map(|(function, id)| Function {
        id,
        name: texts.number(&function.label()),
        system_name: texts.number(&function.full_name()),
        filename: texts.number(&function.file),
        start_line: i64::from(function.line),
    });
    let function = functions.collect();
    let since = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let document = Document {
        sample_type,
        sample,
        location,
        function,
        default_sample_type: texts.number("wall"),
        string_table: texts.all,
        time_nanos: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
        period_type,
        period: 1_000_000_000 / i64::from(hertz.max(1)),
    };
    let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
    zipped.write_all(&document.encode_to_vec())?;
    zipped.finish()
}

/// Each call that occurs, with a number.
fn locations(profile: &Profile) -> (Vec<Location>, HashMap<Call, u64>) {
    let (mut all, mut places) = (Vec::new(), HashMap::new());
    for call in profile.stacks().into_iter().flat_map(|(calls, _)| calls) {
        places.entry(*call).or_insert_with(|| {
            let id = all.len() as u64 + 1;
            let line =
                Line { function_id: u64::from(call.function) + 1, line: i64::from(call.line) };
            all.push(Location { id, line: vec![line] });
            id
        });
    }
    (all, places)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
