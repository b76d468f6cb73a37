//! A profile in the format of `go tool pprof`: profile.proto, gzipped.
//!
//! The messages are those of github.com/google/pprof/proto/profile.proto, without the fields that
//! have no counterpart here.

use super::measure::{Measure, of};
use super::stacks::{Call, Profile, Weight};
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

/// The table of texts. The format requires the empty text first.
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

/// Values that a document has for each stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Number of samples.
    Samples,
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
    /// Bytes, in a profile of such a measure.
    Bytes(Measure),
}

impl Value {
    fn of(self, weight: Weight) -> u64 {
        match self {
            Value::Samples => weight.samples,
            Value::Wall => weight.wall_ns,
            Value::Cpu => weight.cpu_ns,
            Value::Bytes(measure) => of(weight, measure),
        }
    }

    fn kind(self, texts: &mut Texts) -> ValueType {
        let (name, unit) = match self {
            Value::Samples => ("samples", "count"),
            Value::Wall => ("wall", "nanoseconds"),
            Value::Cpu => ("cpu", "nanoseconds"),
            Value::Bytes(measure) => (measure.name_of_bytes().0, "bytes"),
        };
        ValueType { r#type: texts.number(name), unit: texts.number(unit) }
    }
}

/// The profile, gzipped: samples, wall time and CPU time of each stack. The recording took
/// `duration`, starting at `began`.
pub fn render(
    profile: &Profile,
    began: SystemTime,
    duration: Duration,
    hertz: u32,
) -> io::Result<Vec<u8>> {
    let values = [Value::Samples, Value::Wall, Value::Cpu];
    let period = 1_000_000_000 / i64::from(hertz.max(1));
    zipped(&document(profile, profile.stacks(), &values, (Value::Wall, period), (began, duration)))
}

/// The profile of a measure in bytes, gzipped: samples and bytes of each stack.
pub fn render_bytes(
    profile: &Profile,
    measure: Measure,
    (began, duration): (SystemTime, Duration),
) -> io::Result<Vec<u8>> {
    let bytes = Value::Bytes(measure);
    let (values, when) = ([Value::Samples, bytes], (began, duration));
    zipped(&document(profile, profile.stacks(), &values, (bytes, 1), when))
}

/// Same as [`render`] with one value, for the stacks that have any of it. At most `bytes_max`
/// before compression: the heaviest stacks. `None` if no stack has any, or if not even one fits.
pub fn render_one(
    profile: &Profile,
    value: Value,
    (began, duration): (SystemTime, Duration),
    bytes_max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut stacks = profile.stacks();
    stacks.retain(|(_, weight)| value.of(*weight) > 0);
    stacks.sort_by_key(|(_, weight)| std::cmp::Reverse(value.of(*weight)));
    // Ends, because each round halves the number of stacks.
    while !stacks.is_empty() {
        let (period, when) = ((value, 1), (began, duration));
        let document = document(profile, stacks.clone(), &[value], period, when);
        if document.encoded_len() <= bytes_max {
            return zipped(&document).map(Some);
        }
        stacks.truncate(stacks.len() / 2);
    }
    Ok(None)
}

fn zipped(document: &Document) -> io::Result<Vec<u8>> {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::default());
    zipped.write_all(&document.encode_to_vec())?;
    zipped.finish()
}

fn document(
    profile: &Profile,
    stacks: Vec<(&[Call], Weight)>,
    values: &[Value],
    (period_type, period): (Value, i64),
    (began, duration): (SystemTime, Duration),
) -> Document {
    let mut texts = Texts::new();
    let sample_type: Vec<_> = values.iter().map(|value| value.kind(&mut texts)).collect();
    let period_type_of = period_type.kind(&mut texts);
    let (location, places) = locations(stacks.iter().map(|(calls, _)| *calls));
    let mut is_named = vec![false; profile.functions().len()];
    for call in places.keys() {
        is_named[call.function as usize] = true;
    }
    let functions = profile.functions().iter().zip(1..).zip(is_named);
    let functions =
        functions.filter(|(_, is_named)| *is_named).map(|((function, id), _)| Function {
            id,
            name: texts.number(&function.label()),
            system_name: texts.number(&function.full_name()),
            filename: texts.number(&function.file),
            start_line: i64::from(function.line),
        });
    let function = functions.collect();
    let sample = stacks.into_iter().map(|(calls, weight)| Sample {
        // The innermost call first.
        location_id: calls.iter().rev().map(|call| places[call]).collect(),
        value: values.iter().map(|value| signed(value.of(weight))).collect(),
    });
    let sample = sample.collect();
    let since = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    Document {
        sample_type,
        sample,
        location,
        function,
        default_sample_type: period_type_of.r#type,
        string_table: texts.all,
        time_nanos: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        duration_nanos: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX),
        period_type: Some(period_type_of),
        period,
    }
}

/// Each call that occurs, with a number.
fn locations<'a>(stacks: impl Iterator<Item = &'a [Call]>) -> (Vec<Location>, HashMap<Call, u64>) {
    let (mut all, mut places) = (Vec::new(), HashMap::new());
    for call in stacks.flatten() {
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
