//! Tests of redaction.

use super::found::NAMES_MAX;
use super::*;
use crate::runtime::recordings::recorded::RECORDED_BODY_BYTES_MAX;

fn check(kind: &str, body: &str, expected: &str, names: &[&str]) {
    let secret = SecretNames::of(&["pin".to_owned()]);
    let mut found = Found { names: &secret, redacted: Vec::new() };
    let redacted = found.body(kind.as_bytes(), body.as_bytes());
    assert_eq!(String::from_utf8_lossy(&redacted), expected, "{body}");
    assert_eq!(found.redacted, names, "{body}");
}

#[test]
fn secrets_of_bodies_are_replaced() {
    let form = "application/x-www-form-urlencoded";
    check(form, "a=1&password=x%26y&b", "a=1&password=(redacted)&b", &["field password"]);
    check(form, "a=1&b=2", "a=1&b=2", &[]);
    check(
        form,
        "user%5Bpassw%6frd%5d=x",
        "user%5Bpassw%6frd%5d=(redacted)",
        &["field user%5Bpassw%6frd%5d"],
    );
    check(form, "%=1&%zz=2&%7", "%=1&%zz=2&%7", &[]);
    let json = "application/json; charset=utf-8";
    check(
        json,
        r#"{"n":[{"PIN":7}],"user":{"token":[1,2]}}"#,
        r#"{"n":[{"PIN":"(redacted)"}],"user":{"token":"(redacted)"}}"#,
        &["member PIN", "member token"],
    );
    check(json, r#"{ "a": 1 }"#, r#"{ "a": 1 }"#, &[]);
    check(json, "{broken", "{broken", &[]);
    check("text/plain", "I lost my password", "I lost my password", &[]);
    let all = &["body (all of it)"];
    for (kind, body) in [
        ("text/plain", "password=x"),
        ("", r#"{"token": "x"}"#),
        ("application/xml", "<Login><Password>x</Password></Login>"),
        ("application/json", r#"{"token": "x"} rest"#),
        ("multipart/form-data; Boundary = B", "--B\r\n\r\npassword=x"),
    ] {
        check(kind, body, "(redacted)", all);
    }
}

#[test]
fn values_with_a_secret_in_them_are_replaced() {
    let form = "application/x-www-form-urlencoded";
    check(
        form,
        "payload=%7B%22token%22%3A1%7D&a=%7B%22b%22%3A1%7D&api.key=1&a+pin=2",
        "payload=(redacted)&a=%7B%22b%22%3A1%7D&api.key=(redacted)&a+pin=(redacted)",
        &["field payload", "field api.key", "field a+pin"],
    );
    check(
        "application/json",
        r#"{"a":["https://u:p@h/"],"b":"{\"token\":1}","c":"d"}"#,
        r#"{"a":["(redacted)"],"b":"(redacted)","c":"d"}"#,
        &["member ", "member b"],
    );
}

#[test]
fn values_after_a_secret_name_are_replaced() {
    let json = "application/json";
    for (kind, body, expected, name) in [
        (
            json,
            r#"[{"name":"user","value":"kim"},{"name":"password","value":"x"}]"#,
            r#"[{"name":"user","value":"kim"},{"name":"password","value":"(redacted)"}]"#,
            "member value",
        ),
        (
            json,
            r#"{"key":"user[pin]","value":{"text":"x"}}"#,
            r#"{"key":"user[pin]","value":"(redacted)"}"#,
            "member value",
        ),
        (json, r#"[["a","b"],["token","x"]]"#, r#"[["a","b"],["token","(redacted)"]]"#, "member "),
        (json, r#"["user","kim","pin",7]"#, r#"["user","kim","pin","(redacted)"]"#, "member "),
        (json, r#"{"a":"[{\"name\":\"pin\",\"value\":1}]"}"#, r#"{"a":"(redacted)"}"#, "member a"),
        (
            "application/x-www-form-urlencoded",
            "d%5B0%5D%5Bname%5D=pass%77ord&d%5B0%5D%5Bvalue%5D=x&b=1",
            "d%5B0%5D%5Bname%5D=pass%77ord&d%5B0%5D%5Bvalue%5D=(redacted)&b=1",
            "field d%5B0%5D%5Bvalue%5D",
        ),
        ("application/xml", "<p name=\"password\">x</p>", "(redacted)", "body (all of it)"),
        ("text/xml", "<key>password</key><s>x</s>", "(redacted)", "body (all of it)"),
        ("text/plain", "a=%2525253Ftoken%2525253D1", "(redacted)", "body (all of it)"),
    ] {
        check(kind, body, expected, &[name]);
    }
    check(json, r#"["page","password"]"#, r#"["page","password"]"#, &[]);
    let action = "action=lost_password&user=kim";
    check("application/x-www-form-urlencoded", action, action, &[]);
}

#[test]
fn body_that_would_become_too_long_is_replaced() {
    let body = "pin=&".repeat(RECORDED_BODY_BYTES_MAX / 5);
    let expected = ["field pin", "body (all of it)"];
    check("application/x-www-form-urlencoded", &body, "(redacted)", &expected);
}

#[test]
fn encoded_body_is_replaced() {
    for (kind, coding, expected) in [
        ("text/plain", "gzip", "(redacted)"),
        ("", "br", "(redacted)"),
        ("", "identity, gzip", "(redacted)"),
        ("", "identity", "anything"),
        ("", "", "anything"),
        ("application/json; charset=UTF-16le", "", "(redacted)"),
        ("application/json; Charset=\"UTF-8\"", "", "anything"),
        ("text/plain;charset=ISO-8859-1", "", "anything"),
    ] {
        let headers: [(&[u8], &[u8]); 1] = [(b"Content-Encoding", coding.as_bytes())];
        let mut encoded = Vec::new();
        let head = RequestHead { content_type: Some(kind.as_bytes()), ..RequestHead::default() };
        encode_with(&head, headers, [], &mut encoded).expect("it fits");
        let body = b"anything".to_vec();
        let input = RecordedInput { head: encoded, body, ..RecordedInput::default() };
        let redacted = redact(input, Some(&SecretNames::of(&[]))).expect("a valid head");
        assert_eq!(String::from_utf8_lossy(&redacted.body), expected, "{kind} {coding}");
    }
}

/// A visitor may send any of them.
#[test]
fn work_for_a_body_is_a_multiple_of_its_length() {
    /// Passes over a body: as a whole, and over its names and values.
    const PASSES_MAX: usize = 40;
    let boundary = "multipart/form-data; boundary=B";
    for kind in ["application/x-www-form-urlencoded", "application/json", boundary, "text/plain"] {
        for piece in
            ["a=", "a=&", "&", "sid=&", "[", "\"a\",", "--B", "--B\r\n\r\n", "%2525=", "name=pin&"]
        {
            let text = piece.repeat(RECORDED_BODY_BYTES_MAX / piece.len());
            for body in [text.clone(), format!("[{text}0]"), format!("{{\"a\":\"{text}\"}}")] {
                let secret = SecretNames::of(&[]);
                let mut found = Found { names: &secret, redacted: Vec::new() };
                found.body(kind.as_bytes(), body.as_bytes());
                assert!(found.redacted.len() <= NAMES_MAX);
                let passes = secret.work() / body.len();
                assert!(passes <= PASSES_MAX, "{kind} {piece}: {passes} passes");
            }
        }
    }
}

#[test]
fn secret_parts_of_multipart_bodies_are_replaced() {
    let kind = "multipart/form-data; boundary=\"B\"";
    let part = |name: &str, text: &str| {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
    };
    let body = part("a", "1") + &part("my_password", "secret") + &part("b", "2") + "--B--\r\n";
    let expected =
        part("a", "1") + &part("my_password", "(redacted)") + &part("b", "2") + "--B--\r\n";
    check(kind, &body, &expected, &["field my_password"]);
    for (head, name) in [
        ("form-data;name=\"pin\"", "pin"),
        ("form-data; NAME='pin'", "\\'pin\\'"),
        ("form-data; name = pin", "(without a name)"),
        ("form-data; filename=\"token.txt\"; name=f", "f"),
    ] {
        let part = |text: &str| format!("--B\r\nContent-Disposition: {head}\r\n\r\n{text}\r\n");
        check(kind, &part("t0ps"), &part("(redacted)"), &[&format!("field {name}")]);
    }
    let json = |text: &str| part("operations", text);
    check(kind, &json(r#"{"password":"x"}"#), &json("(redacted)"), &["field operations"]);
    check(kind, "--B", "--B", &[]);
    check("multipart/form-data", "--B", "--B", &[]);
}

#[test]
fn secrets_of_a_head_are_replaced() {
    let head = RequestHead {
        method: b"POST",
        target: b"/a?token=1&b=2",
        query: b"token=1&b=2",
        cookie: Some(b"sid=1; lang=de"),
        authorization: Some(b"Basic eDp5"),
        content_type: Some(b"application/x-www-form-urlencoded"),
        content_length: Some(5),
        ..RequestHead::default()
    };
    let headers: [(&[u8], &[u8]); 9] = [
        (b"host", b"a.example"),
        (b"cookie", b"sid=1; lang=de"),
        (b"x-api-key", b"k"),
        (b"referer", b"https://a.example/?password=p"),
        (b"content-length", b"5"),
        (b"proxy-authorization", b"Basic x"),
        (b"x-auth-user", b"kim7"),
        (b"x-original-url", b"/a?page=visible&token=1"),
        (b"x-callback", b"https://kim:pw1@a.example/"),
    ];
    let mut encoded = Vec::new();
    encode_with(&head, headers, [], &mut encoded).expect("it fits");
    let input =
        RecordedInput { head: encoded, body: b"pin=7".to_vec(), ..RecordedInput::default() };
    let kept = redact(input.clone(), None).expect("a valid head");
    assert_eq!((&kept.head, kept.redacted.len()), (&input.head, 0));
    assert_eq!((&*kept.target, &*kept.host), ("/a?token=1&b=2", "a.example"));
    let redacted = redact(input, Some(&SecretNames::of(&["pin".to_owned()])));
    let redacted = redacted.expect("a valid head");
    let (head, headers) = decode(&redacted.head).expect("a valid head");
    assert_eq!(redacted.target, "/a?token=(redacted)&b=2");
    assert_eq!(head.query, b"token=(redacted)&b=2");
    assert_eq!(head.cookie, Some(&b"sid=(redacted); lang=(redacted)"[..]));
    assert_eq!(head.authorization, Some(&b"(redacted)"[..]));
    assert_eq!((redacted.body.len(), head.content_length), (14, Some(14)));
    let text = format!("{headers:?}{:?}", String::from_utf8_lossy(&redacted.head));
    for secret in ["sid=1", "=de", "eDp5", "password=p", "token=1", "Basic", "kim7", "pw1"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(headers[2].1, b"(redacted)");
    assert_eq!(headers[4].1, b"14");
    assert_eq!(headers[7].1, b"/a?page=visible&token=(redacted)");
}
