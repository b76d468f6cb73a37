//! parse: converts a web server's parameters to the request that later stages expect.
//!
//! The parameters that name the script are corrected afterwards, as in php-fpm ([`super::script`]).

use super::fastcgi_params::{FastcgiParams, NAME_BYTES_MAX, header_name};
use super::pipe::Stdin;
use crate::client::head_filter::Note;
use crate::client::peer_info::Ends;
use crate::client::request_body::RequestBody;
use crate::upstream::record::{Unpaired, pairs};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use std::net::{IpAddr, SocketAddr};

/// Reads the parameters of one request. `Err`: they are invalid. `None`: there are too many.
pub(super) fn read(
    params: Bytes,
    params_max: usize,
) -> Result<Option<(FastcgiParams, HeaderMap)>, Unpaired> {
    let pairs = match pairs(params, params_max) {
        Ok(pairs) => pairs,
        Err(Unpaired::TooMany) => return Ok(None),
        Err(broken) => return Err(broken),
    };
    let mut told = FastcgiParams {
        variables: Vec::with_capacity(pairs.len() + 2),
        ..FastcgiParams::default()
    };
    told.put("FCGI_ROLE", Bytes::from_static(b"RESPONDER"));
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, mut value) in pairs {
        // php-fpm treats them as C strings.
        value.truncate(memchr::memchr(0, &value).unwrap_or(value.len()));
        match header(&name, &value) {
            Some((name, value)) => drop(headers.insert(name, value)),
            None => match told.variables.iter_mut().find(|(found, _)| *found == name) {
                Some((_, old)) => *old = value,
                None => told.variables.push((name, value)),
            },
        }
    }
    told.ends = ends(&told);
    Ok(Some((told, headers)))
}

/// Converts `HTTP_ACCEPT_LANGUAGE` back to a header. `None`: it is not a header, or its value is
/// not valid in one.
fn header(name: &[u8], value: &Bytes) -> Option<(HeaderName, HeaderValue)> {
    let name = header_name(name)?;
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = &mut lower[..name.len()];
    for (to, from) in lower.iter_mut().zip(name) {
        *to = if *from == b'_' { b'-' } else { from.to_ascii_lowercase() };
    }
    let name = HeaderName::from_bytes(lower).ok()?;
    Some((name, HeaderValue::from_maybe_shared(value.clone()).ok()?))
}

/// Returns the client's ends, as reported by the web server.
fn ends(told: &FastcgiParams) -> Ends {
    let text = |name| String::from_utf8_lossy(told.get(name).unwrap_or_default()).into_owned();
    let address = told.number::<IpAddr>("REMOTE_ADDR");
    let port = told.number::<u16>("REMOTE_PORT").unwrap_or(0);
    let peer = address.map(|address| SocketAddr::new(address, port));
    let is_off = |on: &[u8]| on.is_empty() || on.eq_ignore_ascii_case(b"off");
    let is_tls = told.get("HTTPS").is_some_and(|on| !is_off(on));
    Ends::told(peer, [text("REMOTE_ADDR"), text("SERVER_ADDR")], is_tls)
}

/// Builds the request that later stages expect, and its additional details.
pub(super) fn request(
    told: FastcgiParams,
    headers: HeaderMap,
    stdin: Stdin,
) -> (Request<RequestBody>, Note) {
    let mut request = Request::new(RequestBody::FastCgi(stdin));
    let method = told.get("REQUEST_METHOD").and_then(|method| Method::from_bytes(method).ok());
    let target = target(&told);
    let mut note = Note::default();
    if method.is_none() && !told.is_too_large {
        note.doubt = Some("missing parameter REQUEST_METHOD");
    }
    *request.method_mut() = method.unwrap_or_default();
    *request.version_mut() = version(told.get("SERVER_PROTOCOL"));
    *request.headers_mut() = headers;
    match PathAndQuery::from_maybe_shared(target.clone()) {
        Ok(path) if target.first() == Some(&b'/') => *request.uri_mut() = Uri::from(path),
        _ => note.target = Some(target),
    }
    note.told = Some(Box::new(told));
    (request, note)
}

/// Returns the target as the client sent it. Users who run a FastCGI client by hand usually do not
/// set it.
fn target(told: &FastcgiParams) -> Bytes {
    if let Some((_, target)) = told.variables.iter().find(|(name, _)| name == "REQUEST_URI")
        && !target.is_empty()
    {
        return target.clone();
    }
    let part = |name| told.get(name).unwrap_or_default();
    let mut target = [part("SCRIPT_NAME"), part("PATH_INFO")].concat();
    if let Some(query) = told.get("QUERY_STRING").filter(|query| !query.is_empty()) {
        target.push(b'?');
        target.extend_from_slice(query);
    }
    if target.is_empty() { Bytes::from_static(b"/") } else { target.into() }
}

fn version(protocol: Option<&[u8]>) -> Version {
    match protocol {
        Some(b"HTTP/2.0" | b"HTTP/2") => Version::HTTP_2,
        Some(b"HTTP/3.0" | b"HTTP/3") => Version::HTTP_3,
        Some(b"HTTP/1.0") => Version::HTTP_10,
        _ => Version::HTTP_11,
    }
}
