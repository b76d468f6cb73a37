//! parse: counts HTTP/2 frames on their way to hyper and back, to detect floods. A pure state
//! machine.
//!
//! hyper and h2 limit the resources of a connection: streams, their windows, heads and their
//! continuations, small body pieces that are not consumed, streams that are reset before they are
//! processed. They do not limit useless work: requests cancelled at once (rapid reset), empty
//! frames, pings, settings, window updates of one byte. Each such frame costs one unit of credit.
//! Requests, body bytes, and bytes that the client takes earn credit. Time earns credit too,
//! because a connection may live for days, and many clients of a proxy share one.
//!
//! Two counters of h2 never decrease: empty body pieces, and streams that h2 has reset because of
//! client errors. Empty pieces are removed before they reach h2, except those that were split by a
//! read. The streams that h2 resets wear out a connection. It is shut down gracefully long before
//! h2 would end it.

/// Length of the bytes that a connection begins with.
const PREFACE_BYTES: usize = 24;
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const PADDED: u8 = 8;
/// The highest bit of a stream number has no meaning (RFC 9113, 4.1).
const STREAM_MASK: u32 = 0x7fff_ffff;
const FRAME_SIZE_ERROR: u32 = 0x06;
const ENHANCE_YOUR_CALM: u32 = 0x0b;
const GOODBYE_BYTES: usize = HEADER_BYTES + 8;

/// Maximum number of useless frames without earned credit.
const CREDIT_MAX: u64 = 10_000;
/// Credit that a client earns.
const CREDIT_PER_SECOND: u64 = 1_000;
const CREDIT_PER_REQUEST: u64 = 32;
const BYTES_PER_CREDIT: u64 = 64;
const CREDIT_PER_WRITE: u64 = 4;
/// Body pieces below this size are counted by h2, because they cost more than they carry. h2 ends a
/// connection in which too many of them wait. So after this number of pieces, the tasks that
/// consume them run before more is read.
const SMALL_BYTES: u32 = 256;
const SMALL_PIECES_MAX: u32 = 256;
/// Number of requests that a client may cancel, in addition to the number answered.
const RESETS_MAX: u64 = 400;
/// Number of streams that h2 resets before it ends the connection, over its whole lifetime.
pub(super) const RESET_BY_US_MAX: usize = 1000;
/// The same for empty body pieces. It cannot be configured in h2 (`MAX_RECV_EMPTY_DATA_FRAMES`).
#[cfg(test)]
const EMPTY_OF_H2_MAX: u32 = 100;
/// Counts at which a connection is worn out. Requests that have begun continue, with the same
/// amount still available.
const RESET_BY_US_WORN: usize = RESET_BY_US_MAX / 2;
const EMPTY_WORN: u32 = 50;
/// As in nghttp2.
const RESETS_PER_SECOND: u64 = 33;

/// Position in a connection's bytes, and the counts of its client.
#[derive(Debug)]
pub(super) struct Frames {
    arriving: Scanner,
    leaving: Scanner,
    is_head_open: bool,
    /// Last request that hyper has received.
    last_stream: u32,
    resets: Allowance,
    credit: Allowance,
    small_pieces: u32,
    /// Counts that h2 keeps for the connection's whole lifetime.
    reset_by_us: usize,
    empty_of_h2: u32,
}

/// The client behaves as no real client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offence {
    /// Too many frames without effect.
    Flood,
    /// A frame of fixed length has another one. h2 would report a protocol error (RFC 9113, 4.2).
    FrameSize,
}

impl Offence {
    fn code(self) -> u32 {
        match self {
            Offence::Flood => ENHANCE_YOUR_CALM,
            Offence::FrameSize => FRAME_SIZE_ERROR,
        }
    }
}

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

    /// Inspects received bytes and removes empty body pieces that are complete in them. Returns the
    /// number of bytes that remain, from the start of `bytes`.
    pub(super) fn pass(&mut self, bytes: &mut [u8], now_ms: u64) -> Result<usize, Offence> {
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

    /// Whether the frame has no meaning: an empty piece of a body that has begun, and not its last
    /// one.
    fn is_empty_piece(&self, header: Header, last_stream: u32) -> bool {
        let [0, 0, 0, DATA, flags, stream @ ..] = header else { return false };
        let stream = u32::from_be_bytes(stream) & STREAM_MASK;
        let has_begun = stream != 0 && stream <= last_stream && !self.is_head_open;
        has_begun && flags & (END_STREAM | PADDED) == 0
    }

    /// Whether the client should use another connection, before h2 ends this one.
    pub(super) fn is_worn(&self) -> bool {
        self.reset_by_us >= RESET_BY_US_WORN || self.empty_of_h2 >= EMPTY_WORN
    }

    /// Records answered requests. A client that cancels the same number of requests has caused no
    /// useless work.
    pub(super) fn responded(&mut self, requests: u64) {
        self.resets.earn(requests);
    }

    /// Records bytes that the client has taken.
    pub(super) fn wrote(&mut self, mut bytes: &[u8]) {
        self.credit.earn(CREDIT_PER_WRITE + bytes.len() as u64 / BYTES_PER_CREDIT);
        while let Some(header) = self.leaving.next(&mut bytes) {
            self.reset_by_us += usize::from(header[3] == RST_STREAM);
        }
    }

    /// Whether other tasks must run before more is read. Reported once: true resets the count.
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

    /// Builds a last frame, which shows the client the requests that were not started. `None`: it
    /// would be inside another frame.
    pub(super) fn goodbye(&self, offence: Offence) -> Option<[u8; GOODBYE_BYTES]> {
        let mut frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        frame[HEADER_BYTES..][..4].copy_from_slice(&self.last_stream.to_be_bytes());
        frame[HEADER_BYTES + 4..].copy_from_slice(&offence.code().to_be_bytes());
        self.leaving.is_between().then_some(frame)
    }

    fn frame(&mut self, header: Header, last_stream: &mut u32) -> Result<(), Offence> {
        let [a, b, c, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, a, b, c]);
        if !has_valid_length(kind, flags, length) {
            return Err(Offence::FrameSize);
        }
        match kind {
            HEADERS | CONTINUATION => {
                self.is_head_open = flags & END_HEADERS == 0;
                if kind == HEADERS {
                    *last_stream = (*last_stream).max(u32::from_be_bytes(stream) & STREAM_MASK);
                    self.credit.earn(CREDIT_PER_REQUEST);
                }
            }
            // Body pieces of any size are allowed. h2 limits those that wait, and timeouts limit
            // those that do not arrive.
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

/// Whether a frame has the length of its type (RFC 9113, 6.3 to 6.9).
fn has_valid_length(kind: u8, flags: u8, length: u32) -> bool {
    match kind {
        PRIORITY => length == 5,
        RST_STREAM | WINDOW_UPDATE => length == 4,
        SETTINGS if flags & ACK != 0 => length == 0,
        SETTINGS => length.is_multiple_of(6),
        PING => length == 8,
        GOAWAY => length >= 8,
        _ => true,
    }
}

/// Finds the start of frames in the bytes of one direction.
#[derive(Debug)]
struct Scanner {
    header: Header,
    have: usize,
    /// Number of bytes to skip: the preface, then payloads.
    skip: usize,
}

impl Scanner {
    fn behind(skip: usize) -> Scanner {
        Scanner { header: [0; HEADER_BYTES], have: 0, skip }
    }

    /// Returns the next header that ends in `bytes`, and advances `bytes` past it. `None`: no
    /// header ends in the rest.
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

/// A client's budget, which refills over time.
#[derive(Debug)]
struct Allowance {
    left: u64,
    most: u64,
    per_second: u64,
    /// Time until which refills have been counted.
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

    fn spend(&mut self) -> Result<(), Offence> {
        self.left = self.left.checked_sub(1).ok_or(Offence::Flood)?;
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

    /// Most tests ignore the bytes that remain for h2.
    fn pass(frames: &mut Frames, bytes: &[u8], now_ms: u64) -> Result<(), Offence> {
        frames.pass(&mut bytes.to_vec(), now_ms).map(drop)
    }

    fn begun() -> Frames {
        let mut frames = Frames::new(NOW_MS);
        assert_eq!(pass(&mut frames, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NOW_MS), Ok(()));
        frames
    }

    /// Number of rounds of these frames that a client may send before it is a flood. After each
    /// round, `responded` requests are answered and `round_ms` milliseconds pass.
    fn allowed(round: &[Vec<u8>], responded: u64, round_ms: u64, rounds_max: usize) -> usize {
        let mut frames = begun();
        let bytes = round.concat();
        let mut now_ms = NOW_MS;
        let mut is_good = || {
            now_ms += round_ms;
            let passed = pass(&mut frames, &bytes, now_ms);
            frames.responded(responded);
            passed.is_ok()
        };
        (0..rounds_max).take_while(|_| is_good()).count()
    }

    #[test]
    fn floods_of_useless_frames_are_refused() {
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
    fn small_body_pieces_are_not_a_flood() {
        for length in [1, 20, 63, 64] {
            assert_eq!(allowed(&[frame(0, 0, &[0; 64][..length])], 0, 0, 50_000), 50_000);
        }
    }

    #[test]
    fn cancelled_requests_are_limited_beyond_responded_ones() {
        const MANY: usize = 10_000;
        let (ask, back) = (|| frame(1, 5, b"x"), || frame(3, 0, &[0; 4]));
        for (round, responded, expected) in [
            // This is how an event stream ends, or a download in which the user skips.
            (vec![ask(), back()], 1, MANY),
            (vec![ask(), ask(), back()], 1, MANY),
            (vec![ask(), ask(), ask(), back(), back()], 1, 399),
            (vec![ask(), back()], 0, 400),
        ] {
            assert_eq!(allowed(&round, responded, 0, MANY), expected, "{round:?}");
        }
    }

    #[test]
    fn credit_refills_with_time() {
        const MANY: usize = 10_000;
        let taken_back = [frame(1, 5, b"x"), frame(3, 0, &[0; 4])];
        let ping = [frame(6, 0, &[0; 8])];
        assert_eq!(allowed(&taken_back, 0, 31, MANY), MANY);
        assert_eq!(allowed(&taken_back, 0, 5, MANY), 479, "a sixth of them");
        assert_eq!(allowed(&ping, 0, 1, 50_000), 50_000);
    }

    #[test]
    fn frame_of_wrong_length_is_refused() {
        for (kind, flags, length, is_valid) in [
            (PRIORITY, 0, 5, true),
            (PRIORITY, 0, 4, false),
            (RST_STREAM, 0, 5, false),
            (SETTINGS, 0, 12, true),
            (SETTINGS, 0, 5, false),
            (SETTINGS, ACK, 0, true),
            (SETTINGS, ACK, 6, false),
            (PING, 0, 7, false),
            (GOAWAY, 0, 8, true),
            (GOAWAY, 0, 7, false),
            (WINDOW_UPDATE, 0, 3, false),
            (HEADERS, END_HEADERS, 1, true),
            (0x20, 0, 3, true),
        ] {
            let passed = pass(&mut begun(), &frame(kind, flags, &[0; 16][..length]), NOW_MS);
            let expected = if is_valid { Ok(()) } else { Err(Offence::FrameSize) };
            assert_eq!(passed, expected, "{kind} {flags} {length}");
        }
        let said = begun().goodbye(Offence::FrameSize).expect("nothing was begun");
        assert_eq!(said[13..], [0, 0, 0, 6]);
    }

    #[test]
    fn goodbye_is_between_frames_and_names_last_request() {
        let mut frames = begun();
        let asked = |stream: u32| {
            let mut asked = frame(1, 5, b"x");
            asked[5..9].copy_from_slice(&(stream | 1 << 31).to_be_bytes());
            asked
        };
        assert_eq!(pass(&mut frames, &asked(5), NOW_MS), Ok(()));
        let flood = [asked(7), frame(6, 0, &[0; 8]).repeat(20_000)].concat();
        assert_eq!(pass(&mut frames, &flood, NOW_MS), Err(Offence::Flood));
        let said = frames.goodbye(Offence::Flood).expect("nothing was begun");
        assert_eq!(said, [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 11]);
        let response = [frame(0, 0, b"answer"), frame(6, 1, &[0; 8])].concat();
        for (at, byte) in response.iter().enumerate() {
            let is_between = at == 0 || at == HEADER_BYTES + 6;
            assert_eq!(frames.goodbye(Offence::Flood).is_some(), is_between, "{at}");
            frames.wrote(&[*byte]);
        }
        assert!(frames.goodbye(Offence::Flood).is_some());
    }

    #[test]
    fn window_updates_of_a_reading_client_are_not_a_flood() {
        let mut frames = begun();
        let window = frame(8, 0, &[0, 0, 1, 0]);
        for _ in 0..100_000 {
            frames.wrote(&[0; 100]);
            assert_eq!(pass(&mut frames, &[&window[..], &window].concat(), NOW_MS), Ok(()));
        }
    }

    #[test]
    fn only_empty_body_pieces_are_removed() {
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
    fn connection_is_worn_before_h2_ends_it() {
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
    fn open_heads_are_detected() {
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
        fn split_of_bytes_does_not_change_the_result(bytes: Vec<u8>, cut in 1usize..20) {
            let (mut whole, mut pieces) = (begun(), begun());
            let expected = pass(&mut whole, &bytes, NOW_MS);
            let found = bytes.chunks(cut).try_for_each(|piece| pass(&mut pieces, piece, NOW_MS));
            prop_assert_eq!(found, expected);
            prop_assert_eq!(whole.is_inside_head(), pieces.is_inside_head());
        }
    }
}
