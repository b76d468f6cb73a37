//! submit: selects the requests that go to the workers which record call graphs.
//!
//! They are a random share, and requests with a valid signature. Requests never wait for this: if
//! those workers are busy, or there are none, the request runs as usual. A signature is
//! `EXPIRES-MAC`: seconds since 1970, and the HMAC-SHA256 (RFC 2104) of `samovar-trace EXPIRES` in
//! hexadecimal digits.
//!
//! An application may request a trace of its visitor's next request (`Samovar\trace_next()`). Its
//! response then contains a header, which the front replaces with a cookie. The cookie contains a
//! token that is valid once.

use super::context::ScriptRequest;
use crate::exchange::Exchanges;
use crate::runtime::tokens::NEXT_S;
use crate::shared::Shared;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ring::hmac;
use samovar_config::{Profile, Secret};
use samovar_ring::Lane;
use std::fmt::Write as _;

const HEADER: HeaderName = HeaderName::from_static("x-samovar-trace");
/// Cookie with the same meaning as the header.
pub const TRACE_COOKIE: &str = "samovar_trace";
/// Maximum length of a signature: 20 digits, `-`, and the MAC.
const SIGNATURE_BYTES_MAX: usize = 20 + 1 + 64;
/// Maximum number of cookies examined.
const COOKIES_MAX: usize = 100;

/// Returns a signature that is valid until `expires`, in seconds since 1970.
#[must_use]
pub fn trace_signature(key: &str, expires: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let mut text = format!("{expires}-");
    for byte in hmac::sign(&key, signed(expires).as_bytes()).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Header of a response that requests a trace of the visitor's next request.
const NEXT: HeaderName = HeaderName::from_static("x-samovar-trace-next");

/// Replaces the header of a response that requests a trace with the cookie for the visitor's next
/// request.
pub(super) fn promise(shared: &Shared, profile: &Profile, headers: &mut HeaderMap) {
    if !profile.traces() || headers.remove(NEXT).is_none() {
        return;
    }
    let Some(token) = shared.common.tokens.give(shared.clock.real_ms() / 1_000) else { return };
    let cookie =
        format!("{TRACE_COOKIE}={token}; Max-Age={NEXT_S}; Path=/; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}

fn signed(expires: u64) -> String {
    format!("samovar-trace {expires}")
}

fn is_signed(key: &str, text: &str, now_s: u64) -> bool {
    if text.len() > SIGNATURE_BYTES_MAX {
        return false;
    }
    let Some((expires, mac)) = text.trim().split_once('-') else { return false };
    let Ok(expires) = expires.parse::<u64>() else { return false };
    let digit = |at: usize| mac.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let mac: Option<Vec<u8>> = (0..mac.len()).step_by(2).map(digit).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let is_right = |mac: Vec<u8>| hmac::verify(&key, signed(expires).as_bytes(), &mac).is_ok();
    expires >= now_s && mac.is_some_and(is_right)
}

/// Returns the request's signature or token, from the header or else from the cookie.
fn asked(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(HEADER) {
        return value.to_str().ok();
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).take(COOKIES_MAX);
    pairs
        .find_map(|pair| pair.trim().split_once('=').filter(|(name, _)| *name == TRACE_COOKIE))
        .map(|(_, value)| value)
}

/// Returns the lane of the request's first run.
pub(super) fn lane(request: &ScriptRequest<'_>, exchanges: &Exchanges) -> Lane {
    let script = request.script;
    let profile = &request.context.setup.settings.profile;
    if !profile.traces() {
        return script.lane;
    }
    let shared = request.shared();
    let asked = asked(&request.parts.headers);
    let now_s = || shared.clock.real_ms() / 1_000;
    let token = asked.filter(|text| shared.common.tokens.holds(text, now_s()));
    if token.is_none() && !is_wanted(request, profile, asked, now_s) {
        return script.lane;
    }
    let counters = &shared.counters;
    let lane = script.lane.trace();
    if exchanges.has_idle(lane) {
        counters.pool.requests_traced_total.add(1);
        if let Some(token) = token {
            shared.common.tokens.spend(token);
        }
        lane
    } else {
        counters.pool.trace_requests_dropped_total.add(1);
        script.lane
    }
}

fn is_wanted(
    request: &ScriptRequest<'_>,
    profile: &Profile,
    asked: Option<&str>,
    now_s: impl Fn() -> u64,
) -> bool {
    let is_drawn = profile.trace_ppm > 0
        && request.script.terms.may_trace
        && request.shared().lots.draw(profile.trace_ppm);
    let key = profile.trace_key.as_ref().map(Secret::expose);
    is_drawn || asked.zip(key).is_some_and(|(text, key)| is_signed(key, text, now_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef";

    #[test]
    fn signature_is_valid_until_expiry_and_for_its_key() {
        let text = trace_signature(KEY, 1_000);
        assert!(is_signed(KEY, &text, 1_000));
        assert!(!is_signed(KEY, &text, 1_001), "it is over");
        assert!(!is_signed("another key, as long", &text, 1_000));
        let (_, mac) = text.split_once('-').expect("two parts");
        for wrong in ["", "-", "1000-", "1000-zz", "x", &format!("2000-{mac}"), &text[..60]] {
            assert!(!is_signed(KEY, wrong, 1_000), "{wrong}");
        }
        assert!(!is_signed(KEY, &format!("{text}00"), 1_000));
        assert!(!is_signed(KEY, "1000-€", 1_000));
    }

    #[test]
    fn trace_header_takes_precedence_over_cookie() {
        let mut headers = HeaderMap::new();
        assert_eq!(asked(&headers), None);
        headers.insert(header::COOKIE, "a=b; samovar_trace=7-ab; c".parse().expect("a value"));
        assert_eq!(asked(&headers), Some("7-ab"));
        headers.insert(HEADER, "8-cd".parse().expect("a value"));
        assert_eq!(asked(&headers), Some("8-cd"));
    }

    #[test]
    fn draws_match_the_requested_share() {
        let lots = crate::runtime::random_sampling::Lots::default();
        for (ppm, least, most) in [(0, 0, 0), (10_000, 800, 1_200), (1_000_000, 100_000, 100_000)] {
            let drawn = (0..100_000).filter(|_| lots.draw(ppm)).count();
            assert!((least..=most).contains(&drawn), "{ppm}: {drawn}");
        }
    }
}
