//! parse: what a web server has told of a request, and the request that the stages behind this know.
//!
//! Parameters that are headers (`HTTP_…`) become headers again; all others stay as they are, for `$_SERVER`. What names
//! the script is put right first, as php-fpm does ([`super::script`]).

use super::pipe::Stdin;
use super::record::{Unpaired, pairs};
use super::script::{self, Known, Named};
use crate::client::ends::Ends;
use crate::client::request_body::RequestBody;
use crate::client::screen::Note;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use std::net::{IpAddr, SocketAddr};
use std::str;

/// What stands before a header's name.
const HEADER: &[u8] = b"HTTP_";
/// Longest name of a header, without the prefix: what PHP is given keeps no more.
const NAME_BYTES_MAX: usize = 249;

/// What a web server has told of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Who is at the ends of the client's connection to the web server.
    pub(crate) ends: Ends,
    /// Parameters that are no headers.
    pub(crate) variables: Vec<(Bytes, Bytes)>,
    /// The script that is asked for.
    pub(crate) script: Named,
    /// Its parameters are too many, or too long: nothing else is known.
    pub(crate) is_too_large: bool,
}

impl Told {
    /// A parameter, if there is one of this name that is no header.
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.variables.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| &value[..])
    }

    /// The same as a number.
    pub(crate) fn number<T: str::FromStr>(&self, name: &str) -> Option<T> {
        str::from_utf8(self.get(name)?).ok()?.parse().ok()
    }

    fn put(&mut self, name: &'static str, value: Bytes) {
        match self.variables.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => *old = value,
            None => self.variables.push((Bytes::from_static(name.as_bytes()), value)),
        }
    }
}

/// Reads the parameters of one request. Err: they are none. `None`: there are too many.
/// `known` is what the connection knows of files, at this time.
pub(super) fn read(
    params: Bytes,
    params_max: usize,
    (known, now_ms): (&Known, u64),
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
    script::put_right(&mut told, known, now_ms);
    told.ends = ends(&told);
    Ok(Some((told, headers)))
}

impl Told {
    /// Headers with values that no header may have, by their lower-case names: php-fpm passes them on.
    pub(crate) fn odd_headers(&self) -> impl Iterator<Item = (Vec<u8>, &[u8])> {
        self.variables.iter().filter_map(|(name, value)| {
            let lower = |b: &u8| if *b == b'_' { b'-' } else { b.to_ascii_lowercase() };
            Some((header_name(name)?.iter().map(lower).collect(), &value[..]))
        })
    }

    /// Changes a parameter, or adds it.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Bytes>) {
        self.put(name, value.into());
    }

    /// Takes a parameter out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Bytes> {
        let at = self.variables.iter().position(|(found, _)| found == name)?;
        Some(self.variables.remove(at).1)
    }

    /// The length of the body; `None`: it is not known. Methods that have none mostly do not say so.
    pub(super) fn body_bytes(&self) -> Option<u64> {
        let is_bodiless =
            || matches!(self.get("REQUEST_METHOD"), Some(b"GET" | b"HEAD" | b"OPTIONS"));
        self.number("CONTENT_LENGTH").or_else(|| is_bodiless().then_some(0))
    }
}

/// The name of the header that a parameter was, in capitals; `None`: it was none.
fn header_name(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_prefix(HEADER).filter(|name| name.len() <= NAME_BYTES_MAX)?;
    let is_plain = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    (!name.is_empty() && name.iter().all(is_plain)).then_some(name)
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
