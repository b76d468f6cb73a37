//! `cargo +nightly fuzz run proxy_header` in crates/front.
#![no_main]

use samovar_front::proxy_header::{BYTES_MAX, Unfinished, read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match read(bytes) {
        Ok((header, used)) => {
            assert!(used <= bytes.len() && used <= BYTES_MAX);
            // What follows it changes nothing, and without its last byte it is unfinished.
            assert_eq!(read(&bytes[..used]), Ok((header, used)));
            assert_eq!(read(&bytes[..used - 1]), Err(Unfinished::More));
        }
        // It must not ask for ever.
        Err(Unfinished::More) => assert!(bytes.len() < BYTES_MAX),
        Err(Unfinished::Wrong(_)) => {}
    }
});
