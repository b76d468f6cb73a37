//! `cargo +nightly fuzz run fastcgi_response` in crates/front.
#![no_main]

use samovar_front::fastcgi_response_bytes_in;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(fastcgi_response_bytes_in(bytes) <= bytes.len());
});
