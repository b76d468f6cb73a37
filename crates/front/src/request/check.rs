//! What HTTP demands of a request and hyper does not check.

use super::host::is_host;
use crate::answer::error_page::Failure;
use crate::answer::own::ALLOWED;
use http::request::Parts;
use http::{Method, Version, header};
use samovar_config::Limits;

/// Refuses what would be understood in more than one way, and methods that nothing here answers.
pub(super) fn check(parts: &Parts, limits: &Limits) -> Result<(), Failure> {
    // hyper counts those of HTTP/1.1.
    if parts.version == Version::HTTP_2 && parts.headers.len() > limits.headers_max {
        return Err(Failure::HeadTooLarge);
    }
    if parts.method == Method::TRACE || parts.method == Method::CONNECT {
        return Err(Failure::MethodNotAllowed(ALLOWED));
    }
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if parts.version >= Version::HTTP_11 => {
            return Err(Failure::BadRequest("no Host header"));
        }
        (Some(_), Some(_)) => return Err(Failure::BadRequest("more than one Host header")),
        (Some(host), None) if !is_host(host.as_bytes()) => {
            return Err(Failure::BadRequest("an invalid Host header"));
        }
        _ => {}
    }
    let mut codings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {}
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {}
        // hyper decodes once whatever ends with `chunked`: where the body ends would be anybody's guess.
        _ => return Err(Failure::BadRequest("a transfer coding other than one `chunked`")),
    }
    match parts.uri.scheme_str() {
        None | Some("http" | "https") => {}
        Some(_) => return Err(Failure::BadRequest("a target of another scheme")),
    }
    // It takes the place of the `Host` header.
    match parts.uri.authority() {
        Some(authority) if !is_host(authority.as_str().as_bytes()) => {
            Err(Failure::BadRequest("an invalid host in the target"))
        }
        _ => Ok(()),
    }
}
