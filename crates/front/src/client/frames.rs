//! parse: HTTP/2's frames as they pass to hyper: what it does not count.
//!
//! hyper and h2 bound what one connection may hold: streams, their windows, heads and their continuations, streams that
//! are reset before they are looked at. They do not mind a client that keeps them busy for nothing: requests that are
//! taken back at once (rapid reset), empty frames, pings, settings, windows in steps of a byte. Each frame costs a
//! unit; requests, bytes of bodies, and bytes that the client takes earn some. A pure machine.

/// What a connection begins with.
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Frames for nothing that a client may be ahead.
const CREDIT_MAX: u64 = 10_000;
/// What earns it more.
const CREDIT_PER_REQUEST: u64 = 32;
const BYTES_PER_CREDIT: u64 = 64;
const CREDIT_PER_WRITE: u64 = 4;
/// Requests that may be taken back, besides half of all.
const RESETS_FREE: u64 = 200;

/// Where in a connection the next byte stands, and what the client has done so far.
#[derive(Debug)]
pub(super) struct Frames {
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes to skip: the preface, then payloads.
    skip: usize,
    is_head_open: bool,
    requests: u64,
    resets: u64,
    credit: u64,
}

/// The client does what no client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flood;

impl Frames {
    pub(super) fn new() -> Frames {
        Frames {
            header: [0; HEADER_BYTES],
            have: 0,
            skip: PREFACE_BYTES,
            is_head_open: false,
            requests: 0,
            resets: 0,
            credit: CREDIT_MAX,
        }
    }

    /// Looks at bytes that have arrived.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) -> Result<(), Flood> {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = (HEADER_BYTES - self.have).min(bytes.len());
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == HEADER_BYTES {
                self.have = 0;
                self.frame()?;
            }
        }
        Ok(())
    }

    /// The client has taken so many bytes.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.earn(CREDIT_PER_WRITE + bytes as u64 / BYTES_PER_CREDIT);
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_inside_head(&self) -> bool {
        self.is_head_open || (self.skip > 0 && matches!(self.header[3], HEADERS | CONTINUATION))
    }

    fn frame(&mut self) -> Result<(), Flood> {
        let [a, b, c, kind, flags, ..] = self.header;
        let length = u32::from_be_bytes([0, a, b, c]);
        self.skip = length as usize;
        match kind {
            HEADERS | CONTINUATION => {
                self.is_head_open = flags & END_HEADERS == 0;
                if kind == HEADERS {
                    self.requests += 1;
                    self.earn(CREDIT_PER_REQUEST);
                }
            }
            DATA => self.earn(u64::from(length) / BYTES_PER_CREDIT),
            RST_STREAM => self.resets += 1,
            _ => {}
        }
        self.credit = self.credit.checked_sub(1).ok_or(Flood)?;
        if self.resets > RESETS_FREE + self.requests / 2 { Err(Flood) } else { Ok(()) }
    }

    fn earn(&mut self, credit: u64) {
        self.credit = (self.credit + credit).min(CREDIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn begun() -> Frames {
        let mut frames = Frames::new();
        assert_eq!(frames.pass(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Ok(()));
        frames
    }

    /// How many of these frames a client may send before it is a flood.
    fn allowed(round: &[Vec<u8>], rounds_max: usize) -> usize {
        let mut frames = begun();
        let bytes = round.concat();
        (0..rounds_max).take_while(|_| frames.pass(&bytes).is_ok()).count()
    }

    #[test]
    fn floods_end() {
        const MANY: usize = 100_000;
        for (round, expected) in [
            (vec![frame(6, 0, &[0; 8])], 10_000),
            (vec![frame(4, 0, &[])], 10_000),
            (vec![frame(8, 0, &[0, 0, 0, 1])], 10_000),
            (vec![frame(0, 0, &[])], 10_000),
            (vec![frame(0, 0, &[1])], 10_000),
            (vec![frame(9, 0, &[])], 10_000),
            (vec![frame(1, 5, b"x"), frame(3, 0, &[0; 4])], 400),
            (vec![frame(1, 5, b"x")], MANY),
            (vec![frame(1, 4, b"x"), frame(0, 1, &[0; 10])], MANY),
            (vec![frame(0, 0, &[0; 200])], MANY),
            (
                vec![frame(1, 5, b"x"), frame(1, 5, b"x"), frame(1, 5, b"x"), frame(3, 0, &[0; 4])],
                MANY,
            ),
        ] {
            assert_eq!(allowed(&round, MANY), expected, "{round:?}");
        }
    }

    #[test]
    fn who_takes_much_may_say_so() {
        let mut frames = begun();
        let window = frame(8, 0, &[0, 0, 1, 0]);
        for _ in 0..100_000 {
            frames.wrote(100);
            assert_eq!(frames.pass(&[&window[..], &window].concat()), Ok(()));
        }
    }

    #[test]
    fn heads_are_known() {
        let mut frames = begun();
        assert!(!frames.is_inside_head());
        let head = frame(1, 0, b"abc");
        for (at, byte) in head.iter().enumerate() {
            assert_eq!(frames.is_inside_head(), at >= HEADER_BYTES, "{at}");
            assert_eq!(frames.pass(&[*byte]), Ok(()));
        }
        assert!(frames.is_inside_head(), "it goes on in the next frame");
        let end = frame(9, 4, b"abc");
        assert_eq!(frames.pass(&end[..10]), Ok(()));
        assert!(frames.is_inside_head());
        assert_eq!(frames.pass(&end[10..]), Ok(()));
        assert!(!frames.is_inside_head());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_is_cut(bytes: Vec<u8>, cut in 1usize..20) {
            let (mut whole, mut pieces) = (begun(), begun());
            let expected = whole.pass(&bytes);
            let found = bytes.chunks(cut).try_for_each(|piece| pieces.pass(piece));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(whole.is_inside_head(), pieces.is_inside_head());
        }
    }
}
