//! parse: the request that the stages behind this know, of the parameters that a web server has sent.
//!
//! What names the script is put right then, as php-fpm does ([`super::script`]).

use super::pipe::Stdin;
use super::told::{NAME_BYTES_MAX, Told, header_name};
use crate::client::ends::Ends;
use crate::client::request_body::RequestBody;
use crate::client::screen::Note;
use crate::upstream::record::{Unpaired, pairs};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use std::net::{IpAddr, SocketAddr};

/// Reads the parameters of one request. Err: they are none. `None`: there are too many.
pub(super) fn read(
    params: Bytes,
    params_max: usize,
) -> Result<Option<(Told, HeaderMap)>, Unpaired> {
    let pairs = match pairs(params, params_max) {
        Ok(pairs) => pairs,
        Err(Unpaired::TooMany) => return Ok(None),
        Err(broken) => return Err(broken),
    };
    let mut told = Told { variables: Vec::with_capacity(pairs.len() + 2), ..Told::default() };
    told.put("FCGI_ROLE", Bytes::from_static(b"RESPONDER"));
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, mut value) in pairs {
        // To php-fpm they are C's strings.
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

/// `HTTP_ACCEPT_LANGUAGE` as the header that it was; `None`: it was none, or its value is not what one may have.
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

/// Who is there, by the web server's word.
fn ends(told: &Told) -> Ends {
    let text = |name| String::from_utf8_lossy(told.get(name).unwrap_or_default()).into_owned();
    let address = told.number::<IpAddr>("REMOTE_ADDR");
    let port = told.number::<u16>("REMOTE_PORT").unwrap_or(0);
    let peer = address.map(|address| SocketAddr::new(address, port));
    let is_off = |on: &[u8]| on.is_empty() || on.eq_ignore_ascii_case(b"off");
    let is_tls = told.get("HTTPS").is_some_and(|on| !is_off(on));
    Ends::told(peer, [text("REMOTE_ADDR"), text("SERVER_ADDR")], is_tls)
}

/// The request as the stages behind this know it, and what they are told besides.
pub(super) fn request(
    told: Told,
    headers: HeaderMap,
    stdin: Stdin,
) -> (Request<RequestBody>, Note) {
    let mut request = Request::new(RequestBody::FastCgi(stdin));
    let method = told.get("REQUEST_METHOD").and_then(|method| Method::from_bytes(method).ok());
    let target = target(&told);
    let mut note = Note::default();
    if method.is_none() && !told.is_too_large {
        note.doubt = Some("no REQUEST_METHOD among the parameters");
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

/// The target as the client wrote it. Who starts programs by hand mostly does not say it.
fn target(told: &Told) -> Bytes {
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
