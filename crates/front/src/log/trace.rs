//! The trace that a request belongs to: W3C Trace Context (<https://www.w3.org/TR/trace-context/>).
//!
//! A `traceparent` is taken over from whom the settings believe, if it is as the recommendation has it to the letter; what is
//! not is as if it had not come. Where spans are collected (`insight.otlp`), each request belongs to a trace: PHP is handed a
//! `traceparent` whose parent is this server's span. Elsewhere headers reach PHP as they came, because a parent that nobody
//! collects would tear the trace apart.

use foldhash::quality::FixedState;
use http::{HeaderMap, HeaderName};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

const NAME: &str = "traceparent";
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static(NAME);
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Version, trace, parent and flags, with what stands between them.
const LENGTH: usize = 55;
/// Of the flags.
const SAMPLED: u8 = 1;
/// Of the flags: the trace's id is random (level 2 of the recommendation).
const RANDOM: u8 = 2;
/// A `traceparent` of our own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traceparent([u8; LENGTH]);
/// Shares are of a million.
const WHOLE_PPM: u64 = 1_000_000;

/// A request's place in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) id: [u8; 16],
    /// The request's own span; zero where nobody collects it.
    pub(crate) span: [u8; 8],
    /// The span that asked for it; zero where the trace begins.
    pub(crate) parent: [u8; 8],
    flags: u8,
}

/// What the settings say of traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// Whether this client's word is taken.
    pub(crate) is_believed: bool,
    /// Whether spans are collected.
    pub(crate) is_collected: bool,
    /// Of the traces that begin here, how many are kept.
    pub(crate) share_ppm: u32,
}

impl Trace {
    /// Whether its spans are kept.
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    fn parse(text: &[u8]) -> Option<Trace> {
        let (known, beyond) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split(|b| *b == b'-');
        let [version] = digits(parts.next()?)?;
        let (id, parent) = (digits(parts.next()?)?, digits(parts.next()?)?);
        let [flags] = digits(parts.next()?)?;
        let is_whole = match version {
            0 => beyond.is_empty(),
            0xff => false,
            // A later version may add parts.
            _ => beyond.first().is_none_or(|b| *b == b'-'),
        };
        let is_one = is_whole && parts.next().is_none() && id != [0; 16] && parent != [0; 8];
        is_one.then_some(Trace { id, span: [0; 8], parent, flags: flags & (SAMPLED | RANDOM) })
    }

    /// `00-TRACE-SPAN-FLAGS`, for those whom this request asks: what PHP is handed as header and as variable, where spans are
    /// collected. Elsewhere the header is the one that came.
    pub(crate) fn traceparent(&self) -> Option<Traceparent> {
        if self.span == [0; 8] {
            return None;
        }
        let mut text = [b'-'; LENGTH];
        text[..2].copy_from_slice(b"00");
        write_hex(&self.id, &mut text[3..35]);
        write_hex(&self.span, &mut text[36..52]);
        write_hex(&[self.flags], &mut text[53..]);
        Some(Traceparent(text))
    }

    /// Whether it came with the request, and did not begin here.
    pub(crate) fn came(&self) -> bool {
        self.parent != [0; 8]
    }

    /// The id as logs have it.
    pub(crate) fn id_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.id))
    }
}

impl Traceparent {
    pub(crate) fn value(&self) -> &[u8] {
        &self.0
    }

    /// Name and value.
    pub(crate) fn header(&self) -> (&'static [u8], &[u8]) {
        (NAME.as_bytes(), &self.0)
    }
}

/// Makes ids: hashes of a counter, with a key for each process, which the standard library draws from the kernel. An id is to
/// be nobody else's, and no secret: its hash needs no more than to spread well.
#[derive(Debug)]
pub(crate) struct Traces {
    key: FixedState,
    next: Cell<u64>,
}

impl Default for Traces {
    fn default() -> Traces {
        let random = RandomState::new();
        Traces {
            key: FixedState::with_seed(random.hash_one(0)),
            next: Cell::new(random.hash_one(1)),
        }
    }
}

impl Traces {
    /// The request's trace, if it is in one. Headers are what PHP is to see of it, but for [`Trace::traceparent`].
    pub(crate) fn of(&self, policy: Policy, headers: &mut HeaderMap) -> Option<Trace> {
        let came = if policy.is_believed { sole(headers).and_then(Trace::parse) } else { None };
        if !policy.is_collected {
            return came;
        }
        if came.is_none() {
            // It belongs to the trace that is not taken over.
            headers.remove(TRACESTATE);
        }
        let begun = || self.begin(policy.share_ppm);
        headers.remove(TRACEPARENT);
        Some(Trace { span: self.random(), ..came.unwrap_or_else(begun) })
    }

    fn begin(&self, share_ppm: u32) -> Trace {
        let (high, low): ([u8; 8], [u8; 8]) = (self.random(), self.random());
        let mut id = [0; 16];
        id[..8].copy_from_slice(&high);
        id[8..].copy_from_slice(&low);
        let is_kept = u64::from_be_bytes(low) % WHOLE_PPM < u64::from(share_ppm);
        Trace { id, flags: RANDOM | u8::from(is_kept), ..Trace::default() }
    }

    /// Never zero, which would be no id.
    fn random(&self) -> [u8; 8] {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        self.key.hash_one(number).max(1).to_be_bytes()
    }
}

/// The header's value, if it came once: of several none can be told to be the right one.
fn sole(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

/// Exactly `N` bytes in lower-case hexadecimal digits.
fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn write_hex(bytes: &[u8], out: &mut [u8]) {
    for (byte, pair) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        pair.copy_from_slice(&HEX[usize::from(*byte)]);
    }
}

/// The digits of each byte.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut all = [[0; 2]; 256];
    let mut byte = 0;
    while byte < all.len() {
        all[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::collections::HashSet;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let zeros = ("0".repeat(32), "0".repeat(16));
        for (text, is_one) in [
            (format!("00-{ID}-{PARENT}-01"), true),
            (format!("00-{ID}-{PARENT}-00"), true),
            (format!("00-{ID}-{PARENT}-ff"), true),
            (format!("00-{ID}-{PARENT}-01-more"), false),
            (format!("00-{ID}-{PARENT}-01-"), false),
            (format!("00-{ID}-{PARENT}-01 "), false),
            (format!("cc-{ID}-{PARENT}-01-more"), true),
            (format!("cc-{ID}-{PARENT}-01"), true),
            (format!("cc-{ID}-{PARENT}-01.more"), false),
            (format!("cc-{ID}-{PARENT}-011"), false),
            (format!("ff-{ID}-{PARENT}-01"), false),
            (format!("00-{}-{PARENT}-01", zeros.0), false),
            (format!("00-{ID}-{}-01", zeros.1), false),
            (format!("00-{}-{PARENT}-01", ID.to_uppercase()), false),
            (format!("00-{ID}-{}-01", PARENT.to_uppercase()), false),
            (format!("00-{ID}-{PARENT}-0x"), false),
            (format!("00-{ID}-{PARENT}"), false),
            (format!("00-{ID}{PARENT}-01--"), false),
            (format!("00-{}--{PARENT}-01", &ID[1..]), false),
            (format!("0-{ID}0-{PARENT}-01"), false),
            (format!("00-{}é-{PARENT}-01", &ID[2..]), false),
            (String::new(), false),
            ("-".repeat(LENGTH), false),
        ] {
            assert_eq!(Trace::parse(text.as_bytes()).is_some(), is_one, "{text}");
        }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let value = HeaderValue::from_str(value).unwrap();
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    }

    fn policy(is_believed: bool, is_collected: bool) -> Policy {
        Policy { is_believed, is_collected, share_ppm: 0 }
    }

    #[test]
    fn a_trace_is_taken_over_from_whom_one_believes() {
        let sent = format!("00-{ID}-{PARENT}-03");
        let mut given = headers(&[("traceparent", &sent), ("tracestate", "a=b")]);
        let trace = Traces::default().of(policy(true, true), &mut given).unwrap();
        assert_eq!((trace.id_text().as_str(), trace.is_sampled()), (ID, true));
        assert_eq!(trace.parent, digits(PARENT.as_bytes()).unwrap());
        assert!(!given.contains_key(TRACEPARENT));
        let handed = Trace::parse(trace.traceparent().unwrap().value()).unwrap();
        assert_eq!((handed.id, handed.parent, handed.flags), (trace.id, trace.span, 3));
        assert_eq!(given[TRACESTATE], "a=b");
    }

    #[test]
    fn nobody_else_can_put_a_request_into_a_trace() {
        let sent = format!("00-{ID}-{PARENT}-01");
        let twice = [("traceparent", &*sent), ("traceparent", &*sent), ("tracestate", "a=b")];
        for (is_believed, lines) in [(false, &twice[1..]), (true, &twice[..])] {
            let mut given = headers(lines);
            let trace = Traces::default().of(policy(is_believed, true), &mut given).unwrap();
            assert_ne!(trace.id_text(), ID);
            assert_eq!((trace.parent, trace.is_sampled()), ([0; 8], false));
            let handed = Trace::parse(trace.traceparent().unwrap().value()).unwrap();
            assert_eq!((handed.id, handed.parent), (trace.id, trace.span));
            assert!(given.is_empty() && !trace.came());
        }
    }

    #[test]
    fn where_nobody_collects_headers_stay_as_they_came() {
        let sent = format!("00-{ID}-{PARENT}-01");
        for is_believed in [false, true] {
            let mut given = headers(&[("traceparent", &sent), ("tracestate", "a=b")]);
            let before = given.clone();
            let trace = Traces::default().of(policy(is_believed, false), &mut given);
            assert_eq!(trace.map(|t| t.id_text()), is_believed.then(|| ID.to_owned()));
            assert!(trace.is_none_or(|t| t.traceparent().is_none()));
            assert_eq!(given, before);
        }
    }

    #[test]
    fn as_many_are_kept_as_the_share_says() {
        let traces = Traces::default();
        for (share_ppm, range) in
            [(0, 0..=0), (250_000, 2_000..=3_000), (1_000_000, 10_000..=10_000)]
        {
            let kept = (0..10_000).filter(|_| traces.begin(share_ppm).is_sampled()).count();
            assert!(range.contains(&kept), "{kept} of 10000 for {share_ppm}");
        }
        let both = [traces, Traces::default()];
        let ids: HashSet<_> =
            both.iter().flat_map(|of| (0..10_000).map(|_| of.begin(0).id)).collect();
        assert_eq!(ids.len(), 20_000, "each is its own, and another server's are others");
        for bit in 0..128 {
            let set = ids.iter().filter(|id| u128::from_be_bytes(**id) >> bit & 1 == 1).count();
            assert!((9_000..11_000).contains(&set), "{set} of 20000 have bit {bit}");
        }
    }
}
