//! `cargo +nightly fuzz run fastcgi` in crates/front.
#![no_main]

use samovar_front::fastcgi_requests_in;

/// Size of two record headers and of the contents of the first, BEGIN.
const REQUEST_BYTES_MIN: usize = 24;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let requests = fastcgi_requests_in(bytes, 64);
    assert!(requests * REQUEST_BYTES_MIN <= bytes.len());
});
