//! `cargo +nightly fuzz run proxy_header` in crates/front.
#![no_main]

use samovar_front::proxy_header::{BYTES_MAX, Unfinished, read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    match read(bytes) {
        Ok((header, used)) => {
            assert!(used <= bytes.len() && used <= BYTES_MAX);
            // Bytes after the header have no influence. Without its last byte it is unfinished.
            assert_eq!(read(&bytes[..used]), Ok((header, used)));
            assert_eq!(read(&bytes[..used - 1]), Err(Unfinished::More));
        }
        // It must not request more bytes forever.
        Err(Unfinished::More) => assert!(bytes.len() < BYTES_MAX),
        Err(Unfinished::Wrong(_)) => {}
    }
});
