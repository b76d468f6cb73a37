//! Small applications with one leak each, and clean ones.

use serde_json::Value;

/// Code above, code of each request, and the expected finding.
pub(crate) struct Leak {
    pub(crate) name: &'static str,
    pub(crate) above: &'static str,
    pub(crate) handler: &'static str,
    /// Part of the finding's name, its verdict, and the text of the reported line.
    expected: (&'static str, &'static str, &'static str),
}

impl Leak {
    /// Checks that the report contains the leak; an error describes the difference.
    pub(crate) fn is_named(&self, code: Option<i32>, report: &Value) -> Result<(), String> {
        let (name, verdict, line) = self.expected;
        let findings = report["findings"].as_array().into_iter().flatten();
        let mut named =
            findings.filter(|f| f["name"].as_str().is_some_and(|found| found.contains(name)));
        let found = named.find(|f| f["verdict"] == verdict);
        let found = found.ok_or_else(|| format!("`{name}` is not among what {verdict}"))?;
        let expected_code = i32::from(verdict != "put_back");
        if code != Some(expected_code) {
            return Err(format!("exit status {code:?}"));
        }
        if line.is_empty() {
            return Ok(());
        }
        let php = format!("<?php\n{}", resident(self.above, self.handler));
        let at = php.lines().position(|text| text.contains(line)).expect("it is there") + 1;
        let place = found["place"].as_str().unwrap_or_default();
        let ends = format!("index.php:{at}");
        if place.ends_with(&ends) { Ok(()) } else { Err(format!("`{place}` is not {ends}")) }
    }
}

pub(crate) fn resident(above: &str, handler: &str) -> String {
    format!("{above}\nSamovar\\serve(function () {{\n{handler}\n}});\n")
}

pub(crate) fn below(above: &str, handler: &str) -> String {
    format!("{above}\nSamovar\\checkpoint();\n(function () {{\n{handler}\n}})();\n")
}

const fn leak(
    name: &'static str,
    above: &'static str,
    handler: &'static str,
    expected: (&'static str, &'static str, &'static str),
) -> Leak {
    Leak { name, above, handler, expected }
}

pub(crate) const LEAKS: &[Leak] = &[
    leak(
        "static array",
        "class Registry {\n  const LIMIT = 9;\n  private static array $items = [];\n  \
         static function add($x) { self::$items[] = $x; }\n}",
        "Registry::add(str_repeat('x', 200) . rand());",
        ("Registry::$items", "grows", "private static array $items"),
    ),
    leak(
        "closure registry",
        "class Hooks { public static array $all = []; }",
        "$who = rand(); Hooks::$all[] = fn () => $who;",
        ("Hooks::$all", "grows", "class Hooks"),
    ),
    leak(
        "event listeners",
        "class Events { public array $listeners = ['done' => []]; public static self $one; }\n\
         Events::$one = new Events;",
        "Events::$one->listeners['done'][] = [new ArrayObject, 'count'];",
        ("Events::$one->listeners['done']", "grows", "class Events"),
    ),
    leak(
        "unbounded cache",
        "function lookup($key) {\n  static $found = [];\n  return $found[$key] ??= md5($key);\n}",
        "lookup(uniqid());",
        ("lookup() $found", "grows", "static $found"),
    ),
    leak(
        "cyclic garbage with the collector off",
        "gc_disable(); class Ring { public $next; }",
        "$a = new Ring; $b = new Ring; $a->next = $b; $b->next = $a;",
        ("Ring", "grows", ""),
    ),
    leak(
        "descriptor",
        "class Log { public static array $files = []; }",
        "Log::$files[] = fopen(__FILE__, 'r');",
        ("index.php", "grows", "fopen"),
    ),
    leak(
        "growing string",
        "class Trail { public static string $text = ''; }",
        "Trail::$text .= 'one more line ' . rand();",
        ("Trail::$text", "grows", "class Trail"),
    ),
    leak(
        "container service",
        "class Container { private array $services = []; \
         function set($n, $s) { $this->services[$n] = $s; } }\n\
         $container = new Container;",
        "global $container; $container->set('request.' . uniqid(), new stdClass);",
        ("$container->services", "grows", "class Container"),
    ),
    leak(
        "internal container",
        "class Seen { public static SplObjectStorage $all; }\nSeen::$all = new SplObjectStorage;",
        "Seen::$all->attach(new stdClass);",
        ("Seen::$all", "grows", "class Seen"),
    ),
    leak("locale", "", "setlocale(LC_ALL, 'C.UTF-8');", ("locale (LC_", "put_back", "setlocale")),
    leak("ini", "", "ini_set('precision', '7');", ("precision", "put_back", "ini_set")),
    leak(
        "timezone",
        "",
        "date_default_timezone_set('Asia/Tokyo');",
        ("date_default_timezone_get", "put_back", "date_default_timezone_set"),
    ),
    leak(
        "error handler",
        "",
        "set_error_handler(fn () => true);",
        ("error handler", "put_back", "set_error_handler"),
    ),
    leak(
        "exception handler",
        "",
        "set_exception_handler(function () { });",
        ("exception handler", "put_back", "set_exception_handler"),
    ),
    leak(
        "shutdown function",
        "",
        "register_shutdown_function(function () { });",
        ("shutdown functions", "put_back", "register_shutdown_function"),
    ),
    leak(
        "stream wrapper",
        "class Memory { public $context; function stream_open() { return true; } }",
        "@stream_wrapper_register('mem' . uniqid(), 'Memory');",
        ("mem", "stays", ""),
    ),
    leak(
        "stream filter",
        "class Rot extends php_user_filter { }",
        "@stream_filter_register('rot', 'Rot');",
        ("rot", "stays", "stream_filter_register"),
    ),
    leak(
        "static variable of a function",
        "function visits() {\n  static $count = 0;\n  return ++$count;\n}",
        "visits();",
        ("visits() $count", "carries", "static $count"),
    ),
    leak(
        "static variable of a method",
        "class Page {\n  function number() {\n    static $number = 0;\n    \
         return ++$number;\n  }\n}",
        "(new Page)->number();",
        ("Page::number() $number", "carries", "static $number"),
    ),
    leak(
        "static variable of a closure",
        "",
        "static $last = null; $last = uniqid();",
        ("$last", "carries", ""),
    ),
    leak(
        "global",
        "$current = null;",
        "$GLOBALS['current'] = bin2hex(random_bytes(4));",
        ("$current", "carries", "$current = null"),
    ),
    leak(
        "the visitor of before",
        "class User { function __construct(public string $name) { } }\n\
         class Auth { public static ?User $user = null; }",
        "Auth::$user = new User(uniqid());",
        ("Auth::$user->name", "carries", "class User"),
    ),
    leak("environment", "", "putenv('TENANT=' . uniqid());", ("TENANT", "put_back", "putenv")),
    leak("umask", "", "umask(0);", ("umask", "put_back", "umask")),
    leak("working directory", "", "chdir('/usr');", ("working directory", "put_back", "chdir")),
    leak(
        "declared class",
        "",
        "eval('class T' . bin2hex(random_bytes(6)) . ' { }');",
        ("T", "declares", ""),
    ),
    leak(
        "declared function",
        "",
        "if (!function_exists('shout')) {\n  function shout() { }\n}",
        ("shout", "declares", "function shout()"),
    ),
    leak(
        "defined constant",
        "",
        "@define('STARTED', microtime(true));",
        ("STARTED", "declares", "define("),
    ),
    leak(
        "mb_internal_encoding",
        "",
        "mb_internal_encoding('ISO-8859-1');",
        ("mb_internal_encoding", "put_back", "mb_internal_encoding("),
    ),
    leak(
        "libxml's mode",
        "",
        "libxml_use_internal_errors(true);",
        ("libxml_use_internal_errors", "put_back", "libxml_use_internal_errors"),
    ),
    leak(
        "autoloader",
        "",
        "spl_autoload_register(function ($class) { });",
        ("autoloaders", "grows", "spl_autoload_register"),
    ),
    leak(
        "stream context",
        "",
        "stream_context_set_default(['http' => ['user_agent' => 'me']]);",
        ("default stream context", "put_back", "stream_context_set_default"),
    ),
    leak(
        "temporary files",
        "class Uploads { public static array $all = []; }",
        "Uploads::$all[] = tmpfile();",
        ("/php*", "grows", "tmpfile"),
    ),
    leak(
        "files with numbers",
        "class Reports { public static array $all = []; }",
        "$file = sys_get_temp_dir() . '/report-' . random_int(1000, 9999) . '.txt'; \
         Reports::$all[] = fopen($file, 'w'); unlink($file);",
        ("/report-*.txt", "grows", "fopen"),
    ),
    leak(
        "mapping",
        "class Shared { public static array $all = []; }",
        "$piece = shmop_open(0, 'n', 0600, 4096); shmop_delete($piece); Shared::$all[] = $piece;",
        ("/SYSV*", "grows", "shmop_open"),
    ),
    leak(
        "child process",
        "class Jobs { public static array $all = []; }",
        "Jobs::$all[] = proc_open(['sleep', '30'], [], $pipes);",
        ("child processes", "grows", "proc_open"),
    ),
];

pub(crate) const CLEAN: &[(&str, &str)] = &[
    ("", "echo 'hello';"),
    // A cache that is filled once.
    (
        "class Config { private static ?array $all = null;
           static function get($key) { return (self::$all ??= ['a' => 1, 'b' => [2, 3]])[$key]; } }
         function table() { static $made; return $made ??= range(1, 50); }",
        "echo Config::get('a'), count(table());",
    ),
    // Garbage with cycles, sessions, buffers, exceptions.
    (
        "class Node { public $next; public array $all = []; }",
        "session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; session_write_close();
         $a = new Node; $a->next = new Node; $a->next->next = $a; $a->all[] = $a;
         ob_start(); echo 'hidden'; ob_end_clean();
         try { throw new RuntimeException('x'); } catch (RuntimeException $e) { echo 'caught'; }",
    ),
    // Opened files are closed, and changed settings are restored.
    (
        "",
        "$f = tmpfile(); fwrite($f, 'x'); fclose($f); file_get_contents(__FILE__);
         $was = setlocale(LC_ALL, 0); setlocale(LC_ALL, 'C.UTF-8'); setlocale(LC_ALL, $was);
         $zone = date_default_timezone_get(); date_default_timezone_set('Asia/Tokyo');
         echo date('H'); date_default_timezone_set($zone);
         $d = new DOMDocument; $d->loadXML('<a/>'); preg_match('/^x+$/', 'xxx');
         set_error_handler(fn () => true); restore_error_handler();",
    ),
    // Enums, generators, closures, references, weak maps.
    (
        "enum Suit: string { case Hearts = 'h'; case Spades = 's'; }
         class Weak { public static ?WeakMap $map = null; }
         Weak::$map = new WeakMap;
         function numbers() { for ($i = 0; $i < 3; $i++) { yield $i; } }",
        "$suit = Suit::from('h'); foreach (numbers() as $n) { $sum = ($sum ?? 0) + $n; }
         $object = new stdClass; Weak::$map[$object] = str_repeat('x', 99);
         $list = [3, 1, 2]; usort($list, fn ($a, $b) => $a <=> $b); $ref = &$list[0]; $ref = 9;
         echo $suit->name, $sum, count($list), count(Weak::$map);",
    ),
];
