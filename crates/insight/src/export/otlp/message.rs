//! Protocol messages, with the used fields only:
//! `opentelemetry/proto/{collector/trace,trace,resource,common}/v1`.

// The protocol defines the names of the fields.
#![allow(clippy::struct_field_names)]

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::export::otlp) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(in crate::export::otlp) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::export::otlp) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::export::otlp) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(in crate::export::otlp) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::export::otlp) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub(in crate::export::otlp) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::export::otlp) version: String,
}

/// Times are ns since 1970.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(in crate::export::otlp) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(in crate::export::otlp) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(in crate::export::otlp) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(in crate::export::otlp) name: String,
    #[prost(int32, tag = "6")]
    pub(in crate::export::otlp) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(in crate::export::otlp) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(in crate::export::otlp) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(in crate::export::otlp) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(in crate::export::otlp) status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct Status {
    #[prost(int32, tag = "3")]
    pub(in crate::export::otlp) code: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(in crate::export::otlp) key: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::export::otlp) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::export::otlp) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub(in crate::export::otlp) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(in crate::export::otlp) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}
