//! Normal forms of statements for C: they leave the process, their literals do not.

use crate::bytes::slice;
use samovar_log::{Dialect, FileClass, fold, normalise_sql};
use std::ffi::c_char;

/// Maximum bytes of the method of a HTTP request. A longer one is not shown.
const METHOD_BYTES_MAX: usize = 16;

/// Stores the normal form of a statement in `to`. Returns its length.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_normal_sql(
    text: *const c_char,
    len: usize,
    dialect: u32,
    to: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: insight/statements.h: `text` has `len` bytes.
    let text = unsafe { slice(text, len) };
    // SAFETY: insight/statements.h: `to` has `room` bytes, and C does not read them meanwhile.
    let to = unsafe { std::slice::from_raw_parts_mut(to, room) };
    normalise_sql(text, Dialect::of(dialect), to)
}

/// Stores method, host and pattern of the path of a HTTP request in `to`. Returns the length.
#[unsafe(no_mangle)]
unsafe extern "C" fn samovar_normal_http(
    method: *const c_char,
    method_len: usize,
    url: *const c_char,
    len: usize,
    to: *mut u8,
    room: usize,
) -> usize {
    // SAFETY: insight/statements.h: the method has this length. It may be NULL with the length 0.
    let method = unsafe { slice(method, method_len) };
    // SAFETY: insight/statements.h: the URL has this length.
    let url = unsafe { slice(url, len) };
    let text = http_request(method, url);
    let len = text.len().min(room);
    // SAFETY: insight/statements.h: `to` has `room` bytes, and C does not read them meanwhile.
    unsafe { to.copy_from_nonoverlapping(text.as_ptr(), len) };
    len
}

/// Returns `GET api.example.com/users/{n}` for a method and a URL, without user, query and
/// fragment, and without ids in the path.
fn http_request(method: &[u8], url: &[u8]) -> String {
    let url = String::from_utf8_lossy(url);
    let rest = url.split_once("://").map_or(&*url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let slash = rest.find('/').unwrap_or(rest.len());
    let host = rest[..slash].rsplit('@').next().unwrap_or_default();
    let is_host = |b: u8| b.is_ascii_alphanumeric() || b".-:[]_".contains(&b);
    let host = if host.bytes().all(is_host) { host } else { "(unknown)" };
    let folded = fold(&rest[slash..]);
    let path = FileClass::of(folded.as_bytes());
    let path = String::from_utf8_lossy(path.bytes());
    let is_method = method.len() <= METHOD_BYTES_MAX && method.iter().all(u8::is_ascii_alphabetic);
    let method = if is_method { String::from_utf8_lossy(method) } else { "".into() };
    format!("{method} {host}{path}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::http_request;

    #[test]
    fn request_has_no_ids_and_secrets() {
        for (method, url, expected) in [
            ("GET", "https://api.example.com/users/42?token=x#y", "GET api.example.com/users/{n}"),
            ("POST", "http://u:secret@10.0.0.5:8080", "POST 10.0.0.5:8080"),
            ("", "http://[::1]:80/", "[::1]:80/"),
            ("", "example.com?secret", "example.com"),
            ("a secret", "http://h/x", "h/x"),
            ("GET", "http://a b/x", "GET (unknown)/x"),
            (
                "GET",
                "https://h/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/send",
                "GET h/{…}/send",
            ),
            ("GET", "https://h/files/d41d8cd98f00b204e9800998ecf8427e", "GET h/files/{hash}"),
            ("GET", "", "GET"),
        ] {
            assert_eq!(http_request(method.as_bytes(), url.as_bytes()), expected, "{url}");
        }
        assert!(!http_request(b"GET", b"http://h/\xff").is_empty());
    }
}
