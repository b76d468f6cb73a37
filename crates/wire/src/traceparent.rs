//! The header `traceparent` of W3C Trace Context (<https://www.w3.org/TR/trace-context/>).

/// Length of version, trace, parent and flags with their separators, in bytes.
pub const TRACEPARENT_BYTES: usize = 55;
/// Flag: the trace is sampled.
const SAMPLED: u8 = 1;
/// Flag: the trace's id is random (level 2 of the recommendation).
const RANDOM: u8 = 2;
/// Shares are given in parts per million.
const WHOLE_PPM: u64 = 1_000_000;

/// A span and its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traceparent {
    /// Id of the trace; not zero.
    pub trace_id: [u8; 16],
    /// Id of the span; not zero.
    pub span_id: [u8; 8],
    /// Flags of the trace: those that the recommendation defines.
    pub flags: TraceFlags,
}

/// Flags of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceFlags(u8);

impl TraceFlags {
    /// Flags of a new trace with a random id, whose last half is `low`. The id decides whether the
    /// trace is one of the `share_ppm` that are sampled.
    #[must_use]
    pub fn of_new_trace(low: u64, share_ppm: u32) -> TraceFlags {
        TraceFlags(RANDOM | u8::from(low % WHOLE_PPM < u64::from(share_ppm)))
    }

    /// Whether the spans of the trace are kept.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        self.0 & SAMPLED != 0
    }
}

impl Traceparent {
    /// Parses a header of this version or a later one.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Traceparent> {
        let (known, beyond) = text.split_at_checked(TRACEPARENT_BYTES)?;
        let mut parts = known.split(|b| *b == b'-');
        let [version] = digits(parts.next()?)?;
        let (trace_id, span_id) = (digits(parts.next()?)?, digits(parts.next()?)?);
        let [flags] = digits(parts.next()?)?;
        let is_whole = match version {
            0 => beyond.is_empty(),
            0xff => false,
            // A later version may add parts.
            _ => beyond.first().is_none_or(|b| *b == b'-'),
        };
        let is_valid =
            is_whole && parts.next().is_none() && trace_id != [0; 16] && span_id != [0; 8];
        let flags = TraceFlags(flags & (SAMPLED | RANDOM));
        is_valid.then_some(Traceparent { trace_id, span_id, flags })
    }

    /// Returns the header of version 00: `00-TRACE-SPAN-FLAGS`.
    #[must_use]
    pub fn header(&self) -> [u8; TRACEPARENT_BYTES] {
        let mut text = [b'-'; TRACEPARENT_BYTES];
        text[..2].copy_from_slice(b"00");
        write_hex(&self.trace_id, &mut text[3..35]);
        write_hex(&self.span_id, &mut text[36..52]);
        write_hex(&[self.flags.0], &mut text[53..]);
        text
    }

    /// Returns the header as a text.
    #[must_use]
    pub fn text(&self) -> String {
        self.header().iter().map(|byte| char::from(*byte)).collect()
    }
}

/// Parses exactly `N` bytes in lower-case hexadecimal digits.
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

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn invalid_traceparent_is_rejected() {
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
            ("-".repeat(TRACEPARENT_BYTES), false),
        ] {
            assert_eq!(Traceparent::parse(text.as_bytes()).is_some(), is_one, "{text}");
        }
    }

    #[test]
    fn header_equals_the_parsed_one() {
        for flags in ["00", "01", "02", "03"] {
            let text = format!("00-{ID}-{PARENT}-{flags}");
            let parsed = Traceparent::parse(text.as_bytes()).expect("valid");
            assert_eq!(
                (parsed.text(), parsed.flags.is_sampled()),
                (text, flags.ends_with(['1', '3']))
            );
        }
    }
}
