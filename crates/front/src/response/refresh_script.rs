//! Development mode: the script that loads a page again after a change, and its place in a page.
//!
//! Pure functions. The script is a file of the server's own folder, so that most policies
//! (`Content-Security-Policy`) allow it. A policy is never changed.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use memchr::memchr;
use memchr::memmem;

/// Maximum number of bytes at the start of a page in which its head is searched.
const SCAN_BYTES_MAX: usize = 64 * 1024;

/// Elements whose content is text, where a tag is no tag.
const TEXT_ELEMENTS: [&str; 5] = ["script", "style", "textarea", "title", "template"];

/// The script. It reloads a page whose version differs, at most once per version: a page from a
/// cache must not reload for ever. Hidden pages do not listen, because browsers open at most six
/// connections to a server over HTTP/1.1.
pub(crate) const SCRIPT: &str = include_str!("refresh_script.js");

/// Whether a response with these headers is an uncompressed page.
pub(crate) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(http::HeaderValue::as_bytes).unwrap_or_default();
    let is_html = kind.len() >= 9 && kind[..9].eq_ignore_ascii_case(b"text/html");
    is_html && !headers.contains_key(CONTENT_ENCODING)
}

/// Returns the script's tag for this version of the application; `None`: a policy of the page
/// blocks it.
pub(crate) fn tag(version: u64, headers: &HeaderMap) -> Option<String> {
    let mut nonce = None;
    for policy in headers.get_all(CONTENT_SECURITY_POLICY) {
        // A header may have several policies, and all of them apply.
        for policy in policy.to_str().ok()?.split(',') {
            let scripts = directive(policy, &["script-src-elem", "script-src", "default-src"]);
            if let Some(sources) = scripts {
                let own = sources.iter().find_map(|source| {
                    source.strip_prefix("'nonce-").and_then(|rest| rest.strip_suffix('\''))
                });
                let is_strict = sources.contains(&"'strict-dynamic'");
                if own.is_none() && (is_strict || !allows_own(&sources)) {
                    return None;
                }
                nonce = nonce.or(own.map(str::to_owned));
            }
            if directive(policy, &["connect-src", "default-src"]).is_some_and(|s| !allows_own(&s)) {
                return None;
            }
        }
    }
    let is_sound = |nonce: &String| {
        nonce.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
    };
    let nonce = match nonce {
        Some(nonce) if !is_sound(&nonce) => return None,
        Some(nonce) => format!(" nonce=\"{nonce}\""),
        None => String::new(),
    };
    Some(format!("<script src=\"/_samovar/dev.js?v={version}\"{nonce}></script>"))
}

/// Returns the sources of the first directive that the policy has.
fn directive<'a>(policy: &'a str, names: &[&str]) -> Option<Vec<&'a str>> {
    names.iter().find_map(|name| {
        let mut all = policy.split(';').map(|part| part.split_ascii_whitespace());
        all.find_map(|mut words| {
            words.next().filter(|word| word.eq_ignore_ascii_case(name)).map(|_| words.collect())
        })
    })
}

/// Whether the sources allow the page's own origin.
fn allows_own(sources: &[&str]) -> bool {
    sources.iter().any(|source| matches!(*source, "'self'" | "*" | "http:" | "https:"))
}

/// Returns the position in the page where the script belongs: the start of its head or body.
/// `None`: it is a fragment.
pub(crate) fn position(page: &[u8]) -> Option<usize> {
    let page = &page[..page.len().min(SCAN_BYTES_MAX)];
    let (mut at, mut fallback) = (0, None);
    while let Some(found) = memchr(b'<', &page[at..]) {
        at += found;
        let rest = &page[at..];
        if rest.starts_with(b"<!--") {
            at += 4 + memmem::find(&rest[4..], b"-->")? + 3;
            continue;
        }
        let name = rest[1..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let name = String::from_utf8_lossy(&rest[1..=name]).to_ascii_lowercase();
        let is_tag =
            rest.get(1).is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!".contains(byte));
        let Some(end) = tag_end(rest).filter(|_| is_tag) else {
            if is_tag {
                break;
            }
            at += 1;
            continue;
        };
        let after = at + end;
        match name.as_str() {
            "head" | "body" => return Some(after),
            "html" => fallback = Some(after),
            name if TEXT_ELEMENTS.contains(&name) => {
                at = after + text_end(&page[after..], name)?;
                continue;
            }
            _ => {}
        }
        at = after;
    }
    fallback
}

/// Returns the length of the tag at the start of `text`. A `>` in a quoted value does not end it.
fn tag_end(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns the position of the end tag of a text element.
fn text_end(text: &[u8], name: &str) -> Option<usize> {
    let is_end = |at: &usize| {
        let rest = &text[*at + 2..];
        rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name.as_bytes())
    };
    memmem::find_iter(text, b"</").find(is_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn script_belongs_into_head_or_body_of_pages_only() {
        for (page, expected) in [
            ("<!doctype html><html lang=\"a>b\"><head id=x>|<title>t</title>", true),
            ("<html><body class='>'>|text", true),
            ("<HTML>|<p>no head", true),
            ("<br />\n<b>Warning</b>: x\n<!doctype html><html><HEAD>|", true),
            ("<!-- <head> --><html><head>|", true),
            ("<html>|<script>var a = '<body>'</script>", true),
            ("a < b <html><head>|", true),
            ("<div>a fragment</div>", false),
            ("<header>no head</header>", false),
            ("<!-- <html><head> -->", false),
            ("<script>'<html><head>'</script><p>", false),
            ("<template><html><body></template>", false),
            ("<title><body></title>", false),
            ("<html", false),
            ("<!-- <html><head>", false),
            ("{\"a\": 1}", false),
            ("", false),
            ("<", false),
        ] {
            let text = page.replacen('|', "", 1);
            let position = expected.then(|| page.find('|').expect("a mark"));
            assert_eq!(self::position(text.as_bytes()), position, "{page}");
        }
    }

    #[test]
    fn policies_give_a_nonce_or_block_the_script() {
        let plain = "<script src=\"/_samovar/dev.js?v=3\"></script>";
        let nonce = "<script src=\"/_samovar/dev.js?v=3\" nonce=\"a+b==\"></script>";
        for (policies, expected) in [
            (&[][..], Some(plain)),
            (&["default-src 'self'"], Some(plain)),
            (&["img-src *"], Some(plain)),
            (&["script-src 'self'; connect-src 'self'"], Some(plain)),
            (&["Script-Src 'nonce-a+b==' 'strict-dynamic'"], Some(nonce)),
            (&["default-src 'self'; script-src 'nonce-a+b=='"], Some(nonce)),
            (&["default-src 'self'", "script-src 'nonce-a+b=='"], Some(nonce)),
            (&["script-src 'self' 'strict-dynamic'"], None),
            (&["script-src 'none'"], None),
            (&["script-src https://cdn.example"], None),
            (&["default-src 'none'; script-src 'self'"], None),
            (&["connect-src https://api.example"], None),
            (&["default-src 'self', script-src 'none'"], None),
            (&["script-src 'nonce-\"><b>'"], None),
        ] {
            let mut headers = HeaderMap::new();
            for policy in policies {
                headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
            }
            assert_eq!(tag(3, &headers).as_deref(), expected, "{policies:?}");
        }
    }

    #[test]
    fn only_uncompressed_html_is_a_page() {
        for (kind, coding, expected) in [
            ("text/html", None, true),
            ("Text/HTML; charset=utf-8", None, true),
            ("text/html", Some("gzip"), false),
            ("application/json", None, false),
            ("text/plain", None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            coding.map(|coding| headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding)));
            assert_eq!(is_page(&headers), expected, "{kind} {coding:?}");
        }
    }
}
