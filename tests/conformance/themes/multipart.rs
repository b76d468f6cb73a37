//! Multipart forms and uploads, well-formed and not.

use crate::case::{Case, Theme};
use samovar_testkit::http::Request;
use samovar_testkit::{BOUNDARY, Multipart};

const DUMP: &str = "/dump.php?g=1";

/// Part headers as sent by clients and attackers; the content is `content`.
const PARTS: &[(&str, &str)] = &[
    ("field", "Content-Disposition: form-data; name=\"a\""),
    ("field with type", "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain"),
    (
        "field with transfer encoding",
        "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64",
    ),
    ("unquoted name", "Content-Disposition: form-data; name=a"),
    ("single-quoted name", "Content-Disposition: form-data; name='a'"),
    ("no name", "Content-Disposition: form-data"),
    ("empty name", "Content-Disposition: form-data; name=\"\""),
    ("no disposition", "Content-Type: text/plain"),
    ("no header at all", ""),
    ("attachment", "Content-Disposition: attachment; name=\"a\""),
    ("disposition in capitals", "CONTENT-DISPOSITION: FORM-DATA; NAME=\"a\""),
    ("spaces around", "Content-Disposition :  form-data ;  name = \"a\" "),
    ("no space", "Content-Disposition:form-data;name=\"a\""),
    ("folded header", "Content-Disposition: form-data;\r\n name=\"a\""),
    ("name twice", "Content-Disposition: form-data; name=\"a\"; name=\"b\""),
    ("name with escaped quote", "Content-Disposition: form-data; name=\"a\\\"b\""),
    ("name not closed", "Content-Disposition: form-data; name=\"a"),
    ("name with semicolon", "Content-Disposition: form-data; name=\"a;b\""),
    ("name with dot and space", "Content-Disposition: form-data; name=\"a.b c\""),
    ("nested name", "Content-Disposition: form-data; name=\"a[b][]\""),
    ("open bracket in name", "Content-Disposition: form-data; name=\"a[b\""),
    ("utf-8 name", "Content-Disposition: form-data; name=\"ä\""),
    ("name in percents", "Content-Disposition: form-data; name=\"a%5B%5D\""),
    (
        "file",
        "Content-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\
         Content-Type: text/plain",
    ),
    ("file without type", "Content-Disposition: form-data; name=\"f\"; filename=\"n.txt\""),
    (
        "file with type parameters",
        "Content-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\
         Content-Type: text/plain; charset=utf-8; x=\"y\"",
    ),
    (
        "file with odd type",
        "Content-Disposition: form-data; name=\"f\"; filename=\"n\"\r\nContent-Type: <b>&",
    ),
    ("file without name", "Content-Disposition: form-data; filename=\"n.txt\""),
    ("file, filename first", "Content-Disposition: form-data; filename=\"n.txt\"; name=\"f\""),
    ("file, unquoted", "Content-Disposition: form-data; name=f; filename=n.txt"),
    (
        "file, filename unquoted with space",
        "Content-Disposition: form-data; name=\"f\"; filename=a b.txt",
    ),
    ("file, single quotes", "Content-Disposition: form-data; name='f'; filename='n.txt'"),
    ("file, escaped quotes", "Content-Disposition: form-data; name=\"f\"; filename=\"a\\\"b.txt\""),
    (
        "file, backslashes",
        "Content-Disposition: form-data; name=\"f\"; filename=\"C:\\\\dir\\\\n.txt\"",
    ),
    (
        "file, single backslashes",
        "Content-Disposition: form-data; name=\"f\"; filename=\"C:\\dir\\n.txt\"",
    ),
    ("file, path", "Content-Disposition: form-data; name=\"f\"; filename=\"dir/sub/n.txt\""),
    ("file, path up", "Content-Disposition: form-data; name=\"f\"; filename=\"../../etc/passwd\""),
    ("file, path ends with slash", "Content-Disposition: form-data; name=\"f\"; filename=\"dir/\""),
    ("file, utf-8", "Content-Disposition: form-data; name=\"f\"; filename=\"ü ñ.txt\""),
    ("file, percents", "Content-Disposition: form-data; name=\"f\"; filename=\"a%22b%00.txt\""),
    ("file, filename*", "Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''%C3%A4.txt"),
    (
        "file, both filenames",
        "Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"; filename*=UTF-8''b.txt",
    ),
    ("file, empty filename", "Content-Disposition: form-data; name=\"f\"; filename=\"\""),
    ("file, semicolon", "Content-Disposition: form-data; name=\"f\"; filename=\"a;b.txt\""),
    ("file, markup", "Content-Disposition: form-data; name=\"f\"; filename=\"<script>&'.txt\""),
    ("file, hidden", "Content-Disposition: form-data; name=\"f\"; filename=\".htaccess\""),
    ("file, long filename", LONG_FILENAME),
    ("file in an array", "Content-Disposition: form-data; name=\"f[]\"; filename=\"n.txt\""),
    ("file in a map", "Content-Disposition: form-data; name=\"f[a][b]\"; filename=\"n.txt\""),
    ("file in an open array", "Content-Disposition: form-data; name=\"f[a\"; filename=\"n.txt\""),
    (
        "file behind a closed bracket",
        "Content-Disposition: form-data; name=\"f]a\"; filename=\"n.txt\"",
    ),
    (
        "file in a hostile array",
        "Content-Disposition: form-data; name=\"f[name]\"; filename=\"n.txt\"",
    ),
    (
        "file in too many brackets",
        "Content-Disposition: form-data; name=\"f[a]]\"; filename=\"n.txt\"",
    ),
    ("file name with dot", "Content-Disposition: form-data; name=\"f.g h\"; filename=\"n.txt\""),
    (
        "file as MAX_FILE_SIZE",
        "Content-Disposition: form-data; name=\"MAX_FILE_SIZE\"; filename=\"n.txt\"",
    ),
];

const LONG_FILENAME: &str = concat!(
    "Content-Disposition: form-data; name=\"f\"; filename=\"",
    "a-rather-long-name-a-rather-long-name-a-rather-long-name-a-rather-long-name-",
    "a-rather-long-name-a-rather-long-name-a-rather-long-name-a-rather-long-name-",
    "a-rather-long-name-a-rather-long-name-a-rather-long-name-a-rather-long-name-",
    "a-rather-long-name-a-rather-long-name.txt\""
);

fn form() -> Multipart {
    Multipart::new()
}

fn post(name: &str, form: &Multipart) -> Case {
    Case::one(name, form.post(DUMP))
}

/// An unchanged body with this Content-Type.
fn typed(name: &str, kind: &str, body: impl Into<Vec<u8>>) -> Case {
    Case::one(name, Request::post(DUMP, kind, body))
}

pub(crate) fn theme() -> Theme {
    let parts = PARTS.iter().map(|(name, headers)| {
        post(&format!("part: {name}"), &form().part(headers, "content").field("last", "x"))
    });
    let mut cases: Vec<_> = parts.collect();
    cases.extend(fields());
    cases.extend(boundaries());
    cases.extend(broken());
    cases.extend(limits());
    cases.extend(uploads());
    Theme { name: "multipart", cases }
}

fn fields() -> Vec<Case> {
    vec![
        post("fields", &form().field("a", "1").field("b", "2")),
        post("field twice", &form().field("a", "1").field("a", "2")),
        post("fields in a list", &form().field("a[]", "1").field("a[]", "2").field("a[x][]", "3")),
        post("field and file of one name", &form().field("a", "1").file("a", "n", "2")),
        post("empty value", &form().field("a", "")),
        post("value with line ends", &form().field("a", "1\r\n2\n3\r\n")),
        post("value that looks like a delimiter", &form().field("a", format!("--{BOUNDARY}x"))),
        post("value with two hyphens", &form().field("a", "\r\n--\r\n--x")),
        post("value of bytes", &form().field("a", [0u8, 1, 255, 254, 13, 10])),
        post("no part", &form()),
        post("long value", &form().field("a", "x".repeat(100_000))),
        post("many fields", &(0..150).fold(form(), |f, i| f.field(&format!("v{i}"), "x"))),
        post("over max_input_vars", &(0..210).fold(form(), |f, i| f.field(&format!("v{i}"), "x"))),
        Case::one(
            "PUT",
            Request::new("PUT", DUMP)
                .header("Content-Type", &format!("multipart/form-data; boundary={BOUNDARY}"))
                .body(form().field("a", "1").bytes()),
        ),
    ]
}

fn boundaries() -> Vec<Case> {
    let body = || form().boundary("B").field("a", "1").bytes();
    vec![
        typed("boundary: quoted", "multipart/form-data; boundary=\"B\"", body()),
        typed("boundary: quote not closed", "multipart/form-data; boundary=\"B", body()),
        typed("boundary: missing", "multipart/form-data", body()),
        typed("boundary: empty", "multipart/form-data; boundary=", body()),
        typed("boundary: no equals sign", "multipart/form-data; boundary", body()),
        typed("boundary: another one", "multipart/form-data; boundary=C", body()),
        typed("boundary: in capitals", "Multipart/Form-Data; BOUNDARY=B", body()),
        typed("boundary: charset behind", "multipart/form-data; boundary=B; charset=utf-8", body()),
        typed("boundary: charset before", "multipart/form-data; charset=utf-8; boundary=B", body()),
        typed("boundary: comma behind", "multipart/form-data; boundary=B, x", body()),
        typed("boundary: no space", "multipart/form-data;boundary=B", body()),
        typed("boundary: spaces", "multipart/form-data; boundary = B", body()),
        typed("boundary: multipart/mixed", "multipart/mixed; boundary=B", body()),
        typed(
            "boundary: specials",
            "multipart/form-data; boundary=a'()+_,-./:=?",
            form().boundary("a'()+_").field("a", "1").bytes(),
        ),
        post("boundary: of 70 characters", &form().boundary(&"b".repeat(70)).field("a", "1")),
        post("boundary: very long", &form().boundary(&"b".repeat(6000)).field("a", "1")),
        post("boundary: of hyphens", &form().boundary("------").field("a", "1")),
    ]
}

fn broken() -> Vec<Case> {
    let kind = "multipart/form-data; boundary=B";
    let text = |name: &str, body: &str| typed(&format!("broken: {name}"), kind, body);
    let part = "Content-Disposition: form-data; name=\"a\"";
    vec![
        text("nothing", ""),
        text("no delimiter", "nothing of the sort"),
        text(
            "preamble and epilogue",
            &format!("preamble\r\n--B\r\n{part}\r\n\r\n1\r\n--B--\r\nepilogue"),
        ),
        text("line feeds alone", &format!("--B\n{part}\n\n1\n--B--\n")),
        text("no line end behind the end", &format!("--B\r\n{part}\r\n\r\n1\r\n--B--")),
        text("no end", &format!("--B\r\n{part}\r\n\r\n1\r\n")),
        text("cut in the value", &format!("--B\r\n{part}\r\n\r\nval")),
        text("cut in a header", "--B\r\nContent-Disposition: form-da"),
        text("cut behind the headers", &format!("--B\r\n{part}\r\n\r\n")),
        text("cut behind the first delimiter", "--B\r\n"),
        text(
            "cut in a file",
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\nhalf",
        ),
        text("end first", &format!("--B--\r\n--B\r\n{part}\r\n\r\n1\r\n--B--\r\n")),
        text("spaces behind the delimiter", &format!("--B  \r\n{part}\r\n\r\n1\r\n--B--\r\n")),
        text("no empty line", &format!("--B\r\n{part}\r\n1\r\n--B--\r\n")),
        text("header without colon", &format!("--B\r\nnonsense\r\n{part}\r\n\r\n1\r\n--B--\r\n")),
        text("empty part", &format!("--B\r\n\r\n\r\n--B\r\n{part}\r\n\r\n1\r\n--B--\r\n")),
        text("delimiter twice", &format!("--B\r\n--B\r\n{part}\r\n\r\n1\r\n--B--\r\n")),
        text(
            "nested multipart",
            &format!(
                "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\
                 Content-Type: multipart/mixed; boundary=C\r\n\r\n\
                 --C\r\nContent-Disposition: file; filename=\"x\"\r\n\r\n1\r\n--C--\r\n\
                 --B\r\n{part}\r\n\r\n1\r\n--B--\r\n"
            ),
        ),
        text(
            "long header",
            &format!("--B\r\n{part}\r\nX-Long: {}\r\n\r\n1\r\n--B--\r\n", "x".repeat(20_000)),
        ),
        text(
            "many headers",
            &format!("--B\r\n{part}\r\n{}\r\n1\r\n--B--\r\n", "X-A: 1\r\n".repeat(200)),
        ),
        text(
            "nul in a header",
            "--B\r\nContent-Disposition: form-data; name=\"a\0b\"\r\n\r\n1\r\n--B--\r\n",
        ),
    ]
}

fn limits() -> Vec<Case> {
    let files = |count: usize| (0..count).fold(form(), |f, i| f.file(&format!("f{i}"), "n", "x"));
    let limited =
        |max: &str, content: &str| form().field("MAX_FILE_SIZE", max).file("f", "n", content);
    vec![
        post("as many files as max_file_uploads", &files(5)),
        post("files over max_file_uploads", &files(7)),
        post(
            "empty files do not count",
            &(0..6).fold(form(), |f, i| f.file(&format!("e{i}"), "", "")).file("f", "n", "x"),
        ),
        post("file at upload_max_filesize", &form().file("f", "n", "x".repeat(131_072))),
        post(
            "file over upload_max_filesize",
            &form().file("f", "n", "x".repeat(131_073)).file("g", "m", "small"),
        ),
        post("body over post_max_size", &form().file("f", "n", "x".repeat(300_000))),
        post(
            "files together over post_max_size",
            &form().file("f", "n", "x".repeat(130_000)).file("g", "m", "x".repeat(130_000)).file(
                "h",
                "l",
                "x".repeat(10_000),
            ),
        ),
        post("MAX_FILE_SIZE kept", &limited("100", "small")),
        post("MAX_FILE_SIZE at the limit", &limited("5", "12345")),
        post("MAX_FILE_SIZE exceeded", &limited("4", "12345")),
        post("MAX_FILE_SIZE of rubbish", &limited("x", "12345")),
        post("MAX_FILE_SIZE zero", &limited("0", "12345")),
        post("MAX_FILE_SIZE negative", &limited("-1", "12345")),
        post(
            "MAX_FILE_SIZE behind the file",
            &form().file("f", "n", "12345").field("MAX_FILE_SIZE", "2"),
        ),
    ]
}

fn uploads() -> Vec<Case> {
    let one = || form().file("f", "n.txt", "uploaded text");
    vec![
        post("file", &one()),
        post("empty file", &form().file("f", "n.txt", "")),
        post("file of bytes", &form().file("f", "n.bin", (0..=255u8).collect::<Vec<_>>())),
        post("two files", &one().file("g", "m.txt", "other")),
        post("files of one name", &one().file("f", "m.txt", "other")),
        post(
            "files in a list",
            &form().file("f[]", "a", "1").file("f[]", "b", "22").file("f[k]", "c", "333"),
        ),
        post(
            "files in nested arrays",
            &form()
                .file("f[x][]", "a", "1")
                .file("f[x][]", "b", "22")
                .file("f[y][z]", "d/c", "333"),
        ),
        post(
            "files in a list, one empty",
            &form().file("f[]", "a", "1").file("f[]", "", "").file("f[]", "c", "333"),
        ),
        post(
            "files and fields mixed",
            &form().field("a", "1").file("f", "n", "x").field("b[]", "2").file("g", "m", "y"),
        ),
        post(
            "content with delimiters inside",
            &form().file("f", "n", format!("\r\n-{BOUNDARY}\r\n--{BOUNDARY}x\r\n")),
        ),
        post("content ends with line ends", &form().file("f", "n", "x\r\n\r\n")),
        post("without end", &one().without_end()),
        Case::one("php://input is empty", one().post("/input.php?do=twice")),
        Case::one("move_uploaded_file", one().post("/input.php?do=move")),
        Case::one("move_uploaded_file of other files", one().post("/input.php?do=move-other")),
        Case::one("copied", one().post("/input.php?do=kept")),
        Case::steps(
            "deleted at the request's end",
            [one().post("/input.php?do=deleted"), Request::get("/input.php?do=deleted")],
        ),
        Case::one(
            "limit by .user.ini",
            form().file("f", "n", "x".repeat(2000)).post("/quiet/script.php"),
        )
        .script_only(),
        Case::one("unread by setting", one().post("/raw/script.php")).script_only(),
        Case::steps(
            "upload progress",
            [
                Request::get("/session.php?do=count"),
                form()
                    .field("PHP_SESSION_UPLOAD_PROGRESS", "id")
                    .file("f", "n", "x")
                    .post("/session.php?do=count"),
                Request::get("/session.php?do=count"),
            ],
        ),
    ]
}
