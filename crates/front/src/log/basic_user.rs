//! The user name of Basic authentication, for logs and `REMOTE_USER`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Clients send base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the user name of Basic authentication. The password is not verified.
pub(crate) fn basic_user(authorization: &[u8]) -> Option<Vec<u8>> {
    let (scheme, credentials) = authorization.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let mut pair = BASE64.decode(credentials.trim_ascii()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    pair.truncate(colon);
    Some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_authorization_names_the_user() {
        for (authorization, expected) in [
            ("Basic dTpw", Some("u")),
            ("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Some("Aladdin")),
            ("Basic Og==", Some("")),
            ("Basic dTpw ", Some("u")),
            ("Basic Og", Some("")),
            ("Basic dQ==", None),
            ("Basic d*pw", None),
            ("Bearer dTpw", None),
            ("Basic", None),
        ] {
            let found = basic_user(authorization.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{authorization}");
        }
    }
}
