//! Runs the checks of the PROXY header's fuzz target on headers that are almost valid. Part of
//! every test run, without a special compiler.

#[path = "bytes/changed.rs"]
mod changed;

use changed::changed;
use proptest::prelude::*;
use samovar_front::proxy_header::{BYTES_MAX, Unfinished, read};

fn line() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("PROXY"),
        Just("TCP4"),
        Just("TCP6"),
        Just("UNKNOWN"),
        Just("192.0.2.1"),
        Just("2001:db8::1"),
        Just("::ffff:192.0.2.1"),
        Just("65535"),
        Just("65536"),
        Just("0"),
        Just("")
    ];
    let end = prop_oneof![Just("\r\n"), Just("\n"), Just("\r"), Just("")];
    (prop::collection::vec(word, 0..8), end)
        .prop_map(|(words, end)| format!("PROXY {}{end}", words.join(" ")).into_bytes())
}

fn binary() -> impl Strategy<Value = Vec<u8>> {
    let family = prop_oneof![Just(0x11u8), Just(0x21), Just(0x31), Just(0x12), any::<u8>()];
    let command = prop_oneof![Just(0x20u8), Just(0x21), any::<u8>()];
    (command, family, prop::collection::vec(any::<u8>(), 0..260), -2..3i32).prop_map(
        |(command, family, content, off)| {
            let told = u16::try_from(content.len()).expect("short").wrapping_add_signed(off as i16);
            let [high, low] = told.to_be_bytes();
            let head = [command, family, high, low];
            [&b"\r\n\r\n\0\r\nQUIT\n"[..], &head, &content].concat()
        },
    )
}

/// One of the two versions, followed by other bytes, with some bytes changed.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let header = prop_oneof![line(), binary(), prop::collection::vec(any::<u8>(), 0..64)];
    let rest = prop::collection::vec(any::<u8>(), 0..20);
    changed((header, rest).prop_map(|(header, rest)| [header, rest].concat()), 2)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1024)))]

    #[test]
    fn proxy_header_is_read_in_only_one_way(bytes in stream()) {
        match read(&bytes) {
            Ok((header, used)) => {
                prop_assert!(used <= bytes.len() && used <= BYTES_MAX);
                prop_assert_eq!(read(&bytes[..used]), Ok((header, used)));
                prop_assert_eq!(read(&bytes[..used - 1]), Err(Unfinished::More));
            }
            // It must not request more bytes forever.
            Err(Unfinished::More) => prop_assert!(bytes.len() < BYTES_MAX),
            Err(Unfinished::Wrong(_)) => {}
        }
    }
}

#[test]
fn both_proxy_header_versions_are_read() {
    let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\r\nGET";
    assert!(matches!(read(line), Ok((_, used)) if used == line.len() - 3));
    let head = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
    let binary = [&head[..], &[192, 0, 2, 1, 192, 0, 2, 2, 4, 210, 1, 187]].concat();
    assert!(matches!(read(&binary), Ok((_, used)) if used == binary.len()));
}
