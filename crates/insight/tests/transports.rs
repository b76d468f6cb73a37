//! What leaves the server and comes in, seen from the other side: collectors that misbehave, Pinba's own extension, and
//! `protoc`, which has never heard of our encodings.

#[path = "transports/otlp.rs"]
mod otlp;
#[path = "transports/pinba.rs"]
mod pinba;
#[path = "transports/stage.rs"]
mod stage;
#[path = "transports/tls.rs"]
mod tls;
