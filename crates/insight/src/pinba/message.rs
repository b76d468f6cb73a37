//! Protocol message; the field numbers are defined by the protocol.

// The protocol defines the names of the fields.
#![allow(clippy::struct_field_names)]

/// One request. Columns `timer_*` have one row per timer, columns of tags one per tag.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Request {
    #[prost(string, required, tag = "1")]
    pub(super) hostname: String,
    #[prost(string, required, tag = "2")]
    pub(super) server_name: String,
    #[prost(string, required, tag = "3")]
    pub(super) script_name: String,
    #[prost(uint32, required, tag = "4")]
    pub(super) request_count: u32,
    /// Bytes.
    #[prost(uint32, required, tag = "5")]
    pub(super) document_size: u32,
    /// Bytes.
    #[prost(uint32, required, tag = "6")]
    pub(super) memory_peak: u32,
    /// In seconds, like all times.
    #[prost(float, required, tag = "7")]
    pub(super) request_time: f32,
    #[prost(float, required, tag = "8")]
    pub(super) ru_utime: f32,
    #[prost(float, required, tag = "9")]
    pub(super) ru_stime: f32,
    #[prost(uint32, repeated, packed = "false", tag = "10")]
    pub(super) timer_hit_count: Vec<u32>,
    #[prost(float, repeated, packed = "false", tag = "11")]
    pub(super) timer_value: Vec<f32>,
    #[prost(uint32, repeated, packed = "false", tag = "12")]
    pub(super) timer_tag_count: Vec<u32>,
    /// Indexes in the dictionary, like the next field.
    #[prost(uint32, repeated, packed = "false", tag = "13")]
    pub(super) timer_tag_name: Vec<u32>,
    #[prost(uint32, repeated, packed = "false", tag = "14")]
    pub(super) timer_tag_value: Vec<u32>,
    #[prost(string, repeated, tag = "15")]
    pub(super) dictionary: Vec<String>,
    /// HTTP status.
    #[prost(uint32, optional, tag = "16")]
    pub(super) status: Option<u32>,
    #[prost(uint32, optional, tag = "17")]
    pub(super) memory_footprint: Option<u32>,
    #[prost(message, repeated, tag = "18")]
    pub(super) requests: Vec<Request>,
    #[prost(string, optional, tag = "19")]
    pub(super) schema: Option<String>,
    #[prost(uint32, repeated, packed = "false", tag = "20")]
    pub(super) tag_name: Vec<u32>,
    #[prost(uint32, repeated, packed = "false", tag = "21")]
    pub(super) tag_value: Vec<u32>,
    #[prost(float, repeated, packed = "false", tag = "22")]
    pub(super) timer_ru_utime: Vec<f32>,
    #[prost(float, repeated, packed = "false", tag = "23")]
    pub(super) timer_ru_stime: Vec<f32>,
}
