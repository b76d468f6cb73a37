//! Tests of the screen, driven as in `io_observer.rs`, with a simple parser in place of hyper.

use super::*;
use proptest::prelude::*;

const HEAD_BYTES_MAX: usize = 4096;
const BODY_BYTES_MAX: u64 = 1000;

/// The bytes that hyper got, and the notes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    bytes: Vec<u8>,
    notes: Vec<Note>,
    is_too_large: bool,
}

/// Offers `packets` one by one. Like hyper, requests more after each head and returns the framing
/// of its body.
fn run(packets: &[&[u8]]) -> Seen {
    let mut screen = Screen::new(HEAD_BYTES_MAX, true);
    let mut seen = Seen::default();
    let mut held = Vec::new();
    for packet in packets {
        held.extend_from_slice(packet);
        loop {
            let passed = screen.pass(&mut held);
            seen.bytes.extend(held.drain(..passed));
            if screen.position == Position::Given {
                seen.notes.push(screen.parsed(framing(&seen.bytes)));
            }
            if passed == 0 || held.is_empty() {
                break;
            }
        }
    }
    screen.end();
    screen.pass(&mut held);
    seen.bytes.append(&mut held);
    // The note of a head that did not end.
    seen.notes.push(std::mem::take(&mut screen.note));
    seen.is_too_large = screen.is_too_large();
    seen
}

/// hyper's rules for the head at the end of `bytes`, if hyper accepts it.
fn framing(bytes: &[u8]) -> Framing {
    let head = memchr::memmem::rfind(bytes, b" HTTP/1.").unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[head..]).to_ascii_lowercase();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    match (value("transfer-encoding:"), value("content-length:")) {
        (Some(_), _) => Framing::Chunks(BODY_BYTES_MAX),
        (None, Some(length)) => Framing::Length(length.parse().unwrap_or(0)),
        (None, None) => Framing::Length(0),
    }
}

fn target(seen: &Seen, n: usize) -> Option<&[u8]> {
    seen.notes[n].target.as_deref()
}

#[test]
fn unusual_target_is_covered_and_original_kept() {
    for (line, covered, kept) in [
        (&b"GET /a?b=c&d[]=%22~!*'();:@+$,-._ HTTP/1.1"[..], None, None),
        (b"GET /\"a\" HTTP/1.1", Some(&b"GET /_a_ HTTP/1.1"[..]), Some(&b"/\"a\""[..])),
        (b"GET /<>`{}|\\^# HTTP/1.1", Some(b"GET /_________ HTTP/1.1"), Some(b"/<>`{}|\\^#")),
        (b"GET /\xff?\xc3\xa4 HTTP/1.0", Some(b"GET /_?__ HTTP/1.0"), Some(b"/\xff?\xc3\xa4")),
        (b"GET http://h/\" HTTP/1.1", Some(b"GET http://h/_ HTTP/1.1"), Some(b"/\"")),
        // Not a path: hyper refuses it.
        (b"GET http://h\"/a HTTP/1.1", None, None),
        (b"GET http://h#a HTTP/1.1", None, None),
        (b"GET http://h?\" HTTP/1.1", None, None),
        (b"GET a\" HTTP/1.1", None, None),
        (b"\"GET /a HTTP/1.1", None, None),
        (b"GET /a \"HTTP/1.1", None, None),
        (b"GET /\x01\x7f\t HTTP/1.1", None, None),
        (b"GET /\"", None, None),
    ] {
        let head = [line, b"\r\nX: \"\xff\r\n\r\n"].concat();
        let seen = run(&[&head]);
        assert_eq!(&seen.bytes[..line.len()], covered.unwrap_or(line));
        assert_eq!(seen.bytes[line.len()..], head[line.len()..]);
        assert_eq!(target(&seen, 0), kept);
    }
}

#[test]
fn next_head_begins_after_the_body() {
    let odd = b"GET /\" HTTP/1.1\r\n\r\n";
    for body in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"P / HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /\" HTTP/1.1\r\n\r\n",
        b"P / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n13;\"\r\nGET /\" HTTP/1.1\r\n\r\n\r\n\
          0\r\n\r\n",
        b"P / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nGET: /\" HTTP\r\n\r\n",
        b"\r\n\r\nGET / HTTP/1.1\n\n",
    ] {
        let stream = [body, odd, odd].concat();
        let seen = run(&[&stream]);
        assert_eq!(seen.bytes[..body.len()], *body);
        assert_eq!(&seen.bytes[body.len()..], b"GET /_ HTTP/1.1\r\n\r\n".repeat(2));
        let targets: Vec<_> = (0..3).map(|n| target(&seen, n)).collect();
        assert_eq!(targets, [None, Some(&b"/\""[..]), Some(&b"/\""[..])]);
    }
}

#[test]
fn ambiguous_lengths_are_doubted() {
    let doubt = |headers: &str| {
        let seen = run(&[format!("P / HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()]);
        seen.notes[0].doubt
    };
    assert_eq!(doubt("Content-Length: 0\r\nContent-Type: a"), None);
    assert_eq!(doubt("Transfer-Encoding: chunked\r\nX-Content-Length: 0"), None);
    assert!(doubt("Content-Length: 0\r\ntransfer-encoding: chunked").is_some());
    assert!(doubt("Transfer-Encoding: chunked\r\nContent-Length: 0").is_some());
    assert!(doubt("Content-Length: 0\r\ncontent-length: 0").is_some());
}

#[test]
fn huge_lengths_are_lowered_to_refused_ones() {
    for (length, lowered) in [
        ("18446744073709551613", "18446744073709551613"),
        ("18446744073709551614", "09999999999999999999"),
        ("18446744073709551615", "09999999999999999999"),
        ("18446744073709551616", "09999999999999999999"),
        ("999999999999999999999999999999", "000000000009999999999999999999"),
        ("000000000000000000000000000005", "000000000000000000000000000005"),
        ("99999999999999999999x", "09999999999999999999x"),
        ("5", "5"),
        ("-1", "-1"),
    ] {
        let head =
            |n: &str| format!("P / HTTP/1.1\r\nContent-Length: \t{n} \r\nX: {length}\r\n\r\n");
        let seen = run(&[head(length).as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&seen.bytes), head(lowered));
    }
}

#[test]
fn chunk_above_limit_ends_the_body() {
    for (chunks, seen_as) in [
        ("3e8\r\n", "3e8\r\n"),
        ("3e9\r\n", "_e9\r\n"),
        ("ffffffffffffffff\r\n", "_fffffffffffffff\r\n"),
        ("ffffffffffffffffffff;a\r\n", "_fffffffffffffffffff;a\r\n"),
        ("2\r\nab\r\n3e7\r\n", "2\r\nab\r\n_e7\r\n"),
        ("xyz\r\n", "xyz\r\n"),
    ] {
        let head = "P / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let seen = run(&[format!("{head}{chunks}").as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&seen.bytes), format!("{head}{seen_as}"));
        assert_eq!(seen.is_too_large, chunks != seen_as, "{chunks:?}");
    }
}

/// If hyper disagrees with the screen about the end of a head, the rest passes unchanged.
#[test]
fn unexpected_input_passes_unchanged() {
    let mut screen = Screen::new(HEAD_BYTES_MAX, true);
    let mut bytes = b"GET / HTTP/1.1\r\n\r\nGET /\" HTTP/1.1\r\n\r\n".to_vec();
    let passed = screen.pass(&mut bytes);
    assert_eq!(passed, 18);
    assert_eq!(screen.pass(&mut bytes[passed..]), bytes.len() - passed);
    assert!(bytes.ends_with(b"GET /\" HTTP/1.1\r\n\r\n"));
    let mut long = vec![b'"'; HEAD_BYTES_MAX];
    assert_eq!(Screen::new(HEAD_BYTES_MAX, true).pass(&mut long), HEAD_BYTES_MAX);
}

/// Streams that are almost HTTP.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(&b"GET /\"a\xff?<b> HTTP/1.1\r\n"[..]),
        4 => Just(&b"POST /{} HTTP/1.1\r\nHost: \"h\"\r\n"[..]),
        4 => Just(&b"\r\n"[..]),
        1 => Just(&b"\n"[..]),
        1 => Just(&b"\r"[..]),
        1 => Just(&b" "[..]),
        2 => Just(&b"Content-Length: 7\r\n"[..]),
        1 => Just(&b"Content-Length: 18446744073709551615\r\n"[..]),
        2 => Just(&b"Transfer-Encoding: chunked\r\n"[..]),
        2 => Just(&b"5\r\n\"abc\"\r\n"[..]),
        2 => Just(&b"0\r\n\r\n"[..]),
        1 => Just(&b"fffff\r\n"[..]),
        2 => Just(&b"\"body\" "[..]),
        1 => Just(&b"http://u:p@h/`"[..]),
        1 => Just(&b"\x00\x80\""[..]),
    ];
    let any = prop::collection::vec(any::<u8>(), 0..8);
    let pieces = prop_oneof![8 => piece.prop_map(<[u8]>::to_vec), 1 => any];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

fn is_digit_or_cover(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == COVER
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn split_into_packets_does_not_change_the_result(
        stream in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let packets: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let bytes: Vec<_> = stream.chunks(1).collect();
        let whole = run(&[&stream]);
        prop_assert_eq!(&whole, &run(&packets));
        prop_assert_eq!(&whole, &run(&bytes));
    }

    /// Bytes that separate messages stay unchanged and in place.
    #[test]
    fn only_target_bytes_and_numbers_are_changed(stream in streams()) {
        let seen = run(&[&stream]);
        prop_assert_eq!(seen.bytes.len(), stream.len());
        let changed = stream.iter().zip(&seen.bytes).filter(|(before, after)| before != after);
        for (&before, &after) in changed {
            let is_target = is_covered(before) && after == COVER;
            let is_number = before.is_ascii_hexdigit() && is_digit_or_cover(after);
            prop_assert!(is_target || is_number, "{:?} became {:?}", before, after);
        }
        // Outside a request line, only numbers change.
        let lines = stream.split_inclusive(|b| *b == b'\n');
        let seen_lines = seen.bytes.split_inclusive(|b| *b == b'\n');
        for (before, after) in lines.zip(seen_lines) {
            let kept = seen.notes.iter().filter_map(|note| note.target.as_deref());
            let has_target = kept.into_iter().any(|t| memchr::memmem::find(before, t).is_some());
            let is_number = after.iter().zip(before).all(|(a, b)| a == b || is_digit_or_cover(*a));
            prop_assert!(before == after || has_target || is_number);
        }
    }
}

#[test]
fn http2_is_detected_only_in_the_first_line() {
    let passes = |text: &[u8], has_http2| {
        let mut screen = Screen::new(4096, has_http2);
        let passed = screen.pass(&mut text.to_vec());
        (passed, screen.has_preface())
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(passes(preface, true), (0, true));
    assert_eq!(passes(&preface[..16], true), (0, true));
    assert_eq!(passes(&preface[..15], true), (0, false));
    assert_eq!(passes(preface, false), (18, false));
    let later = [b"GET / HTTP/1.1\r\n\r\n", &preface[..]].concat();
    assert_eq!(passes(&later, true), (18, false));
    assert_eq!(passes(&[b"\r\n", &preface[..]].concat(), true), (20, false));
}

/// hyper reads a line feed as part of a trailer. A server that reads it as the end finds another
/// request after it.
#[test]
fn ambiguous_line_ends_between_chunks_break_the_body() {
    let head = "P / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
    for (body, passes) in [
        ("1;a\r\nb\r\n0\r\nX: y\r\n\r\n", true),
        ("0\r\n\n", false),
        ("0\r\nX: y\n\r\n", false),
        ("0\r\nX: y\rz\r\n\r\n", false),
        ("0\n\r\n", false),
        ("1;a\nb\r\n0\r\n\r\n", false),
    ] {
        let mut bytes = format!("{head}{body}").into_bytes();
        let mut screen = Screen::new(HEAD_BYTES_MAX, true);
        assert_eq!(screen.pass(&mut bytes), head.len());
        screen.parsed(Framing::Chunks(BODY_BYTES_MAX));
        let passed = screen.pass(&mut bytes[head.len()..]);
        assert_eq!((passed == body.len(), screen.is_broken()), (passes, !passes), "{body:?}");
    }
}

#[test]
fn uninspected_head_is_doubted() {
    let mut screen = Screen::new(HEAD_BYTES_MAX, true);
    let mut bytes = b"P / HTTP/1.1\r\n\r\nG / HTTP/1.1\r\n\r\n".to_vec();
    let passed = screen.pass(&mut bytes);
    // hyper requests more of a head that is complete.
    screen.pass(&mut bytes[passed..]);
    assert!(screen.parsed(Framing::Length(0)).doubt.is_some());
    assert!(screen.parsed(Framing::Length(0)).doubt.is_some());
}
