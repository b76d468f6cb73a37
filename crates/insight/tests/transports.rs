//! Tests importers and exporters from the other side: collectors that fail, Pinba's own extension,
//! and `protoc`, which is independent of our encoding.

#[path = "transports/otlp.rs"]
mod otlp;
#[path = "transports/pinba.rs"]
mod pinba;
#[path = "transports/stage.rs"]
mod stage;
#[path = "transports/tls.rs"]
mod tls;
