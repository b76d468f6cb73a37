//! Files that are not PHP, and files that must never be served.

use crate::case::{Case, Is, Theme};
use samovar_testkit::http::Request;

const PATHS: &[(&str, &str)] = &[
    ("css", "/statics/style.css"),
    ("html", "/statics/page.html"),
    ("htm", "/statics/page.htm"),
    ("txt", "/statics/notes.txt"),
    ("json", "/statics/data.json"),
    ("xml", "/statics/data.xml"),
    ("svg", "/statics/picture.svg"),
    ("png", "/statics/picture.png"),
    ("jpg", "/statics/picture.jpg"),
    ("ico", "/statics/icon.ico"),
    ("woff2", "/statics/font.woff2"),
    ("pdf", "/statics/doc.pdf"),
    ("zip", "/statics/archive.zip"),
    ("mp4", "/statics/film.mp4"),
    ("upper-case extension", "/statics/UPPER.TXT"),
    ("no extension", "/statics/none"),
    ("empty", "/statics/empty.txt"),
    ("big", "/statics/big.bin"),
    ("query", "/statics/notes.txt?a=1"),
    ("space", "/statics/with%20space.txt"),
    ("utf-8", "/statics/%C3%BCn%C3%AF.txt"),
    ("plus and ampersand", "/statics/plus+and&.txt"),
    ("percent", "/statics/percent%2541.txt"),
    ("many dots", "/statics/a.b.c.txt"),
    ("two slashes", "//statics//notes.txt"),
    ("two dots", "/statics/../statics/notes.txt"),
    ("encoded letters", "/statics/n%6Ftes%2Etxt"),
    ("missing", "/statics/none.txt"),
    ("wrong case", "/statics/NOTES.TXT"),
    ("a page for a folder", "/html/"),
    ("a page by name", "/html/index.html"),
    ("folder of files", "/statics/"),
    ("well-known", "/.well-known/token.txt"),
];

const HEADERS: &[(&str, &str, &str)] = &[
    ("range: first", "Range", "bytes=0-0"),
    ("range: some", "Range", "bytes=5-9"),
    ("range: to the end", "Range", "bytes=30-"),
    ("range: beyond the end", "Range", "bytes=30-99"),
    ("range: last", "Range", "bytes=-5"),
    ("range: last, more than there is", "Range", "bytes=-500"),
    ("range: all", "Range", "bytes=0-"),
    ("range: unsatisfiable", "Range", "bytes=100-"),
    ("range: last nothing", "Range", "bytes=-0"),
    ("range: another unit", "Range", "lines=0-1"),
    ("range: empty", "Range", "bytes="),
    ("If-Modified-Since: same", "If-Modified-Since", "Wed, 01 Jan 2020 00:00:00 GMT"),
    ("If-Modified-Since: before", "If-Modified-Since", "Tue, 31 Dec 2019 00:00:00 GMT"),
    ("If-Modified-Since: rubbish", "If-Modified-Since", "yesterday"),
    ("If-Unmodified-Since: same", "If-Unmodified-Since", "Wed, 01 Jan 2020 00:00:00 GMT"),
    ("If-Unmodified-Since: before", "If-Unmodified-Since", "Tue, 31 Dec 2019 00:00:00 GMT"),
    ("If-None-Match: another", "If-None-Match", "\"abc\""),
    ("If-None-Match: any", "If-None-Match", "*"),
    ("If-Match: any", "If-Match", "*"),
    ("If-Match: another", "If-Match", "\"abc\""),
    ("Accept-Encoding", "Accept-Encoding", "gzip"),
];

pub(crate) fn theme() -> Theme {
    let notes = "/statics/notes.txt";
    let mut cases: Vec<_> = PATHS.iter().map(|(name, path)| Case::get(*name, path)).collect();
    cases.extend(
        HEADERS.iter().map(|(name, header, value)| {
            Case::one(*name, Request::get(notes).header(header, value))
        }),
    );
    for (name, method, path) in [
        ("HEAD", "HEAD", notes),
        ("HEAD of a big one", "HEAD", "/statics/big.bin"),
        ("HEAD of a missing one", "HEAD", "/statics/none.txt"),
        ("HEAD of a folder", "HEAD", "/html/"),
        ("POST", "POST", notes),
        ("PUT", "PUT", notes),
        ("DELETE", "DELETE", notes),
        ("OPTIONS", "OPTIONS", notes),
    ] {
        cases.push(Case::one(name, Request::new(method, path)));
    }
    let ranged = |method: &str| Request::new(method, notes).header("Range", "bytes=2-3");
    cases.extend([
        Case::one("HEAD with a range", ranged("HEAD"))
            .differs("ranges are for GET alone (RFC 9110)", Is::Own(200, &["content-length: 37"])),
        Case::get("js", "/statics/script.js").differs(
            "RFC 9239 made text/javascript the one type",
            Is::Replaced(&[("application/javascript", "text/javascript")]),
        ),
        Case::one(
            "If-Range: same",
            ranged("GET").header("If-Range", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ),
        Case::one(
            "If-Range: another",
            ranged("GET").header("If-Range", "Tue, 31 Dec 2019 00:00:00 GMT"),
        ),
        Case::one("If-Range: another tag", ranged("GET").header("If-Range", "\"abc\"")),
    ]);
    cases.extend(["bytes=0-1,4-5", "bytes= 0-1 , 4-5", "bytes=0-1,4-5,100-200"].map(|ranges| {
        let parts =
            &["content-type: multipart/byteranges", "Content-Range: bytes 4-5/37", "\n45\r\n"];
        Case::one(ranges, Request::get(notes).header("Range", ranges))
            .differs("the parts' delimiter is random", Is::Own(206, parts))
    }));
    for (name, range, status) in [
        ("range: backwards", "bytes=9-5", 200),
        ("range: rubbish", "bytes=a-b", 200),
        ("range: huge numbers", "bytes=0-99999999999999999999", 206),
    ] {
        let request = Request::get(notes).header("Range", range);
        let why = "a Range header that says nothing is ignored (RFC 9110), \
            one too far ends with the file";
        cases.push(Case::one(name, request).differs(why, Is::Own(status, &[])));
    }
    cases.extend(hidden());
    Theme { name: "files", cases: cases.into_iter().map(Case::script_only).collect() }
}

/// nginx serves these by default. Samovar never serves them.
fn hidden() -> Vec<Case> {
    let controller = &["x-answered-by: front controller"];
    [
        ("hidden file", "/.env"),
        ("hidden folder", "/.git/config"),
        ("hidden in a folder", "/statics/.hidden"),
        ("hidden, encoded", "/%2Eenv"),
        ("settings file", "/quiet/.user.ini"),
        ("source: inc", "/code/lib.inc"),
        ("source: phtml", "/code/page.phtml"),
        ("source: tilde", "/code/old.php~"),
        ("source: bak", "/code/old.php.bak"),
        ("source: phps", "/code/page.phps"),
        ("source: upper case", "/code/upper.PHP"),
        ("source: txt", "/statics/script.php.txt"),
    ]
    .map(|(name, path)| {
        let why = "what is hidden or PHP source is treated as absent: the front controller answers";
        Case::get(name, path).differs(why, Is::Own(200, controller))
    })
    .into()
}
