//! HTTP requirements on requests that hyper does not check.

use super::host::is_host;
use crate::response::error_page::Failure;
use crate::response::front_response::ALLOWED;
use http::request::Parts;
use http::{Method, Version, header};
use samovar_config::Limits;

/// Rejects ambiguous requests, and methods that are not supported.
pub(super) fn check(parts: &Parts, limits: &Limits) -> Result<(), Failure> {
    // For HTTP/1.1, hyper enforces this limit.
    if parts.version == Version::HTTP_2 && parts.headers.len() > limits.headers_max {
        return Err(Failure::TooManyHeaders);
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
            return Err(Failure::BadRequest("invalid Host header"));
        }
        _ => {}
    }
    let mut codings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {}
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {}
        // hyper decodes every list of codings that ends with `chunked` only once. The end of the
        // body would be ambiguous.
        _ => {
            return Err(Failure::BadRequest(
                "unsupported Transfer-Encoding (only one `chunked` is allowed)",
            ));
        }
    }
    match parts.uri.scheme_str() {
        None | Some("http" | "https") => {}
        Some(_) => return Err(Failure::BadRequest("unsupported scheme in the request target")),
    }
    // It replaces the `Host` header.
    match parts.uri.authority() {
        Some(authority) if !is_host(authority.as_str().as_bytes()) => {
            Err(Failure::BadRequest("invalid host in the request target"))
        }
        _ => Ok(()),
    }
}
