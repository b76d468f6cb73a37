//! `samovar spy --peek-var` and `--peek-global`: planted variables of running functions, and of
//! globals.

use super::{Busy, STUCK, spy, text, with_a_stuck_request_to};
use samovar_testkit::{Server, eventually};
use serde_json::Value;

/// Variables of each kind, three calls deep. `$number` changes all the time.
const PLANTED: &str = r"
class Cart {
    public function total(array $items, ?string $note): void {
        $count = count($items);
        $price = 12.5;
        $is_paid = true;
        $self = $this;
        $password = 'hunter2';
        $long = str_repeat('é', 500);
        $options = ['limit' => 7, 'api_key' => 'k-123', 'url' => 'https://u:p@host/'];
        $alias = &$options;
        $list = ['zero', 'one', 'two'];
        unset($list[1]);
        $sparse = [7 => 'seven', -3 => 'minus', '08' => 'text', 'x' => 'y'];
        $binary = 'a' . chr(0) . 'b' . chr(27) . '[2Jc';
        $anonymous = new class {};
        $later;
        while (true) { spin($count); }
    }
}
function spin(int $number): void { for ($i = 0; $i < 300; $i++) { $number += $i; } }
$tenant = 'acme';
$arguments = $_SERVER['argc'];
$config = ['region' => 'eu', 'db_password' => 'hunter2'];
(new Cart())->total(['a', 'b', 'c'], null);
";

fn values(flags: &[&str]) -> Value {
    eventually("a stack with variables", || {
        let out = spy(&[&["--stack", "--json"], flags].concat());
        let document: Value = serde_json::from_slice(&out.stdout).ok()?;
        let stack = document["stacks"].as_array()?.first()?.clone();
        (stack["frames"].as_array()?.len() >= 2).then(|| stack["variables"].clone())
    })
}

#[test]
fn variables_of_running_functions_are_shown() {
    let busy = Busy::start(PLANTED);
    let pid = busy.pid();
    for (variable, title, expected) in [
        ("count@Cart::total", "$count", Some("3")),
        ("$price@total", "$price", Some("12.5")),
        ("is_paid@cart::*", "$is_paid", Some("true")),
        ("note@Cart::total", "$note", Some("null")),
        ("items@Cart::total", "$items", Some("array(3)")),
        ("self@Cart::total", "$self", Some("object(Cart)")),
        ("this@Cart::total", "$this", Some("object(Cart)")),
        ("options.limit@Cart::total", "$options[limit]", Some("7")),
        ("alias.limit@Cart::total", "$alias[limit]", Some("7")),
        ("list.0@Cart::total", "$list[0]", Some("\"zero\"")),
        ("list.2@Cart::total", "$list[2]", Some("\"two\"")),
        ("list.1@Cart::total", "$list[1]", None),
        ("list.3@Cart::total", "$list[3]", None),
        ("list.-1@Cart::total", "$list[-1]", None),
        ("list.00@Cart::total", "$list[00]", None),
        ("sparse.7@Cart::total", "$sparse[7]", Some("\"seven\"")),
        ("sparse.-3@Cart::total", "$sparse[-3]", Some("\"minus\"")),
        ("sparse.08@Cart::total", "$sparse[08]", Some("\"text\"")),
        ("sparse.8@Cart::total", "$sparse[8]", None),
        ("sparse.x@Cart::total", "$sparse[x]", Some("\"y\"")),
        ("binary@Cart::total", "$binary", Some("\"a\u{fffd}b\u{fffd}[2Jc\"")),
        ("anonymous@Cart::total", "$anonymous", Some("object(class@anonymous)")),
        ("later@Cart::total", "$later", None),
        ("options.other@Cart::total", "$options[other]", None),
        ("count.limit@Cart::total", "$count[limit]", None),
        ("count@other", "$count", None),
        ("other@Cart::total", "$other", None),
        // Secrets.
        ("password@Cart::total", "$password", Some("(redacted)")),
        ("options.api_key@Cart::total", "$options[api_key]", Some("(redacted)")),
        ("options.url@Cart::total", "$options[url]", Some("\"https://(redacted)@host/\"")),
    ] {
        let found = values(&[&pid, "--peek-var", variable]);
        let expected = expected.map_or(Value::Null, Value::from);
        assert_eq!(found[title], expected, "{variable}");
    }
    let long = values(&[&pid, "--peek-var", "long@Cart::total"]);
    let long = long["$long"].as_str().expect("a text");
    assert_eq!(long, format!("\"{}\"… (1000 bytes)", "é".repeat(64)));
    // A variable that changes all the time is a number.
    let changing = eventually("the function that runs", || {
        let found = values(&[&pid, "--peek-var", "number@spin"]);
        found["$number"].as_str().map(str::to_owned)
    });
    assert!(changing.parse::<u64>().is_ok_and(|number| number <= 50_000), "{changing}");
    let out = spy(&["--stack", &pid, "--peek-var", "count@total", "--peek-global", "nothing"]);
    let out = text(&out.stdout);
    assert!(out.contains("\n$count = 3\n$nothing = (none)\n"), "{out}");
}

#[test]
fn global_variables_are_shown() {
    let busy = Busy::start(PLANTED);
    let pid = busy.pid();
    let names = ["tenant", "config.region", "config.db_password", "server.argc", "get.page"];
    let flags: Vec<_> = names.iter().flat_map(|name| ["--peek-global", name]).collect();
    let found = values(&[&[pid.as_str()], &flags[..]].concat());
    assert_eq!(found["$tenant"], "\"acme\"");
    assert_eq!(found["$config[region]"], "\"eu\"");
    assert_eq!(found["$config[db_password]"], "(redacted)");
    assert_eq!(found["$_SERVER[argc]"], "1");
    assert_eq!(found["$_GET[page]"], Value::Null);
}

#[test]
fn variables_of_same_name_keep_their_scopes() {
    let code = "function inner() { $value = 'in'; while (true) { usleep(100); keep($value); } }\n\
                function keep($value) {}\n\
                function outer() { $value = 'out'; inner(); keep($value); }\n\
                $value = 'global'; outer(); keep($value);";
    let busy = Busy::start(code);
    let pid = busy.pid();
    let peeks = ["--peek-var", "value@inner", "--peek-var", "value@outer"];
    let flags = [&[pid.as_str(), "--peek-global", "value"], &peeks[..]].concat();
    let found = values(&flags);
    assert_eq!(found["$value in inner"], "\"in\"", "{found}");
    assert_eq!(found["$value in outer"], "\"out\"", "{found}");
    assert_eq!(found["$value in globals"], "\"global\"", "{found}");
    let twice = values(&[&pid, "--peek-var", "value@inner", "--peek-var", "value@inner"]);
    assert_eq!(twice["$value"], "\"in\"", "{twice}");
}

#[test]
fn words_of_insight_redact_are_secret_too() {
    let busy = Busy::start(PLANTED);
    let mut command = std::process::Command::new(samovar_testkit::binary());
    command.env("SAMOVAR_INSIGHT_REDACT", "tenant");
    command.args(["spy", &busy.pid(), "--stack", "--peek-global", "tenant"]);
    let out = text(&command.output().expect("the binary runs").stdout);
    assert!(out.contains("\n$tenant = (redacted)\n"), "{out}");
}

#[test]
fn values_are_boxes_of_recordings() {
    let busy = Busy::start(PLANTED);
    let pid = busy.pid();
    let record = ["--duration", "300ms", "--format", "collapsed", "--peek-global", "tenant", &pid];
    let out = text(&spy(&record).stdout);
    assert!(
        !out.is_empty() && out.lines().all(|line| line.starts_with("$tenant = \"acme\";")),
        "{out}"
    );
}

#[test]
fn request_of_worker_is_shown_by_superglobal() {
    let code = STUCK.replace("answer();\n", "$uri = $_SERVER['REQUEST_URI']; answer();\n");
    let server = Server::script(&code).workers(1).start();
    with_a_stuck_request_to("/basket/7", server.address(), server.folder(), |lock| {
        let pids: Vec<_> = server.worker_pids().iter().map(ToString::to_string).collect();
        let pids: Vec<_> = pids.iter().map(String::as_str).collect();
        super::stuck(&pids, lock);
        let flags = ["--peek-global", "server.REQUEST_URI", "--peek-var", "file@Report::write"];
        let found = values(&[&pids[..], &flags[..]].concat());
        // The query is the visitor's.
        assert_eq!(found["$_SERVER[REQUEST_URI]"], "\"/basket/7?(redacted)\"");
        assert_eq!(found["$file"], format!("\"{}\"", lock.display()));
    });
}

#[test]
fn wrong_names_of_variables_are_explained() {
    let many = ["--peek-global", "a"].repeat(9);
    for (flags, part) in [
        (&["1", "--peek-var", "total"][..], "hint: it takes a variable and a function"),
        (&["1", "--peek-global", "a b"], "hint: it takes a global variable"),
        (&[&["1"], &many[..]].concat()[..], "hint: give at most 8"),
    ] {
        let out = spy(flags);
        assert_eq!(out.status.code(), Some(2), "{flags:?}: {out:?}");
        assert!(text(&out.stderr).contains(part), "{flags:?}: {out:?}");
    }
}
