//! A leak on one URL of several is found regardless of the other URLs; bounded caches are no leaks.

use crate::leaks::planted::resident;
use crate::leaks::stage::{CLEAN, LEAKS, application, leaks, problems, report, text};
use serde_json::Value;
use std::fmt::Write as _;

/// Code above, code of a leaking request, and the name of the finding.
const KINDS: [(&str, &str, &str); 3] = [
    (
        "class Registry { public static array $items = []; }",
        "Registry::$items[] = str_repeat('x', 100) . $n;",
        "Registry::$items",
    ),
    ("class Log { public static array $files = []; }", "Log::$files[] = tmpfile();", "/php*"),
    (
        "class Container { private array $services = []; \
         function set($n, $s) { $this->services[$n] = $s; } }\n$container = new Container;",
        "$GLOBALS['container']->set(\"request.$n\", new ArrayObject([$n]));",
        "$container->services",
    ),
];

/// Numbers of requests for a leak in 1 of 10: two of the first requests of `/leak` leak, and then
/// eight more.
const RARE: [&str; 4] = ["--times", "22", "--times-max", "110"];

/// Returns an application whose URL `/leak` leaks in one of `rate` requests. The other URLs have
/// caches of their own and change nothing after their first request.
fn planted(above: &str, leak: &str, rate: usize) -> String {
    let above = format!(
        "{above}\nclass Pages {{ public static array $cache = []; public static int $asked = 0; }}"
    );
    let handler = format!(
        "$path = strtok($_SERVER['REQUEST_URI'], '?');
         Pages::$cache[$path] ??= str_repeat($path, 10);
         if ($path === '/leak') {{
             static $n = 0;
             if (++$n % {rate} === 0) {{ {leak} }}
         }}
         echo Pages::$cache[$path];"
    );
    resident(&above, &handler)
}

/// Returns the arguments for a number of URLs, with `/leak` at this position.
fn urls(of: usize, at: usize) -> Vec<String> {
    let mut urls = vec!["--urls".to_owned()];
    urls.extend((0..of).map(|n| if n == at { "/leak".into() } else { format!("/page/{n}") }));
    urls
}

/// Returns a fault unless the leak is found, with its URL and no other.
fn fault(kind: usize, rate: usize, of: usize, at: usize, more: &[&str]) -> Option<String> {
    let (above, leak, name) = KINDS[kind];
    let folder = application(&planted(above, leak, rate));
    let args = urls(of, at);
    let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let (code, report) = report(&folder, &args);
    let all = report["findings"].as_array().into_iter().flatten();
    let mut found = all.filter(|f| f["name"].as_str().is_some_and(|found| found.contains(name)));
    let found = found.find(|f| f["verdict"] == "grows");
    let urls = found.map(|f| f["urls"].clone()).unwrap_or_default();
    let named: Vec<_> = urls.as_array().into_iter().flatten().map(|of| of["url"].clone()).collect();
    let is_right = code == Some(LEAKS) && named == [Value::from("/leak")];
    // The counter `$n` differs after each request.
    (!is_right).then(|| format!("{name}, 1 in {rate}, {at} of {of} URLs: {code:?} {report:#}"))
}

#[test]
fn leak_on_one_url_of_several_is_found_with_its_url() {
    let mut wrong = String::new();
    // As many requests as show two leaks, and then ten.
    let few = ["--times", "5", "--times-max", "25"];
    let some = ["--times", "10", "--times-max", "40"];
    let many = RARE;
    for (kind, rate, of, at, times) in [
        (0, 1, 2, 0, few),
        (0, 1, 2, 1, few),
        (2, 3, 2, 0, some),
        (1, 10, 2, 1, many),
        (0, 10, 5, 4, many),
        (1, 3, 5, 0, some),
        (2, 10, 10, 3, many),
    ] {
        let fault = fault(kind, rate, of, at, &times);
        let _ = writeln!(wrong, "{}", fault.unwrap_or_default());
    }
    assert!(wrong.trim().is_empty(), "{wrong}");
}

#[test]
fn rare_leak_on_one_of_fifty_urls_is_found_with_its_url() {
    assert_eq!(fault(0, 10, 50, 27, &RARE), None);
}

/// The text names the URL, the rate, and the rarity of a leak that could be unseen.
#[test]
fn report_of_a_mix_names_url_and_rarest_leak() {
    let (above, leak, _) = KINDS[0];
    let folder = application(&planted(above, leak, 3));
    let said = text(&leaks(folder.path(), &["--urls", "/a", "/leak", "/b"]));
    for part in [
        "a leak in 1 of 15 of its requests is seen with a probability of 95 %",
        "Registry::$items (static property): +1 element per request",
        "by 15 of 44 requests of /leak, and on until the last of 304\n",
        "raise --times-max",
    ] {
        assert!(said.contains(part), "no `{part}`: {said}");
    }
}

/// Caches: filled once, by probability, with a bound that is reached within the repeated requests
/// or after them, emptied when full.
#[test]
fn bounded_caches_in_a_mix_are_not_leaks() {
    for (name, code) in [
        ("filled by the second request", "static $n = 0; if ($n++ === 1) { C::$all[] = 'x'; }"),
        (
            "30 least recently used members",
            "C::$all[uniqid()] = 'x'; if (count(C::$all) > 30) { array_shift(C::$all); }",
        ),
        (
            "150 least recently used members",
            "C::$all[uniqid()] = 'x'; if (count(C::$all) > 150) { array_shift(C::$all); }",
        ),
        (
            "emptied at 20 members",
            "C::$all[uniqid()] = 'x'; if (count(C::$all) > 20) { C::$all = []; }",
        ),
        (
            "objects with a bound",
            "C::$all[uniqid()] = new ArrayObject(['x']);
             if (count(C::$all) > 40) { unset(C::$all[array_key_first(C::$all)]); }",
        ),
        ("twenty keys by chance", "C::$all['k' . random_int(1, 20)] ??= new stdClass;"),
    ] {
        let above = "class C { public static array $all = []; }";
        let handler =
            format!("if (str_starts_with($_SERVER['REQUEST_URI'], '/cached')) {{ {code} }}");
        let folder = application(&resident(above, &handler));
        let (code, report) = report(&folder, &["--urls", "/a", "/cached", "/b"]);
        let problems: Vec<_> =
            problems(&report).into_iter().filter(|problem| problem.contains("C::$all")).collect();
        assert!(problems.is_empty(), "{name}: {problems:?} {report:#}");
        if !handler.contains("static $n") {
            assert_eq!(code, Some(CLEAN), "{name}: {report:#}");
        }
    }
}

/// State of one visitor, set by one URL of several in 1 of 3 requests.
#[test]
fn carried_state_of_one_url_is_reported() {
    let folder = application(&resident(
        "class Auth { public static ?string $user = null; public static array $now = []; }",
        // The count is in a file: in memory, it would be carried state itself.
        "if ($_SERVER['REQUEST_URI'] === '/login') {
             $logins = __DIR__ . '/logins';
             file_put_contents($logins, '.', FILE_APPEND);
             clearstatcache();
             if (filesize($logins) % 3 === 0) {
                 Auth::$user = uniqid();
             }
         }
         if ($_SERVER['REQUEST_URI'] === '/basket') {
             Auth::$now = ['fixed' => 1, uniqid() => 1];
         }",
    ));
    let (code, report) = report(&folder, &["--urls", "/a", "/login", "/b", "/basket", "/c"]);
    assert_eq!(code, Some(LEAKS), "{report:#}");
    let all = report["findings"].as_array().into_iter().flatten();
    let carried = all.filter(|f| f["verdict"] == "carries");
    let mut named: Vec<_> =
        carried.map(|f| (f["name"].clone(), f["urls"][0]["url"].clone())).collect();
    named.sort_by_key(|(name, _)| name.to_string());
    let expected = [("Auth::$now", "/basket"), ("Auth::$user", "/login")];
    let expected: Vec<(Value, Value)> =
        expected.iter().map(|(name, url)| ((*name).into(), (*url).into())).collect();
    assert_eq!(named, expected, "{report:#}");
}
