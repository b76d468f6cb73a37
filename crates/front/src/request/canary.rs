//! Assigns a request to the canary or to the serving generation.
//!
//! The cookie contains a random number. A keyed hash of it selects the generation, so a client
//! cannot choose one, and an invented value has the same effect as a random one.

use crate::route::site::{Route, Routed};
use crate::setup::Setup;
use crate::shared::Shared;
use crate::shared::canary::{Canary, CanaryBy};
use http::{HeaderMap, HeaderValue, header};
use std::net::IpAddr;
use std::rc::Rc;

/// Cookie of a visitor, set while a canary runs.
pub const CANARY_COOKIE: &str = "samovar_canary";
/// Digits of its value.
const DIGITS: usize = 16;
/// Validity of the cookie: visitors of a canary that runs for days stay with it.
const MAX_AGE_S: u32 = 7 * 24 * 3_600;
/// Maximum number of cookies examined.
const COOKIES_MAX: usize = 100;

/// A request's assignment.
pub(super) struct Assignment {
    /// The canary, if the request belongs to it.
    pub(super) canary: Option<Rc<Canary>>,
    /// Number for the cookie of a visitor that has none yet.
    visitor: Option<u64>,
}

impl Assignment {
    /// Assigns a request. `client`: its address. `is_named`: a web server in front has named its
    /// script, below the root of the serving generation.
    pub(super) fn of(
        shared: &Shared,
        headers: &HeaderMap,
        client: impl Fn() -> IpAddr,
        is_named: bool,
    ) -> Assignment {
        let is_usable =
            |canary: &Rc<Canary>| !is_named || canary.setup.site.root == shared.setup().site.root;
        let Some(canary) = shared.canary().filter(is_usable) else {
            return Assignment { canary: None, visitor: None };
        };
        let (is_canarys, visitor) = match canary.by {
            CanaryBy::Random => (shared.lots.draw(canary.share_ppm), None),
            CanaryBy::Client => (canary.has(network(client())), None),
            CanaryBy::Cookie => {
                let known = visitor_of(headers);
                let new = || canary.visitor(shared.lots.number());
                let visitor = known.unwrap_or_else(new);
                (canary.has(visitor), known.is_none().then_some(visitor))
            }
        };
        Assignment { canary: Some(canary).filter(|_| is_canarys), visitor }
    }

    /// Returns the setup that serves the request: the canary's, or `setup`.
    pub(super) fn setup(&self, setup: Rc<Setup>) -> Rc<Setup> {
        self.canary.as_ref().map_or(setup, |canary| Rc::clone(&canary.setup))
    }

    /// Whether the visitor has no cookie yet.
    pub(super) fn is_new(&self) -> bool {
        self.visitor.is_some()
    }

    /// Adds the cookie to the first page of a visitor. Files, and responses that shared caches may
    /// store, do not get it.
    pub(super) fn mark(&self, is_https: bool, routed: Option<&Routed>, headers: &mut HeaderMap) {
        let Some(visitor) = self.visitor else { return };
        let is_page = routed.is_some_and(|routed| matches!(routed.route, Route::Script(_)));
        if !is_page || is_shared(headers) {
            return;
        }
        let secure = if is_https { "; Secure" } else { "" };
        let cookie = format!(
            "{CANARY_COOKIE}={visitor:016x}; Max-Age={MAX_AGE_S}; Path=/; HttpOnly; \
             SameSite=Lax{secure}"
        );
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
}

/// Whether a shared cache may store the response for all visitors.
fn is_shared(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut words = texts.flat_map(|text| text.split(',')).map(str::trim);
    words.any(|word| {
        word.eq_ignore_ascii_case("public")
            || word.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("s-maxage"))
    })
}

/// Returns the number in the request's cookie. Values of another form are ignored.
fn visitor_of(headers: &HeaderMap) -> Option<u64> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|text| text.split(';')).take(COOKIES_MAX);
    let mut values = pairs.filter_map(|pair| {
        pair.trim().split_once('=').filter(|(name, _)| *name == CANARY_COOKIE).map(|(_, text)| text)
    });
    values.find_map(|text| {
        let is_number = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    })
}

/// A client's IPv4 address, or the first 64 bits of its IPv6 address: a household has that many.
fn network(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(address) => u64::from(address.to_bits()) | 1 << 63,
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64 & !(1 << 63),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_bytes(text.as_bytes()).expect("a value"));
        headers
    }

    #[test]
    fn only_a_number_of_the_right_form_is_a_visitor() {
        let good = "a=b; samovar_canary=00000000000000ff; c";
        assert_eq!(visitor_of(&cookies(good)), Some(255));
        for wrong in [
            "samovar_canary=",
            "samovar_canary=ff",
            "samovar_canary=+0000000000000ff",
            "samovar_canary=00000000000000ffff",
            "samovar_canary=00000000000000fg",
            "samovar_canary=00000000000000\u{e9}",
            "xsamovar_canary=00000000000000ff",
            "",
        ] {
            assert_eq!(visitor_of(&cookies(wrong)), None, "{wrong}");
        }
        let second = "samovar_canary=x; samovar_canary=0000000000000001";
        assert_eq!(visitor_of(&cookies(second)), Some(1));
        let many = "a=b; ".repeat(10_000) + good;
        assert_eq!(visitor_of(&cookies(&many)), None, "too many cookies");
    }

    #[test]
    fn responses_of_shared_caches_are_recognised() {
        for (control, expected) in [
            ("private, max-age=0", false),
            ("no-store", false),
            ("publication", false),
            ("Public, max-age=60", true),
            ("max-age=60, s-maxage=600", true),
        ] {
            let mut headers = HeaderMap::new();
            assert!(!is_shared(&headers));
            headers.insert(header::CACHE_CONTROL, control.parse().expect("a value"));
            assert_eq!(is_shared(&headers), expected, "{control}");
        }
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
