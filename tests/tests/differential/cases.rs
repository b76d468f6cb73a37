//! The cases of the differential suite, theme by theme.

use samovar_testkit::http::Request;

/// One request of a case.
pub(crate) enum Step {
    /// Built; cookies of earlier answers are added.
    Built(Request),
    /// Sent as it is.
    Raw(Vec<u8>),
}

/// What is expected beside equality.
#[derive(Clone, Copy)]
pub(crate) enum Expect {
    Equal,
    /// A decision: Samovar's status, a part of its body, the reason.
    Instead {
        status: u16,
        body: &'static str,
        why: &'static str,
    },
}

/// A named sequence of requests.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    instead: Option<Expect>,
    instead_resident: Option<Expect>,
    resident: bool,
}

impl Step {
    pub(crate) fn bytes(&self, cookies: &str) -> Vec<u8> {
        match self {
            Step::Built(request) if cookies.is_empty() => request.bytes(),
            Step::Built(request) => request.clone().header("Cookie", cookies).bytes(),
            Step::Raw(bytes) => bytes.clone(),
        }
    }

    pub(crate) fn is_head(&self) -> bool {
        matches!(self, Step::Built(request) if request.method() == "HEAD")
    }
}

impl Case {
    fn new(name: impl Into<String>, steps: impl IntoIterator<Item = Request>) -> Case {
        Case {
            name: name.into(),
            steps: steps
                .into_iter()
                .map(|r| Step::Built(r.header("Connection", "close")))
                .collect(),
            instead: None,
            instead_resident: None,
            resident: true,
        }
    }

    fn raw(name: &str, bytes: &[u8]) -> Case {
        Case { steps: vec![Step::Raw(bytes.to_vec())], ..Case::new(name, []) }
    }

    /// A documented difference, in both models.
    fn instead(mut self, status: u16, body: &'static str, why: &'static str) -> Case {
        self.instead = Some(Expect::Instead { status, body, why });
        self.instead_resident = self.instead;
        self
    }

    /// A documented difference of the resident model.
    fn resident_instead(mut self, status: u16, body: &'static str, why: &'static str) -> Case {
        self.instead_resident = Some(Expect::Instead { status, body, why });
        self
    }

    /// Not for the resident model: it is about paths, files or the script itself.
    fn script_only(mut self) -> Case {
        self.resident = false;
        self
    }

    pub(crate) fn runs_resident(&self) -> bool {
        self.resident
    }

    pub(crate) fn expect(&self, is_resident: bool) -> Expect {
        let expect = if is_resident { self.instead_resident } else { self.instead };
        expect.unwrap_or(Expect::Equal)
    }

    pub(crate) fn is_head(&self) -> bool {
        self.steps.iter().any(Step::is_head)
    }

    /// Takes out what differs from run to run.
    pub(crate) fn normalise(&self, body: &str) -> String {
        let body = without_temporary_folder(body, "samovar-oracle-");
        let body = without_temporary_folder(&body, "samovar-test-");
        // The last piece of a multipart boundary is the server's own.
        let lines = body
            .lines()
            .map(|l| if l.starts_with("--") && l.len() > 12 { "--boundary" } else { l });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Each side has a folder of its own below the temporary one.
fn without_temporary_folder(body: &str, prefix: &str) -> String {
    match body.split_once(prefix) {
        None => body.to_owned(),
        Some((before, after)) => {
            let rest = after.split_once('/').map_or("", |(_, rest)| rest);
            format!("{before}…/{}", without_temporary_folder(rest, prefix))
        }
    }
}

/// All themes with their cases.
pub(crate) fn themes() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("methods", methods()),
        ("query strings", queries()),
        ("forms and bodies", bodies()),
        ("multipart", multipart()),
        ("headers and cookies", headers()),
        ("paths", paths()),
        ("status and headers", acts(STATUS_AND_HEADERS)),
        ("output and end", acts(OUTPUT_AND_END)),
        ("errors", errors()),
        ("sessions", sessions()),
        ("HEAD", heads()),
        ("files", files()),
        ("folder settings", folder_settings()),
    ]
}

fn dump(query: &str) -> Request {
    Request::get(&format!("/dump.php?{query}"))
}

fn methods() -> Vec<Case> {
    ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "FOO"]
        .map(|method| Case::new(method, [Request::new(method, "/dump.php")]))
        .into()
}

fn queries() -> Vec<Case> {
    let many = (0..210).map(|i| format!("v{i}=1")).collect::<Vec<_>>().join("&");
    let deep = format!("a{}=1", "[x]".repeat(70));
    let plain = [
        "a=1",
        "a=1&b=2",
        "a=1&a=2",
        "a[]=1&a[]=2",
        "a[b][c]=1",
        "a[b]=1&a[c]=2",
        "a[1]=x&a[0]=y",
        "a[][][]=1",
        "a[b=1",
        "a]b=1",
        "a[=1",
        "[a]=1",
        "a[b]c=1",
        "a['x']=1",
        "a%5Bb%5D=1",
        "a.b=1",
        "a+b=1",
        "a%20b=1",
        "%20a=1",
        "a-b=1",
        "_=1",
        "=1",
        "a",
        "a=",
        "&&",
        "a&b&c=",
        "?a=1",
        "a=b=c",
        "a=1;b=2",
        "a=%zz",
        "a=%",
        "a=%4",
        "a=%00b",
        "%00a=1",
        "a=%C3%A4",
        "a=%FF",
        "a=+x+",
        "a=%2B",
        "GLOBALS[x]=1",
        "_SERVER[x]=1",
        "this=1",
        "1=2",
        "a[%00]=1",
        "a=%0d%0ab",
        "A=1&a=2",
    ];
    let built = [many, deep].into_iter().enumerate();
    let built = built.map(|(i, query)| Case::new(format!("long query {i}"), [dump(&query)]));
    let fragment = Case::new("a fragment", [dump("a=1#x")]).instead(
        200,
        "\"QUERY_STRING\": \"a=1\"",
        "a target has no fragment (RFC 9112 3.2): it is cut off; nginx keeps it in REQUEST_URI",
    );
    plain
        .iter()
        .map(|query| Case::new(*query, [dump(query)]))
        .chain(built)
        .chain([fragment])
        .collect()
}

fn bodies() -> Vec<Case> {
    let many = (0..210).map(|i| format!("v{i}=1")).collect::<Vec<_>>().join("&");
    let forms = ["a=1&b=2", "a[]=1&a[x]=2", "a=%00", "a=+%2B", "", "&", "a=1\r\nb=2", "ä=ö", &many];
    let mut cases: Vec<Case> = forms
        .iter()
        .enumerate()
        .map(|(i, form)| {
            Case::new(format!("form {i}"), [Request::form("/dump.php?g=1&a=get", form)])
        })
        .collect();
    let long = "x".repeat(300_000);
    let typed = [
        ("json", "application/json", "{\"a\":1}"),
        ("text", "text/plain", "a=1"),
        ("upper-case type", "APPLICATION/X-WWW-FORM-URLENCODED", "a=1"),
        ("type with charset", "application/x-www-form-urlencoded; charset=utf-8", "a=1"),
        ("type with comma", "application/x-www-form-urlencoded, x", "a=1"),
        ("unknown type", "x/y", "raw"),
        ("empty type", "", "raw"),
        ("over post_max_size", "application/x-www-form-urlencoded", &long),
        ("json over post_max_size", "application/json", &long),
        ("xml", "text/xml", "<a/>"),
    ];
    for (name, kind, body) in typed {
        cases.push(Case::new(name, [Request::post("/dump.php", kind, body)]));
    }
    for method in ["PUT", "PATCH", "DELETE", "GET", "OPTIONS"] {
        let request = Request::new(method, "/dump.php").body("a=1");
        let typed = request.clone().header("Content-Type", "application/x-www-form-urlencoded");
        cases.push(Case::new(format!("{method} with body"), [request]));
        cases.push(Case::new(format!("{method} with form"), [typed]));
    }
    cases.push(Case::new("no type", [Request::new("POST", "/dump.php").body("raw")]));
    let chunked = b"POST /dump.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
        Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\n";
    cases.push(Case::raw("chunked form", chunked));
    for act in ["input-twice", "input-parts"] {
        let target = format!("/act.php?do={act}");
        cases.push(Case::new(act, [Request::post(&target, "text/plain", "0123456789")]));
        cases.push(Case::new(format!("{act} of a form"), [Request::form(&target, "a=1&b=2")]));
    }
    cases
}

const BOUNDARY: &str = "XXbXX";

fn upload(target: &str, content_type: &str, parts: &[(&str, &str)], end: &str) -> Request {
    let mut body = Vec::new();
    for (head, content) in parts {
        body.extend_from_slice(format!("--{BOUNDARY}\r\n{head}\r\n\r\n{content}\r\n").as_bytes());
    }
    body.extend_from_slice(end.as_bytes());
    Request::post(target, content_type, body)
}

fn multipart() -> Vec<Case> {
    const FIELD: &str = "Content-Disposition: form-data; name=\"a\"";
    const FILE: &str = "Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"";
    let at = "x".repeat(128 * 1024);
    let over = "x".repeat(128 * 1024 + 1);
    let post_over = "x".repeat(260 * 1024);
    let good: &[(&str, &[(&str, &str)])] = &[
        ("a field", &[(FIELD, "1")]),
        ("an empty field", &[(FIELD, "")]),
        ("a field twice", &[(FIELD, "1"), (FIELD, "2")]),
        ("nested names", &[("Content-Disposition: form-data; name=\"a[b][]\"", "1")]),
        ("a broken name", &[("Content-Disposition: form-data; name=\"a[b\"", "1")]),
        ("a name without quotes", &[("Content-Disposition: form-data; name=a", "1")]),
        ("a name in single quotes", &[("Content-Disposition: form-data; name='a'", "1")]),
        ("no name", &[("Content-Disposition: form-data", "1")]),
        ("no disposition", &[("X-Own: 1", "1")]),
        ("another disposition", &[("Content-Disposition: attachment; name=\"a\"", "1")]),
        ("lower-case part header", &[("content-disposition: form-data; name=\"a\"", "1")]),
        ("a file", &[(FILE, "hello")]),
        (
            "a file with type",
            &[(
                "Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain",
                "h",
            )],
        ),
        ("a file and a field", &[(FILE, "hello"), (FIELD, "1")]),
        ("an empty file", &[(FILE, "")]),
        ("no file chosen", &[("Content-Disposition: form-data; name=\"f\"; filename=\"\"", "")]),
        (
            "files of one name",
            &[
                ("Content-Disposition: form-data; name=\"f[]\"; filename=\"x\"", "1"),
                ("Content-Disposition: form-data; name=\"f[]\"; filename=\"y\"", "2"),
            ],
        ),
        (
            "files with keys",
            &[("Content-Disposition: form-data; name=\"f[k][l]\"; filename=\"x\"", "1")],
        ),
        (
            "a path as name",
            &[("Content-Disposition: form-data; name=\"f\"; filename=\"dir/x.txt\"", "1")],
        ),
        (
            "a Windows path",
            &[("Content-Disposition: form-data; name=\"f\"; filename=\"C:\\\\d\\\\x.txt\"", "1")],
        ),
        (
            "a quote in the name",
            &[("Content-Disposition: form-data; name=\"f\"; filename=\"a\\\"b.txt\"", "1")],
        ),
        (
            "a name in UTF-8",
            &[("Content-Disposition: form-data; name=\"f\"; filename=\"ä.txt\"", "1")],
        ),
        (
            "filename*",
            &[("Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''x.txt", "1")],
        ),
        ("a file at the limit", &[(FILE, &at)]),
        ("a file over the limit", &[(FILE, &over)]),
        (
            "MAX_FILE_SIZE",
            &[("Content-Disposition: form-data; name=\"MAX_FILE_SIZE\"", "3"), (FILE, "12345")],
        ),
        (
            "too many files",
            &[
                ("Content-Disposition: form-data; name=\"f0\"; filename=\"0\"", "0"),
                ("Content-Disposition: form-data; name=\"f1\"; filename=\"1\"", "1"),
                ("Content-Disposition: form-data; name=\"f2\"; filename=\"2\"", "2"),
                ("Content-Disposition: form-data; name=\"f3\"; filename=\"3\"", "3"),
                ("Content-Disposition: form-data; name=\"f4\"; filename=\"4\"", "4"),
                ("Content-Disposition: form-data; name=\"f5\"; filename=\"5\"", "5"),
            ],
        ),
        ("over post_max_size", &[(FILE, &post_over)]),
        ("a boundary inside", &[(FIELD, "--XXb\r\n--XXbX")]),
        (
            "a part without value",
            &[("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain", "")],
        ),
    ];
    let plain = format!("multipart/form-data; boundary={BOUNDARY}");
    let end = format!("--{BOUNDARY}--\r\n");
    let mut cases: Vec<Case> = good
        .iter()
        .map(|(name, parts)| Case::new(*name, [upload("/dump.php", &plain, parts, &end)]))
        .collect();
    for (name, kind) in [
        ("quoted boundary", format!("multipart/form-data; boundary=\"{BOUNDARY}\"")),
        (
            "boundary and charset",
            format!("multipart/form-data; boundary={BOUNDARY}; charset=utf-8"),
        ),
        ("no boundary", "multipart/form-data".to_owned()),
        ("empty boundary", "multipart/form-data; boundary=".to_owned()),
        ("another boundary", "multipart/form-data; boundary=other".to_owned()),
        ("mixed case", format!("Multipart/Form-Data; Boundary={BOUNDARY}")),
    ] {
        cases.push(Case::new(
            name,
            [upload("/dump.php", &kind, &[(FILE, "hello"), (FIELD, "1")], &end)],
        ));
    }
    for (name, end) in
        [("no end", ""), ("half an end", "--XXb"), ("text after the end", "--XXbXX--\r\nmore")]
    {
        cases.push(Case::new(
            name,
            [upload("/dump.php", &plain, &[(FILE, "hello"), (FIELD, "1")], end)],
        ));
    }
    cases.push(Case::new("moved", [upload("/act.php?do=move", &plain, &[(FILE, "hello")], &end)]));
    cases
}

fn headers() -> Vec<Case> {
    let long = "a".repeat(6000);
    let pairs: &[(&str, &[(&str, &str)])] = &[
        ("own headers", &[("X-Foo", "bar"), ("x-foo-bar", "b")]),
        ("an empty value", &[("X-Empty", "")]),
        ("spaces", &[("X-Space", "  a b  ")]),
        ("a long value", &[("X-Long", &long)]),
        ("underscores", &[("X_Under", "1")]),
        ("numbers", &[("X-1-2", "3")]),
        ("UTF-8", &[("X-U", "ä")]),
        ("a type without body", &[("Content-Type", "text/plain")]),
        ("a length of 0", &[("Content-Length", "0")]),
        ("a cookie", &[("Cookie", "a=1; b=2")]),
        ("a cookie twice in one", &[("Cookie", "a=1; a=2")]),
        ("cookies without space", &[("Cookie", "a=1;b=2;c")]),
        ("encoded cookies", &[("Cookie", "a%20b=1; c=%41; d=x y; e=%zz")]),
        ("cookie arrays", &[("Cookie", "a[b]=1; a[c]=2; d.e=3")]),
        ("odd cookies", &[("Cookie", ";;=; =x; \"q\"=\"v\"")]),
        ("forwarded for", &[("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Proto", "https")]),
        ("a range", &[("Range", "bytes=0-2")]),
        ("accept", &[("Accept", "text/html;q=0.9, */*"), ("Accept-Language", "de, en;q=0.5")]),
        ("an ajax request", &[("X-Requested-With", "XMLHttpRequest"), ("Origin", "http://x")]),
        (
            "referer and agent",
            &[("Referer", "http://x/?a=b"), ("User-Agent", "Mozilla/5.0 (X; \"q\")")],
        ),
    ];
    let with = |request: Request, pairs: &[(&str, &str)]| {
        pairs.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let mut cases: Vec<Case> =
        pairs.iter().map(|(name, pairs)| Case::new(*name, [with(dump("a=5"), pairs)])).collect();
    for (name, value) in [
        ("basic", "Basic dXNlcjpwYXNz"),
        ("basic without colon", "Basic dXNlcg=="),
        ("basic broken", "Basic !!!"),
        ("lower-case basic", "basic dXNlcjpwYXNz"),
        ("digest", "Digest username=\"u\", realm=\"r\""),
        ("bearer", "Bearer token"),
        ("empty", ""),
    ] {
        let request = Request::get("/act.php?do=auth").header("Authorization", value);
        cases.push(Case::new(format!("authorization {name}"), [request]));
    }
    let twice = dump("").header("X-D", "1").header("X-D", "2");
    cases.push(Case::new("a header twice", [twice]).instead(
        200,
        "\"HTTP_X_D\": \"1, 2\"",
        "joined as RFC 9110 5.3 says and nginx 1.23 does; nginx 1.22 passes both and PHP keeps the last",
    ));
    let cookies = dump("").header("Cookie", "a=1").header("Cookie", "b=2");
    cases.push(Case::new("two cookie headers", [cookies]).instead(
        200,
        "\"HTTP_COOKIE\": \"a=1; b=2\"",
        "joined as RFC 6265 5.4 and nginx 1.23 do",
    ));
    let host = dump("").header("Host", "example.org:8080");
    cases.push(Case::new("a host with port", [host]).instead(
        200,
        "\"HTTP_HOST\": \"example.org:8080\"",
        "as the client sent it, which is what applications build links from; Debian's fastcgi_params cut it",
    ));
    cases.push(Case::new("a proxy header", [dump("").header("Proxy", "http://evil")]).instead(
        200,
        "\"HTTP_HOST\"",
        "never passed on (httpoxy); php-fpm still shows it in getallheaders()",
    ));
    cases
}

fn paths() -> Vec<Case> {
    const DOT: &str = "dot files are absent; plain nginx serves them";
    const TEXT: &str = "the front's own error page";
    let equal = [
        "/",
        "/index.php",
        "/index.php/extra/path?x=1",
        "/dump.php/a%20b/c",
        "/dump.php/",
        "/dump.php/%2F/x",
        "/dump.php/a.php/b",
        "/sub/",
        "/sub/?a=1",
        "/sub/x.php/y",
        "/sub/x.php%2Fy",
        "/sub/sp%20ace.php",
        "/nope.php",
        "/nope",
        "/nope/deep?x=1",
        "/nope.php/x",
        "//dump.php",
        "/./dump.php",
        "/sub/../dump.php",
        "/sub/./x.php",
        "/sub//x.php",
        "/dump%2ephp",
        "/dump.phpx",
        "/DUMP.PHP",
        "/dump.php?",
        "/dump.php??a",
        "/index.php?a=b%20c",
        "/sub/..",
        "/%E4",
        "/a.txt/",
        "/sub/nope.php/x",
        "/dump.php;x",
        "/dump.php/?x",
        "/a%3Fb",
        "/a%23b",
        "/sub/index.php",
    ];
    let mut cases: Vec<Case> =
        equal.iter().map(|path| Case::new(*path, [Request::get(path)]).script_only()).collect();
    for path in ["/%2e%2e/x", "/..", "/%zz", "/dump.php%00"] {
        cases.push(
            Case::new(path, [Request::get(path)]).instead(400, "Bad Request", TEXT).script_only(),
        );
    }
    for path in ["/.env", "/.hidden/x", "/sub/.x"] {
        cases.push(Case::new(path, [Request::get(path)]).script_only());
    }
    for case in &mut cases {
        if case.name == "/.env" || case.name == "/.hidden/x" || case.name == "/sub/.x" {
            case.instead =
                Some(Expect::Instead { status: 200, body: "front controller", why: DOT });
        }
    }
    cases.push(
        Case::new("/empty/", [Request::get("/empty/")])
            .instead(403, "Forbidden", TEXT)
            .script_only(),
    );
    cases.push(
        Case::new("/sub", [Request::get("/sub?q=1")])
            .instead(301, "", "a relative Location, which holds behind any proxy")
            .script_only(),
    );
    cases
}

const STATUS_AND_HEADERS: &[&str] = &[
    "status",
    "status-read",
    "status-line",
    "status-line-odd",
    "status-header",
    "status-both",
    "status-param",
    "location",
    "location-201",
    "location-307",
    "refresh",
    "auth-needed",
    "replace",
    "replace-case",
    "remove",
    "remove-type",
    "remove-all",
    "newline",
    "nul",
    "empty-value",
    "no-type",
    "type",
    "type-charset",
    "type-json",
    "charset",
    "mimetype",
    "length",
    "encoding",
    "long-header",
    "many-headers",
    "utf8-header",
    "sent",
    "late-header",
    "callback",
    "cookie",
    "cookie-bad",
    "204",
    "304",
    "cache",
    "disposition",
    "response-headers",
];

const OUTPUT_AND_END: &[&str] = &[
    "nothing",
    "big",
    "buffers",
    "clean",
    "level",
    "flush",
    "implicit",
    "rewrite",
    "print-file",
    "passthru",
    "stdout",
    "gzip",
    "exit",
    "exit-code",
    "exit-in-function",
    "exit-finally",
    "shutdown",
    "shutdown-folder",
    "shutdown-nested",
    "shutdown-header",
    "shutdown-exit",
    "destructor",
    "finish",
    "finish-twice",
    "finish-headers",
    "ini",
    "ini-get",
    "connection",
    "time-vars",
    "sapi",
    "globals",
    "included",
    "user",
    "locale",
];

fn act(name: &str) -> Case {
    let case = Case::new(name, [Request::get(&format!("/act.php?do={name}"))]);
    match name {
        "shutdown-folder" | "included" => case.script_only(),
        "destructor" => {
            case.resident_instead(200, "m", "a global lives on: its destructor does not run")
        }
        _ => case,
    }
}

fn acts(names: &[&str]) -> Vec<Case> {
    names.iter().map(|name| act(name)).collect()
}

fn errors() -> Vec<Case> {
    const STACK: &str = "500 where nothing was sent; the stack begins at serve()";
    let mut cases = acts(&[
        "warning",
        "notice-silent",
        "deprecated",
        "include",
        "hidden",
        "hidden-after-output",
        "html-off",
        "handler",
        "handler-false",
        "handler-throws",
        "exception-handler",
        "last-error",
        "last-fatal",
        "assert",
    ]);
    for (name, text) in [
        ("user-error", "bad"),
        ("fatal", "no_such_function"),
        ("exception", "boo"),
        ("type-error", "must be of type int"),
        ("parse", "syntax error"),
        ("require", "none.php"),
        ("memory", "Allowed memory size"),
        ("time", "Maximum execution time"),
    ] {
        cases.push(act(name).resident_instead(500, text, STACK));
    }
    cases.push(act("exception-in-shutdown").resident_instead(500, "late", STACK));
    cases
}

fn sessions() -> Vec<Case> {
    let page = |act: &str| Request::get(&format!("/act.php?do={act}"));
    let of = |name: &str, acts: &[&str]| Case::new(name, acts.iter().map(|act| page(act)));
    vec![
        of("counting", &["session", "session", "session"]),
        of("regenerated", &["session", "session-regenerate", "session"]),
        of("destroyed", &["session", "session-destroy", "session"]),
        of("closed early", &["session", "session-close", "session-read"]),
        of("read only", &["session", "session-read", "session-read"]),
        // Its Last-Modified is the front controller's in the resident model.
        of("parameters", &["session-params"]).script_only(),
        of("flash", &["session-flash&set=hello", "session-flash", "session-flash"]),
        of("too late", &["session-late"]),
        Case::new("an id of the client's", [page("session").header("Cookie", "PHPSESSID=abc")]),
        Case::new("an impossible id", [page("session").header("Cookie", "PHPSESSID=../../x")]),
    ]
}

fn heads() -> Vec<Case> {
    let mut cases: Vec<Case> =
        ["nothing", "status", "location", "length", "big", "cookie", "flush", "warning", "exit"]
            .iter()
            .map(|act| {
                Case::new(
                    format!("HEAD {act}"),
                    [Request::new("HEAD", &format!("/act.php?do={act}"))],
                )
            })
            .collect();
    cases.push(Case::new("HEAD a.txt", [Request::new("HEAD", "/a.txt")]).script_only());
    cases.push(Case::new("HEAD /", [Request::new("HEAD", "/")]).script_only());
    cases
}

fn files() -> Vec<Case> {
    const OWN: &str = "the front's own error page";
    let mut cases: Vec<Case> =
        ["/a.txt", "/page.html", "/s.css", "/d.json", "/p.png", "/a.txt?x=1"]
            .iter()
            .map(|path| Case::new(*path, [Request::get(path)]).script_only())
            .collect();
    let ranged = |range: &str| {
        Case::new(format!("range {range}"), [Request::get("/a.txt").header("Range", range)])
            .script_only()
    };
    cases.extend(
        ["bytes=0-1", "bytes=1-", "bytes=-1", "bytes=0-0", "bytes=0-99", "foo=1"].map(ranged),
    );
    cases.push(ranged("bytes=99-").instead(416, "", OWN));
    for range in ["bytes=x", "bytes=3-1"] {
        cases.push(ranged(range).instead(
            200,
            "text of a file",
            "invalid: ignored (RFC 9110 14.2)",
        ));
    }
    let past = Request::get("/a.txt").header("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT");
    cases.push(Case::new("modified since", [past]).script_only());
    let future =
        Request::get("/a.txt").header("If-Modified-Since", "Sat, 21 Nov 2099 00:00:00 GMT");
    cases.push(
        Case::new("not modified since", [future])
            .instead(304, "", "RFC 9110 13.1.3; nginx wants the exact time by default")
            .script_only(),
    );
    cases.push(
        Case::new("POST to a file", [Request::post("/a.txt", "text/plain", "x")])
            .instead(405, "Method Not Allowed", OWN)
            .script_only(),
    );
    cases
}

fn folder_settings() -> Vec<Case> {
    vec![
        Case::new(".user.ini", [Request::get("/ini/show.php")]).script_only(),
        Case::new(".user.ini elsewhere", [Request::get("/act.php?do=ini-get")]).script_only(),
    ]
}
