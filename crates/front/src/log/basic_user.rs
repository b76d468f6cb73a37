//! The user name of Basic authentication, for logs and `REMOTE_USER`.

/// Returns the user name of Basic authentication. The password is not verified.
pub(crate) fn basic_user(authorization: &[u8]) -> Option<Vec<u8>> {
    let (scheme, told) = authorization.split_at_checked(b"Basic ".len())?;
    let told = told.trim_ascii().split(|byte| *byte == b'=').next()?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::with_capacity(told.len()));
    for byte in told {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(six), count + 6);
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    let colon = out.iter().position(|byte| *byte == b':')?;
    out.truncate(colon);
    Some(out)
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
