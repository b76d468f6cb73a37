//! `samovar spy --memory`: growth of the heap by stack, with planted growth.

use super::{Busy, spy, text};
use samovar_testkit::eventually;
use serde_json::Value;

/// `large` keeps three quarters of the memory, `small` one quarter, `idle` nothing. Each takes
/// many samples, and the memory is freed only by `forget`.
const PLANTED: &str = r"
function wait(): void { $end = hrtime(true) + 40e6; while (hrtime(true) < $end); }
function text(): string { return str_repeat('x', random_int(1_600_000, 1_600_001)); }
function large(): array {
    $all = [];
    for ($n = 0; $n < 3; $n++) { $all[] = text(); wait(); }
    return $all;
}
function small(): string { $text = text(); wait(); return $text; }
function idle(): void { wait(); wait(); }
function forget(): void { global $kept; $kept = []; wait(); wait(); }
while (true) {
    $kept[] = large();
    idle();
    $kept[] = small();
    forget();
}
";

#[test]
fn growth_of_heap_belongs_to_functions_that_allocate() {
    let busy = Busy::start(PLANTED);
    let pid = busy.pid();
    let out = spy(&["--memory", "--json", "--duration", "2s", &pid]);
    let document: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let grown = document["grown_bytes"].as_f64().expect("a number");
    let share = |name: &str| {
        let all = document["functions"].as_array().expect("a list");
        let found = all.iter().find(|one| one["function"] == name);
        found.map_or(0.0, |one| one["total_bytes"].as_f64().expect("a number") / grown)
    };
    // The recording may begin and end within a round of the program.
    let (large, small) = (share("large"), share("small"));
    assert!((large - 0.75).abs() < 0.12 && (small - 0.25).abs() < 0.12, "{large} {small}");
    assert!(share("idle") < 0.05, "{document}");
}

#[test]
fn growth_is_recorded_in_each_format() {
    let busy = Busy::start(PLANTED);
    let record = |format: &str| {
        let out = spy(&["--memory", "--duration", "1s", "--format", format, &busy.pid()]);
        assert!(out.status.success(), "{out:?}");
        out.stdout
    };
    let lines = text(&record("collapsed"));
    let is_large = |line: &str| {
        let bytes = line.rsplit(' ').next().and_then(|bytes| bytes.parse::<u64>().ok());
        line.contains(";large") && bytes.is_some_and(|bytes| bytes > 1_000_000)
    };
    assert!(lines.lines().any(is_large), "{lines}");
    assert!(text(&record("svg")).contains("KiB of growth of the heap, "));
    assert!(text(&record("callgrind")).contains("\nevents: Samples Bytes\n"));
    let speedscope: Value = serde_json::from_slice(&record("speedscope")).expect("JSON");
    assert_eq!(speedscope["profiles"][0]["unit"], "bytes");
    assert!(record("pprof").starts_with(&[0x1f, 0x8b]), "gzipped");
    let table = text(&spy(&["--memory", "--duration", "1s", &busy.pid()]).stdout);
    assert!(table.contains("growth of heaps: ") && table.contains("  large"), "{table}");
}

#[test]
fn heap_matches_php() {
    let busy = Busy::start(
        "$kept = str_repeat('x', random_int(20_000_000, 20_000_001));\n\
         $peak = str_repeat('y', random_int(10_000_000, 10_000_001)); $peak = null;\n\
         while (true) { usleep(100); }",
    );
    let stack = eventually("a stack", || {
        let out = spy(&["--stack", "--json", &busy.pid()]);
        let document: Value = serde_json::from_slice(&out.stdout).ok()?;
        let stacks = document["stacks"].as_array()?;
        stacks.iter().find(|one| one["frames"][0]["function"] == "usleep").cloned()
    });
    let bytes = |key: &str| stack[key].as_u64().expect("a number") / 1_000_000;
    assert!((20..=23).contains(&bytes("heap_bytes")), "{stack}");
    assert!((30..=35).contains(&bytes("heap_peak_bytes")), "{stack}");
    let shown = text(&spy(&["--stack", &busy.pid()]).stdout);
    assert!(shown.contains("  heap: 2"), "{shown}");
}

#[test]
fn program_without_growth_has_no_profile_of_memory() {
    let busy = Busy::start("while (true) { usleep(100); }");
    let out = spy(&["--memory", "--duration", "300ms", "--format", "collapsed", &busy.pid()]);
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(1), ""), "{out:?}");
    assert!(text(&out.stderr).contains("the heap did not grow"), "{out:?}");
}

#[test]
fn php_without_a_heap_of_its_own_is_named_as_reason() {
    let busy = Busy::start_with(PLANTED, &[("USE_ZEND_ALLOC", "0")]);
    let pid = busy.pid();
    let table = spy(&["--memory", "--duration", "300ms", &pid]);
    let shown = text(&table.stdout);
    assert!(shown.contains("\nno heap of PHP can be read\n"), "{table:?}");
    let record = spy(&["--memory", "--duration", "300ms", "--format", "collapsed", &pid]);
    for out in [&table, &record] {
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        let why = text(&out.stderr);
        assert!(why.contains("no heap of PHP") && why.contains("USE_ZEND_ALLOC"), "{why}");
    }
    let json = spy(&["--memory", "--json", "--duration", "300ms", &pid]);
    let document: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(document["without_heap"].as_u64() > Some(0), "{document}");
}
