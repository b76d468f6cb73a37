//! Conversions that several servers share: headers, variables, PHP settings, sizes and times,
//! redirects.

use super::draft::{Block, Draft, Value};
use super::origin::Origin;
use super::units;

/// Headers that only the server sets.
const SERVERS_HEADERS: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// Variables of the request, which PHP gets in any case.
const REQUEST_VARIABLES: [&str; 29] = [
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "FCGI_ROLE",
    "GATEWAY_INTERFACE",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "PHP_AUTH_DIGEST",
    "PHP_AUTH_PW",
    "PHP_AUTH_USER",
    "PHP_SELF",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_ID",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];

/// A header of responses; an empty value removes it.
pub(crate) fn header(
    draft: &mut Draft,
    block: &mut Block,
    name: &str,
    value: &str,
    origin: &Origin,
) {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        draft.missing(origin, "the name of the header is invalid");
    } else if SERVERS_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        draft.missing(origin, format!("the server sets `{name}` itself"));
    } else if has_variable(value) {
        draft.missing(origin, "values of headers are constant: set the header in PHP");
    } else if !value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        draft.missing(origin, "values of headers are printable ASCII");
    } else if name.eq_ignore_ascii_case("cache-control") {
        cache_control(block, value, origin);
    } else {
        block.entries.pair("headers", name, value, origin);
    }
}

/// Several `Cache-Control` headers of one location become one.
fn cache_control(block: &mut Block, value: &str, origin: &Origin) {
    if let Some(entry) = block.entries.0.iter_mut().find(|entry| entry.key == "headers")
        && let Value::Map(pairs) = &mut entry.value
        && let Some((_, known)) =
            pairs.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cache-control"))
    {
        if !known.contains(value) {
            *known = format!("{known}, {value}");
            entry.origins.push(origin.clone());
        }
        return;
    }
    block.entries.pair("headers", "Cache-Control", value, origin);
}

/// A variable for `$_SERVER`.
pub(crate) fn variable(
    draft: &mut Draft,
    block: &mut Block,
    name: &str,
    value: &str,
    origin: &Origin,
) {
    let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if REQUEST_VARIABLES.contains(&name) || name == "HTTP_PROXY" {
        draft.built_in(origin, "PHP gets the variables of a request in any case");
    } else if name == "HTTPS" {
        draft.differs(origin, "HTTPS is set for TLS; behind a proxy, set `trusted_proxies`");
    } else if name == "PHP_VALUE" || name == "PHP_ADMIN_VALUE" {
        for line in value.split(['\n', ';']).filter(|line| !line.trim().is_empty()) {
            match line.split_once('=') {
                Some((key, value)) => php(draft, key.trim(), value.trim(), origin),
                None => draft.missing(origin, "a line of the value is no `name=value`"),
            }
        }
    } else if name.starts_with("HTTP_") || name.starts_with("SSL_") {
        draft.missing(origin, "names with `HTTP_` and `SSL_` are reserved for the client's data");
    } else if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        draft.missing(origin, "a name has letters, digits and `_`");
    } else if has_variable(value) {
        draft.missing(origin, "values of variables are constant: compute it in PHP");
    } else {
        block.entries.pair("variables", name, value, origin);
    }
}

fn has_variable(value: &str) -> bool {
    let mut after = value.split('$').skip(1);
    after.any(|text| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{' || c == '_'))
}

/// A directive of php.ini.
pub(crate) fn php(draft: &mut Draft, name: &str, value: &str, origin: &Origin) {
    let value = php_value(value);
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() && b != b'"') {
        draft.missing(origin, "it is no name of a directive");
    } else {
        draft.set("php", name, value, origin);
    }
}

/// A value of php.ini: switches and numbers have no quotes.
pub(crate) fn php_value(value: &str) -> Value {
    let value = unquoted(value);
    match value.to_ascii_lowercase().as_str() {
        "on" | "yes" | "true" => Value::plain(true),
        "off" | "no" | "false" => Value::plain(false),
        _ => match value.parse::<i64>() {
            Ok(number) if number.to_string() == value => Value::plain(number),
            _ => Value::text(value),
        },
    }
}

/// The text without its quotes.
pub(crate) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    text
}

/// A size of another server as a setting; a number has `unit` bytes.
pub(crate) fn size(
    draft: &mut Draft,
    (table, key): (&'static str, &str),
    text: &str,
    unit: u64,
    origin: &Origin,
) {
    match units::bytes(text, unit) {
        Some(bytes) => draft.set(table, key, Value::Text(units::size(bytes)), origin),
        None => draft.missing(origin, format!("`{text}` is no size")),
    }
}

/// A time of another server as a setting; a number has `unit` milliseconds.
pub(crate) fn time(
    draft: &mut Draft,
    (table, key): (&'static str, &str),
    text: &str,
    unit: u64,
    origin: &Origin,
) {
    match units::milliseconds(text, unit) {
        Some(time) => draft.set(table, key, Value::Text(units::time(time)), origin),
        None => draft.missing(origin, format!("`{text}` is no time")),
    }
}

/// Joins a folder and a path that may begin with a slash.
pub(crate) fn join(folder: &str, path: &str) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches('/'))
        .trim_end_matches('/')
        .to_owned()
}

/// Folder of a configuration file.
pub(crate) fn folder_of(file: &std::path::Path) -> String {
    let folder = file.parent().unwrap_or(std::path::Path::new("")).to_string_lossy().into_owned();
    if folder.is_empty() { String::from(".") } else { folder }
}

/// Makes a path of a configuration file relative to its folder, and absolute if possible.
pub(crate) fn resolved(file: &std::path::Path, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.starts_with('/') {
        return path.to_owned();
    }
    let folder = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    join(&folder_of(&folder), path)
}

/// The path of a script without its query: `/index.php?q=$uri` → `/index.php`, `q=$uri`.
pub(crate) fn script_and_query(target: &str) -> (&str, &str) {
    let at = target.find(['?', '$', '{']).unwrap_or(target.len());
    (&target[..at], target[at..].trim_start_matches('?'))
}

/// Whether a path is that of a script.
pub(crate) fn is_script(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|extension| extension == "php")
}
