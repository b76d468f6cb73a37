//! Runs the checks of the FastCGI fuzz targets on streams that are almost valid. Part of every test
//! run, without a special compiler.

#[path = "bytes/changed.rs"]
mod changed;

use changed::changed;
use proptest::prelude::*;
use samovar_front::{fastcgi_requests_in, fastcgi_response_bytes_in};

/// Size of two record headers and of the contents of the first, BEGIN.
const REQUEST_BYTES_MIN: usize = 24;

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        Just(vec![]),
        // Valid BEGIN and END.
        (any::<u8>(), any::<u8>()).prop_map(|(a, b)| vec![0, 1, a & 1, 0, b & 3, 0, 0, 0]),
        // Parameters, and the head of a response.
        Just(b"\x0e\x03REQUEST_METHODGET\x0e\x01CONTENT_LENGTH5\x0b\x02SCRIPT_NAME/a".to_vec()),
        Just(b"\x0f\x80\0\0\x02SCRIPT_FILENAME/b\x09\0HTTP_HOST".to_vec()),
        Just(b"Status: 200 OK\r\n\r\nbody".to_vec()),
        Just(b"X: y\n".to_vec()),
    ]
}

fn record() -> impl Strategy<Value = Vec<u8>> {
    (0..13u8, 0..3u8, content(), 0..9u8).prop_map(|(kind, id, content, padding)| {
        let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
        let mut out = vec![1, kind, 0, id, high, low, padding, 0];
        out.extend_from_slice(&content);
        out.resize(out.len() + usize::from(padding), 0xee);
        out
    })
}

/// Records in the order of a request, or in no order, with some bytes changed.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let request = (0..3u8, content()).prop_map(|(id, params)| {
        let record = |kind: u8, content: &[u8]| {
            let [high, low] = u16::try_from(content.len()).expect("short").to_be_bytes();
            [&[1, kind, 0, id, high, low, 0, 0][..], content].concat()
        };
        [
            record(1, &[0, 1, 1, 0, 0, 0, 0, 0]),
            record(4, &params),
            record(4, b""),
            record(5, b"bytes"),
            record(5, b""),
        ]
        .concat()
    });
    let pieces = prop::collection::vec(prop_oneof![record(), request], 0..12);
    changed(pieces.prop_map(|pieces| pieces.concat()), 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(512)))]

    #[test]
    fn fastcgi_stream_has_no_more_requests_than_fit_its_bytes(bytes in stream()) {
        prop_assert!(fastcgi_requests_in(&bytes, 64) * REQUEST_BYTES_MIN <= bytes.len());
    }

    #[test]
    fn fastcgi_response_has_no_more_bytes_than_its_stream(bytes in stream()) {
        prop_assert!(fastcgi_response_bytes_in(&bytes) <= bytes.len());
    }
}

#[test]
fn fastcgi_request_and_response_are_read() {
    let record = |kind: u8, content: &[u8]| {
        [&[1, kind, 0, 1, 0, u8::try_from(content.len()).expect("short"), 0, 0][..], content]
            .concat()
    };
    let begin = record(1, &[0, 1, 1, 0, 0, 0, 0, 0]);
    let request = [begin, record(4, b""), record(5, b"")].concat();
    assert_eq!(fastcgi_requests_in(&request.repeat(3), 64), 3);
    let response = [record(6, b"A: b\r\n\r\nbody"), record(6, b""), record(3, &[0; 8])].concat();
    assert_eq!(fastcgi_response_bytes_in(&response), 4);
}
