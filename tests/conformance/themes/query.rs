//! Query strings: how names become arrays, and which parts are decoded or dropped.

use crate::case::{Case, Theme};

const QUERIES: &[(&str, &str)] = &[
    ("none", ""),
    ("empty", "?"),
    ("one", "?a=1"),
    ("two", "?a=1&b=2"),
    ("no value", "?a"),
    ("empty value", "?a="),
    ("empty name", "?=1"),
    ("only an ampersand", "?&"),
    ("ampersands around", "?&a=1&&b=2&"),
    ("only an equals sign", "?="),
    ("many equals signs", "?a=b=c==d"),
    ("semicolon", "?a=1;b=2"),
    ("question marks", "?a=1?b=2&?c=3"),
    ("duplicate", "?a=1&a=2"),
    ("scalar then array", "?a=1&a[]=2"),
    ("array then scalar", "?a[]=1&a=2"),
    ("list", "?a[]=1&a[]=2"),
    ("list with keys", "?a[1]=x&a[0]=y&a[]=z"),
    ("big key", "?a[9223372036854775807]=x&a[]=y"),
    ("negative key", "?a[-5]=x&a[]=y"),
    ("keys that look like numbers", "?a[01]=x&a[1.5]=y&a[+1]=z&a[%201]=w"),
    ("map", "?a[x]=1&a[y]=2"),
    ("nested", "?a[b][c]=1&a[b][d]=2&a[e][]=3"),
    ("deep", "?a[][][][][]=1"),
    ("quotes in brackets", "?a['x']=1&a[%22y%22]=2"),
    ("space in brackets", "?a[%20]=1&a[x%20y]=2"),
    ("empty brackets in the middle", "?a[][b]=1&a[][b]=2"),
    ("text behind brackets", "?a[b]c=1&a[d]e[f]=2"),
    ("open bracket", "?a[b=1"),
    ("open bracket with dot", "?a[b.c=1&a.b[c=2"),
    ("open bracket at the end", "?a[=1"),
    ("second open bracket", "?a[b][c=1&a[b[c]=2"),
    ("closing bracket", "?a]b=1&a]=2"),
    ("brackets first", "?[a]=1&[]=2&]=3"),
    ("brackets swapped", "?a][b=1"),
    ("encoded brackets", "?a%5Bb%5D=1&a%5B%5D=2"),
    ("dots", "?a.b=1&.c=2&d.=3"),
    ("dots and brackets", "?a.b[c.d]=1&a[b.c]=2"),
    ("spaces", "?a%20b=1&%20c=2&d%20=3"),
    ("pluses", "?a+b=1&c=2+3&+d=4&e%2Bf=%2B"),
    ("name of underscores", "?_=1&__=2"),
    ("clash of mangled names", "?a.b=1&a_b=2&a+b=3"),
    ("nul in value", "?a=%00b"),
    ("nul in name", "?a%00b=1&%00c=2"),
    ("nul in brackets", "?a[b%00c]=1"),
    ("broken escapes", "?a=%zz&b=%4&c=%&%=d&%4=e"),
    ("encoded equals and ampersand", "?a%3Db=1%262"),
    ("utf-8", "?a=%C3%A4&%C3%B6=1"),
    ("not utf-8", "?a=%FF%FE&%E4=1"),
    ("control characters", "?a=%01%0D%0A%09%7F"),
    ("encoded newline in a name", "?a%0Ab=1"),
    ("quotes and slashes", "?a='%22%5C/&b=%3Cscript%3E"),
    ("unencoded specials", "?a={}|^`\\&b=~!*()$,;:@"),
    ("fragment", "?a=%23b"),
    ("magic names", "?GLOBALS=1&_GET=2&_SERVER[x]=3&this=4&HTTP_HOST=5"),
    ("argv style", "?a+b+c"),
    ("session id", "?PHPSESSID=abcdefghijklmnopqrstuvwxyz"),
    ("url as value", "?u=http://localhost/x?y=1"),
];

/// Bytes that RFC 3986 does not allow unencoded, and that nginx forwards.
const RAW: &[(&str, &[u8])] = &[
    ("raw utf-8", "/dump.php?a=\u{e4}&\u{f6}=1".as_bytes()),
    ("raw bytes", b"/dump.php?a=\xe4\xff"),
    ("raw quotes", b"/dump.php?{\"a\":1}"),
    ("encoded quotes", b"/dump.php?%22a%22"),
    ("raw markup", b"/dump.php?a=<b>"),
    ("raw specials", b"/dump.php?a=`|^\\{}[]"),
    ("raw fragment", b"/dump.php?a=1#b?c=2"),
    ("raw bytes in a name", b"/dump.php?\xff[\"x\"]=1"),
    ("control character", b"/dump.php?a=\x01"),
    ("delete", b"/dump.php?a=\x7f"),
    ("tab", b"/dump.php?a=\t"),
];

pub(crate) fn theme() -> Theme {
    let target = |query: &str| format!("/dump.php{query}");
    let mut cases: Vec<_> =
        QUERIES.iter().map(|(name, query)| Case::get(*name, &target(query))).collect();
    let numbered = |count: usize| {
        let fields: Vec<_> = (0..count).map(|i| format!("v{i}={i}")).collect();
        target(&format!("?{}", fields.join("&")))
    };
    let nested = |depth: usize| target(&format!("?a{}=1", "[x]".repeat(depth)));
    cases.extend([
        Case::get("as many as max_input_vars", &numbered(200)),
        Case::get("one over max_input_vars", &numbered(201)),
        Case::get("far over max_input_vars", &numbered(400)),
        Case::get("array over max_input_vars", &target(&format!("?{}", "a[]=1&".repeat(205)))),
        Case::get("as deep as max_input_nesting_level", &nested(63)),
        Case::get("deeper than max_input_nesting_level", &nested(70)),
        Case::get("long value", &target(&format!("?a={}", "x".repeat(8000)))),
        Case::get("long name", &target(&format!("?{}=1", "n".repeat(4000)))),
        Case::raw("raw space", "GET /dump.php?a=b c HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ]);
    cases.extend(RAW.iter().map(|(name, target)| Case::raw_target(name, target)));
    cases.extend([
        Case::get("$_GET is not filled twice", "/settings.php?do=server-writable&a=1"),
        Case::get(
            "filter_input",
            "/settings.php?do=filter&n=42&mail=a@b.c&html=%3Cb%3E&list[]=1&list[]=2",
        ),
        Case::get("filter_input of rubbish", "/settings.php?do=filter&n=4x&mail=a&list=1"),
        Case::get("extract and parse_str", "/settings.php?do=extract&n=1&a.b=2&c[]=3"),
        Case::get("phpinfo", "/settings.php?do=phpinfo&n=1&a[]=2"),
    ]);
    Theme { name: "query", cases }
}
