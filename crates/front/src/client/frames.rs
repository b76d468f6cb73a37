//! parse: HTTP/2's frames as they pass to hyper and back: what it does not count.
//!
//! hyper and h2 bound what one connection may hold: streams, their windows, heads and their continuations, small pieces of
//! bodies that nobody has taken, streams that are reset before they are looked at. They do not mind a client that keeps them
//! busy for nothing: requests that are taken back at once (rapid reset), empty frames, pings, settings, windows in steps of a
//! byte. Each such frame costs a unit; requests, bytes of bodies, and bytes that the client takes earn some, and so does
//! time: a connection may live for days, and many clients of a proxy share one. A pure machine.
//!
//! Two of h2's own counts never go down: of empty pieces of bodies, and of streams that it has ended because of the client's
//! mistakes. The former do not reach it, but for those that were cut by a read; by the latter a connection wears out, and is left in good
//! time, as no client minds.

/// What a connection begins with.
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// The highest bit of a stream's number means nothing (RFC 9113, 4.1).
const STREAM_MASK: u32 = 0x7fff_ffff;
const ENHANCE_YOUR_CALM: u32 = 0x0b;
const GOODBYE_BYTES: usize = HEADER_BYTES + 8;

/// Frames for nothing that a client may be ahead.
const CREDIT_MAX: u64 = 10_000;
/// What earns it more.
const CREDIT_PER_SECOND: u64 = 1_000;
const CREDIT_PER_REQUEST: u64 = 32;
const BYTES_PER_CREDIT: u64 = 64;
const CREDIT_PER_WRITE: u64 = 4;
/// Pieces of bodies that h2 counts because they cost it more than they bring, and how many of them are read before those
/// whose they are have had their turn: it ends a connection where too many wait.
const SMALL_BYTES: u32 = 256;
const SMALL_PIECES_MAX: u32 = 256;
/// Requests that may be taken back, besides as many as were answered.
const RESETS_MAX: u64 = 400;
/// Streams that h2 ends before it ends the connection: the count of its whole life.
pub(super) const RESET_BY_US_MAX: usize = 1000;
/// And empty pieces of bodies, which cannot be set there (`MAX_RECV_EMPTY_DATA_FRAMES`).
#[cfg(test)]
const EMPTY_OF_H2_MAX: u32 = 100;
/// From when on a connection is worn out. What has begun by then goes on, and has as much again left.
const RESET_BY_US_WORN: usize = RESET_BY_US_MAX / 2;
const EMPTY_WORN: u32 = 50;
/// As nghttp2 has it.
const RESETS_PER_SECOND: u64 = 33;

/// Where in a connection the next byte stands, and what the client has done so far.
#[derive(Debug)]
pub(super) struct Frames {
    arriving: Scanner,
    leaving: Scanner,
    is_head_open: bool,
    /// The last request that hyper has heard of.
    last_stream: u32,
    resets: Allowance,
    credit: Allowance,
    small_pieces: u32,
    /// What h2 counts for the connection's whole life.
    reset_by_us: usize,
    empty_of_h2: u32,
}

/// The client does what no client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flood;

impl Frames {
    pub(super) fn new(now_ms: u64) -> Frames {
        Frames {
            arriving: Scanner::behind(PREFACE_BYTES),
            leaving: Scanner::behind(0),
            is_head_open: false,
            last_stream: 0,
            resets: Allowance::new(RESETS_MAX, RESETS_PER_SECOND, now_ms),
            credit: Allowance::new(CREDIT_MAX, CREDIT_PER_SECOND, now_ms),
            small_pieces: 0,
            reset_by_us: 0,
            empty_of_h2: 0,
        }
    }

    /// Looks at bytes that have arrived, and takes out the empty pieces of bodies that lie among them as a whole. How many bytes are
    /// left, from the first on.
    pub(super) fn pass(&mut self, bytes: &mut [u8], now_ms: u64) -> Result<usize, Flood> {
        self.resets.wait(now_ms);
        self.credit.wait(now_ms);
        let mut last_stream = self.last_stream;
        let (mut seen, mut kept, mut kept_until) = (0, 0, 0);
        loop {
            let mut rest = &bytes[seen..];
            let header = self.arriving.next(&mut rest);
            seen = bytes.len() - rest.len();
            let Some(header) = header else { break };
            let is_empty = self.is_empty_piece(header, last_stream);
            self.frame(header, &mut last_stream)?;
            if !is_empty {
                continue;
            }
            let Some(begin) = seen.checked_sub(HEADER_BYTES) else {
                self.empty_of_h2 += 1;
                continue;
            };
            if kept != kept_until {
                bytes.copy_within(kept_until..begin, kept);
            }
            kept += begin - kept_until;
            kept_until = seen;
        }
        self.last_stream = last_stream;
        if kept != kept_until {
            bytes.copy_within(kept_until.., kept);
        }
        Ok(kept + bytes.len() - kept_until)
    }

    /// Whether it says nothing at all: a piece of a body that has begun, without a byte and not the last one.
    fn is_empty_piece(&self, header: Header, last_stream: u32) -> bool {
        let [0, 0, 0, DATA, flags, stream @ ..] = header else { return false };
        let stream = u32::from_be_bytes(stream) & STREAM_MASK;
        let has_begun = stream != 0 && stream <= last_stream && !self.is_head_open;
        has_begun && flags & (END_STREAM | PADDED) == 0
    }

    /// Whether the client had better come by another connection, before h2 ends this one.
    pub(super) fn is_worn(&self) -> bool {
        self.reset_by_us >= RESET_BY_US_WORN || self.empty_of_h2 >= EMPTY_WORN
    }

    /// So many requests have their answers by now: whoever takes them back then has not had them for nothing.
    pub(super) fn answered(&mut self, requests: u64) {
        self.resets.earn(requests);
    }

    /// The client has taken these bytes.
    pub(super) fn wrote(&mut self, mut bytes: &[u8]) {
        self.credit.earn(CREDIT_PER_WRITE + bytes.len() as u64 / BYTES_PER_CREDIT);
        while let Some(header) = self.leaving.next(&mut bytes) {
            self.reset_by_us += usize::from(header[3] == RST_STREAM);
        }
    }

    /// Whether others are to have their turn before more is read; asked once for each answer.
    pub(super) fn is_turn_of_others(&mut self) -> bool {
        let is_so = self.small_pieces >= SMALL_PIECES_MAX;
        if is_so {
            self.small_pieces = 0;
        }
        is_so
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_inside_head(&self) -> bool {
        let arriving = &self.arriving;
        self.is_head_open
            || (arriving.skip > 0 && matches!(arriving.header[3], HEADERS | CONTINUATION))
    }

    /// A last frame that tells the client which requests have not been begun. `None`: it would stand within another frame.
    pub(super) fn goodbye(&self) -> Option<[u8; GOODBYE_BYTES]> {
        let mut frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        frame[HEADER_BYTES..][..4].copy_from_slice(&self.last_stream.to_be_bytes());
        frame[HEADER_BYTES + 4..].copy_from_slice(&ENHANCE_YOUR_CALM.to_be_bytes());
        self.leaving.is_between().then_some(frame)
    }

    fn frame(&mut self, header: Header, last_stream: &mut u32) -> Result<(), Flood> {
        let [a, b, c, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, a, b, c]);
        match kind {
            HEADERS | CONTINUATION => {
                self.is_head_open = flags & END_HEADERS == 0;
                if kind == HEADERS {
                    *last_stream = (*last_stream).max(u32::from_be_bytes(stream) & STREAM_MASK);
                    self.credit.earn(CREDIT_PER_REQUEST);
                }
            }
            // However small the pieces of a body are: h2 bounds those that wait, and time those that do not come.
            DATA if length > 0 => {
                self.small_pieces += u32::from(length < SMALL_BYTES);
                self.credit.earn(1 + u64::from(length) / BYTES_PER_CREDIT);
            }
            RST_STREAM => self.resets.spend()?,
            _ => {}
        }
        self.credit.spend()
    }
}

type Header = [u8; HEADER_BYTES];

/// Where frames begin in the bytes of one direction.
#[derive(Debug)]
struct Scanner {
    header: Header,
    have: usize,
    /// Bytes to skip: the preface, then payloads.
    skip: usize,
}

impl Scanner {
    fn behind(skip: usize) -> Scanner {
        Scanner { header: [0; HEADER_BYTES], have: 0, skip }
    }

    /// The next header that ends in `bytes`, which then begin behind it; `None`: in none of the rest.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Header> {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            *bytes = &bytes[skipped..];
            let taken = (HEADER_BYTES - self.have).min(bytes.len());
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            *bytes = &bytes[taken..];
            if self.have == HEADER_BYTES {
                let [a, b, c, ..] = self.header;
                self.have = 0;
                self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
                return Some(self.header);
            }
        }
        None
    }

    /// Whether the next byte begins a frame.
    fn is_between(&self) -> bool {
        self.have == 0 && self.skip == 0
    }
}

/// What is left of what a client may do, which comes back with time.
#[derive(Debug)]
struct Allowance {
    left: u64,
    most: u64,
    per_second: u64,
    /// Until when time has been counted.
    until_ms: u64,
}

impl Allowance {
    fn new(most: u64, per_second: u64, now_ms: u64) -> Allowance {
        Allowance { left: most, most, per_second, until_ms: now_ms }
    }

    fn wait(&mut self, now_ms: u64) {
        let earned = now_ms.saturating_sub(self.until_ms).saturating_mul(self.per_second) / 1000;
        self.until_ms += earned * 1000 / self.per_second;
        self.earn(earned);
    }

    fn earn(&mut self, more: u64) {
        self.left = self.left.saturating_add(more).min(self.most);
    }

    fn spend(&mut self) -> Result<(), Flood> {
        self.left = self.left.checked_sub(1).ok_or(Flood)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_MS: u64 = 5_000;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    /// What is left is what h2 gets; most tests do not mind.
    fn pass(frames: &mut Frames, bytes: &[u8], now_ms: u64) -> Result<(), Flood> {
        frames.pass(&mut bytes.to_vec(), now_ms).map(drop)
    }

    fn begun() -> Frames {
        let mut frames = Frames::new(NOW_MS);
        assert_eq!(pass(&mut frames, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NOW_MS), Ok(()));
        frames
    }

    /// How many of these frames a client may send before it is a flood, where so many requests are answered after each
    /// round, and it takes so long.
    fn allowed(round: &[Vec<u8>], answered: u64, round_ms: u64, rounds_max: usize) -> usize {
        let mut frames = begun();
        let bytes = round.concat();
        let mut now_ms = NOW_MS;
        let mut is_good = || {
            now_ms += round_ms;
            let passed = pass(&mut frames, &bytes, now_ms);
            frames.answered(answered);
            passed.is_ok()
        };
        (0..rounds_max).take_while(|_| is_good()).count()
    }

    #[test]
    fn floods_end() {
        const MANY: usize = 100_000;
        for (round, expected) in [
            (vec![frame(6, 0, &[0; 8])], 10_000),
            (vec![frame(4, 0, &[])], 10_000),
            (vec![frame(8, 0, &[0, 0, 0, 1])], 10_000),
            (vec![frame(0, 0, &[])], 10_000),
            (vec![frame(9, 0, &[])], 10_000),
            (vec![frame(1, 5, b"x"), frame(3, 0, &[0; 4])], 400),
            (vec![frame(1, 5, b"x")], MANY),
            (vec![frame(1, 4, b"x"), frame(0, 1, &[0; 10])], MANY),
            (vec![frame(0, 0, &[0; 200])], MANY),
        ] {
            assert_eq!(allowed(&round, 0, 0, MANY), expected, "{round:?}");
        }
    }

    #[test]
    fn small_pieces_of_bodies_are_no_flood() {
        for length in [1, 20, 63, 64] {
            assert_eq!(allowed(&[frame(0, 0, &[0; 64][..length])], 0, 0, 50_000), 50_000);
        }
    }

    #[test]
    fn who_takes_requests_back_may_take_back_as_many_as_were_answered() {
        const MANY: usize = 10_000;
        let (ask, back) = (|| frame(1, 5, b"x"), || frame(3, 0, &[0; 4]));
        for (round, answered, expected) in [
            // An event stream ends so, and a download that is skipped through.
            (vec![ask(), back()], 1, MANY),
            (vec![ask(), ask(), back()], 1, MANY),
            (vec![ask(), ask(), ask(), back(), back()], 1, 399),
            (vec![ask(), back()], 0, 400),
        ] {
            assert_eq!(allowed(&round, answered, 0, MANY), expected, "{round:?}");
        }
    }

    #[test]
    fn what_was_long_ago_is_forgiven() {
        const MANY: usize = 10_000;
        let taken_back = [frame(1, 5, b"x"), frame(3, 0, &[0; 4])];
        let ping = [frame(6, 0, &[0; 8])];
        assert_eq!(allowed(&taken_back, 0, 31, MANY), MANY);
        assert_eq!(allowed(&taken_back, 0, 5, MANY), 479, "a sixth of them");
        assert_eq!(allowed(&ping, 0, 1, 50_000), 50_000);
    }

    #[test]
    fn a_goodbye_stands_between_frames_and_names_the_last_request_that_was_heard() {
        let mut frames = begun();
        let asked = |stream: u32| {
            let mut asked = frame(1, 5, b"x");
            asked[5..9].copy_from_slice(&(stream | 1 << 31).to_be_bytes());
            asked
        };
        assert_eq!(pass(&mut frames, &asked(5), NOW_MS), Ok(()));
        let flood = [asked(7), frame(6, 0, &[0; 8]).repeat(20_000)].concat();
        assert_eq!(pass(&mut frames, &flood, NOW_MS), Err(Flood));
        let said = frames.goodbye().expect("nothing was begun");
        assert_eq!(said, [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 11]);
        let answer = [frame(0, 0, b"answer"), frame(6, 1, &[0; 8])].concat();
        for (at, byte) in answer.iter().enumerate() {
            let is_between = at == 0 || at == HEADER_BYTES + 6;
            assert_eq!(frames.goodbye().is_some(), is_between, "{at}");
            frames.wrote(&[*byte]);
        }
        assert!(frames.goodbye().is_some());
    }

    #[test]
    fn who_takes_much_may_say_so() {
        let mut frames = begun();
        let window = frame(8, 0, &[0, 0, 1, 0]);
        for _ in 0..100_000 {
            frames.wrote(&[0; 100]);
            assert_eq!(pass(&mut frames, &[&window[..], &window].concat(), NOW_MS), Ok(()));
        }
    }

    #[test]
    fn empty_pieces_do_not_reach_h2_and_nothing_else_is_missing() {
        let asked = frame(1, 4, b"x");
        let (empty, last) = (frame(0, 0, &[]), frame(0, 1, &[]));
        let piece = frame(0, 0, b"piece");
        let mut frames = begun();
        let mut bytes =
            [&empty[..], &asked, &empty, &piece, &empty, &empty, &piece, &last].concat();
        let kept = frames.pass(&mut bytes, NOW_MS).expect("no flood");
        assert_eq!(bytes[..kept], [&empty[..], &asked, &piece, &piece, &last].concat());
        assert_eq!(frames.pass(&mut empty.repeat(9), NOW_MS), Ok(0), "nothing else came");
        let padded = frame(0, PADDED, &[]);
        assert_eq!(frames.pass(&mut padded.clone(), NOW_MS), Ok(9), "h2 has to refuse it");
        let open = [frame(1, 0, b"x"), empty.clone()].concat();
        assert_eq!(frames.pass(&mut open.clone(), NOW_MS), Ok(open.len()), "and that");
    }

    #[test]
    fn a_connection_wears_out_before_h2_ends_it() {
        let mut frames = begun();
        let reset = frame(3, 0, &[0; 4]);
        for _ in 1..RESET_BY_US_WORN {
            frames.wrote(&reset);
        }
        assert!(!frames.is_worn());
        frames.wrote(&reset);
        assert!(frames.is_worn());
        let mut frames = begun();
        assert_eq!(pass(&mut frames, &frame(1, 4, b"x"), NOW_MS), Ok(()));
        let empty = frame(0, 0, &[]);
        for at in 0..EMPTY_OF_H2_MAX / 2 {
            assert!(!frames.is_worn(), "{at}");
            assert_eq!(frames.pass(&mut empty[..4].to_vec(), NOW_MS), Ok(4));
            assert_eq!(frames.pass(&mut empty[4..].to_vec(), NOW_MS), Ok(5));
        }
        assert!(frames.is_worn());
    }

    #[test]
    fn heads_are_known() {
        let mut frames = begun();
        assert!(!frames.is_inside_head());
        let head = frame(1, 0, b"abc");
        for (at, byte) in head.iter().enumerate() {
            assert_eq!(frames.is_inside_head(), at >= HEADER_BYTES, "{at}");
            assert_eq!(pass(&mut frames, &[*byte], NOW_MS), Ok(()));
        }
        assert!(frames.is_inside_head(), "it goes on in the next frame");
        let end = frame(9, 4, b"abc");
        assert_eq!(pass(&mut frames, &end[..10], NOW_MS), Ok(()));
        assert!(frames.is_inside_head());
        assert_eq!(pass(&mut frames, &end[10..], NOW_MS), Ok(()));
        assert!(!frames.is_inside_head());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_is_cut(bytes: Vec<u8>, cut in 1usize..20) {
            let (mut whole, mut pieces) = (begun(), begun());
            let expected = pass(&mut whole, &bytes, NOW_MS);
            let found = bytes.chunks(cut).try_for_each(|piece| pass(&mut pieces, piece, NOW_MS));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(whole.is_inside_head(), pieces.is_inside_head());
        }
    }
}
