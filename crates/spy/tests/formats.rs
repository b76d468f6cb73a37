//! A profile in the formats of other tools, read by these tools where they are installed.

use samovar_spy::profile::{Profile, Weight, callgrind, collapsed, pprof, speedscope, svg};
use samovar_spy::{Activity, Frame, Function};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

fn frame(class: &str, name: &str, file: &str, line: u32) -> Frame {
    let text = str::to_owned;
    let function = Function { class: text(class), name: text(name), file: text(file), line: 1 };
    Frame { function: Arc::new(function), line }
}

/// `{main}` calls `Shop::basket` (60 %), which calls an anonymous function with `<&>` in its file
/// (30 %), and waits (10 %).
fn profile() -> Profile {
    let main = frame("", "{main}", "/srv/index.php", 3);
    let basket = frame("App\\Shop", "basket", "/srv/Shop.php", 12);
    let odd = frame("", "{closure}", "/srv/<a>&\"b;c\".php", 4);
    let sleep = frame("", "usleep", "", 0);
    let weight =
        |samples| Weight { samples, wall_ns: samples * 10_000_000, cpu_ns: samples * 9_000_000 };
    let wait = Activity::Waiting { call: "poll".to_owned(), peer: "tcp 10.0.0.5:5432".to_owned() };
    let mut profile = Profile::new();
    profile.add(&[basket.clone(), main.clone()], &Activity::Running, weight(60));
    profile.add(&[odd, basket, main.clone()], &Activity::Running, weight(30));
    profile.add(&[sleep, main], &wait, weight(10));
    profile
}

#[test]
fn collapsed_lines_have_outermost_call_first() {
    let expected = "{main} /srv/index.php;App\\Shop::basket 60\n\
        {main} /srv/index.php;App\\Shop::basket;{closure} 30\n\
        {main} /srv/index.php;usleep;[poll tcp 10.0.0.5:5432] 10\n";
    assert_eq!(collapsed::render(&profile()), expected);
}

#[test]
fn profile_by_line_has_function_for_each_line() {
    let mut profile = profile();
    let other = frame("App\\Shop", "basket", "/srv/Shop.php", 13);
    let weight = Weight { samples: 5, wall_ns: 5, cpu_ns: 5 };
    profile.add(&[other], &Activity::Running, weight);
    let lines = profile.by_line();
    let expected = "App\\Shop::basket:13 5\n\
        {main}:3 /srv/index.php;App\\Shop::basket:12 60\n\
        {main}:3 /srv/index.php;App\\Shop::basket:12;{closure}:4 30\n\
        {main}:3 /srv/index.php;usleep;[poll tcp 10.0.0.5:5432] 10\n";
    assert_eq!(collapsed::render(&lines), expected);
    assert_eq!(lines.total(), profile.total());
    let shares = lines.shares();
    let line = shares.iter().find(|share| share.function.line == 12).expect("a line");
    assert_eq!((line.own.samples, line.total.samples), (60, 90));
}

#[test]
fn callgrind_has_own_costs_by_line_and_calls_by_callee() {
    let text = callgrind::render(&profile());
    for part in [
        "events: Samples Wall Cpu\n",
        "\nsummary: 100 1000000 900000\n",
        "\nfl=/srv/index.php\nfn={main} /srv/index.php\n\
         cfl=/srv/Shop.php\ncfn=App\\Shop::basket\ncalls=90 1\n3 90 900000 810000\n",
        "\nfl=/srv/Shop.php\nfn=App\\Shop::basket\n12 60 600000 540000\n",
        "cfn={closure}\ncalls=30 1\n12 30 300000 270000\n",
        "\nfl=php:internal\nfn=usleep\n",
        "fn=[poll tcp 10.0.0.5:5432]\n0 10 100000 90000\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Own costs add up to the whole, and no call exceeds it.
    let costs = |line: &str| -> Option<u64> { line.split(' ').nth(1)?.parse().ok() };
    let lines: Vec<_> = text.lines().collect();
    let is_cost = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
    let own = lines.windows(2).filter(|two| is_cost(two[1]) && !two[0].starts_with("calls="));
    assert_eq!(own.filter_map(|two| costs(two[1])).sum::<u64>(), 100);
}

#[test]
fn recursive_call_counts_once_per_stack_in_callgrind() {
    let again = frame("", "again", "/srv/a.php", 5);
    let mut profile = Profile::new();
    let frames = vec![again; 20];
    profile.add(&frames, &Activity::Running, Weight { samples: 3, wall_ns: 0, cpu_ns: 0 });
    let text = callgrind::render(&profile);
    assert!(text.contains("calls=3 1\n5 3 0 0\n"), "{text}");
}

#[test]
fn shares_count_a_wait_to_the_function_that_waits() {
    let shares = profile().shares();
    let all: Vec<_> = shares
        .iter()
        .map(|share| (share.function.full_name(), share.own.samples, share.total.samples))
        .collect();
    let expected = [
        ("App\\Shop::basket", 60, 90),
        ("{closure}", 30, 30),
        ("usleep", 10, 10),
        ("{main}", 0, 100),
    ];
    assert_eq!(all, expected.map(|(name, own, total)| (name.to_owned(), own, total)));
}

#[test]
fn written_profile_is_readable_by_pprof() {
    let bytes = pprof::render(&profile(), SystemTime::now(), Duration::from_secs(1), 100);
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("profile.pb.gz");
    std::fs::write(&file, bytes.expect("rendered")).expect("written");
    // Debian's package contains the tool. Newer releases of Go compile it at its first use.
    let debian = "/usr/lib/go/bin/go";
    let go = if Path::new(debian).exists() { debian } else { "go" };
    let top = |value: &str| {
        let run = Command::new(go)
            .env_remove("GOROOT")
            .args(["tool", "pprof", "-top", &format!("-sample_index={value}")])
            .arg(&file)
            .output();
        let run = run.unwrap_or_else(|error| {
            panic!(
                "cannot run `go tool pprof`: {error}\n\
                 hint: scripts/setup.sh test installs golang-go"
            )
        });
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let wall = top("wall");
    assert!(wall.contains("Type: wall"), "{wall}");
    let line = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.ends_with(name)).unwrap_or_default().to_owned();
        line.split_whitespace().take(5).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line(&wall, " App\\Shop::basket"), ["600ms", "60.00%", "60.00%", "900ms", "90.00%"]);
    let samples = top("samples");
    assert_eq!(line(&samples, " {closure}")[0], "30", "{samples}");
    assert_eq!(line(&samples, " [poll tcp 10.0.0.5:5432]")[0], "10", "{samples}");
}

/// Whether a value is of a type.
type Is = fn(&Value) -> bool;

/// Checks an object's keys: whether each must exist, and its type.
fn check(found: &mut Vec<String>, what: &str, value: &Value, keys: &[(&str, bool, Is)]) {
    let Some(object) = value.as_object() else {
        return found.push(format!("{what} is no object"));
    };
    for (key, is_required, is) in keys {
        match object.get(*key) {
            None if *is_required => found.push(format!("{what} has no {key}")),
            Some(value) if !is(value) => found.push(format!("{what} has {key} {value}")),
            _ => {}
        }
    }
    let unknown = object.keys().filter(|key| !keys.iter().any(|(known, ..)| known == key));
    found.extend(unknown.map(|key| format!("{what} has {key}")));
}

/// Violations of <https://www.speedscope.app/file-format-schema.json> in a document: the required
/// keys of an object and their types. Beyond the schema, also the values of numbers that the
/// program requires.
fn violations(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let (text, number, list): (Is, Is, Is) = (Value::is_string, Value::is_number, Value::is_array);
    let is_schema: Is = |value| value == "https://www.speedscope.app/file-format-schema.json";
    let units: Is = |value| {
        let known = ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"];
        value.as_str().is_some_and(|unit| known.contains(&unit))
    };
    let keys = [
        ("$schema", true, is_schema),
        ("shared", true, Value::is_object as Is),
        ("profiles", true, list),
        ("name", false, text),
        ("activeProfileIndex", false, number),
        ("exporter", false, text),
    ];
    check(&mut found, "the document", document, &keys);
    check(&mut found, "shared", &document["shared"], &[("frames", true, list)]);
    let frames = document["shared"]["frames"].as_array().cloned().unwrap_or_default();
    for frame in &frames {
        let keys = [
            ("name", true, text),
            ("file", false, text),
            ("line", false, number),
            ("col", false, number),
        ];
        check(&mut found, "a frame", frame, &keys);
    }
    let profiles = document["profiles"].as_array().cloned().unwrap_or_default();
    for profile in &profiles {
        let is_sampled: Is = |value| value == "sampled";
        let lists: Is = |value| {
            let stacks = value.as_array();
            stacks.is_some_and(|all| {
                all.iter()
                    .all(|one| one.as_array().is_some_and(|one| one.iter().all(Value::is_u64)))
            })
        };
        let numbers: Is =
            |value| value.as_array().is_some_and(|all| all.iter().all(Value::is_number));
        let keys = [
            ("type", true, is_sampled),
            ("name", true, text),
            ("unit", true, units),
            ("startValue", true, number),
            ("endValue", true, number),
            ("samples", true, lists),
            ("weights", true, numbers),
        ];
        check(&mut found, "a profile", profile, &keys);
        let samples = profile["samples"].as_array().cloned().unwrap_or_default();
        let weights = profile["weights"].as_array().cloned().unwrap_or_default();
        if samples.len() != weights.len() {
            found.push(format!("{} samples have {} weights", samples.len(), weights.len()));
        }
        let indices =
            samples.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_u64);
        found.extend(
            indices.filter(|at| *at >= frames.len() as u64).map(|at| format!("no frame {at}")),
        );
        let sum: u64 = weights.iter().filter_map(Value::as_u64).sum();
        let span = profile["endValue"].as_u64().zip(profile["startValue"].as_u64());
        if span.is_none_or(|(end, start)| end.checked_sub(start) != Some(sum)) {
            found.push(format!("the weights come to {sum}"));
        }
    }
    let active = document.get("activeProfileIndex").map_or(Some(0), Value::as_u64);
    if active.is_none_or(|at| at >= profiles.len() as u64) {
        found.push("no profile is active".to_owned());
    }
    found
}

#[test]
fn speedscope_output_matches_its_schema() {
    let text = speedscope::render(&profile(), "shop");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(violations(&document), Vec::<String>::new(), "{document:#}");
    let only = &document["profiles"][0];
    assert_eq!(
        (&only["unit"], only["samples"].as_array().map(Vec::len)),
        (&"nanoseconds".into(), Some(3))
    );
    let empty: Value =
        serde_json::from_str(&speedscope::render(&Profile::default(), "")).expect("JSON");
    assert_eq!(violations(&empty), Vec::<String>::new(), "{empty:#}");
    // Violations are detected.
    for (pointer, wrong) in [
        ("/$schema", "elsewhere".into()),
        ("/shared/frames/0/name", 7.into()),
        ("/shared/frames/0", serde_json::json!({"file": "/a.php"})),
        ("/profiles/0/unit", "hours".into()),
        ("/profiles/0/type", "evented".into()),
        ("/profiles/0/samples/0", serde_json::json!([99])),
        ("/profiles/0/weights/0", 1.into()),
        ("/profiles/0/endValue", Value::Null),
        ("/activeProfileIndex", 1.into()),
        ("/profiles/0/weights", serde_json::json!([])),
    ] {
        let mut broken = document.clone();
        *broken.pointer_mut(pointer).expect("it is there") = wrong;
        assert_ne!(violations(&broken), Vec::<String>::new(), "{pointer}");
    }
}

#[test]
fn svg_is_valid_xml_and_box_widths_match_shares() {
    let text = svg::render(&profile(), "a <shop> & \"more\"\u{1b}", svg::Measure::Wall);
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("flames.svg");
    std::fs::write(&file, &text).expect("written");
    let mut php = Command::new(samovar_testkit::php::program("php"));
    php.args(["-r", "$d = new DOMDocument; exit($d->load($argv[1]) ? 0 : 1);"]).arg(&file);
    let run = php.output().expect("PHP reads XML");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let width = |label: &str| {
        let title = text.find(&format!("<title>{label}")).unwrap_or_else(|| panic!("no {label}"));
        let before = &text[..title];
        let from = before.rfind("data-w=\"").expect("a width") + 8;
        before[from..from + 8].to_owned()
    };
    assert_eq!(width("App\\Shop::basket — "), "0.900000");
    assert_eq!(width("{closure} — "), "0.300000");
    assert_eq!(width("[poll tcp 10.0.0.5:5432] — "), "0.100000");
    assert!(
        !text.contains('\u{1b}') && text.contains("a &lt;shop&gt; &amp; &quot;more&quot;\u{fffd}")
    );
}

/// Classes that are created at run time may have any name; control characters are removed when they
/// are read.
#[test]
fn hostile_names_are_escaped_in_all_formats() {
    let evil = "A;B 7]]></script><x y=\"'&--";
    let frames = [frame(evil, evil, evil, 1), frame("", "{main}", "/a.php", 1)];
    let mut profile = Profile::new();
    profile.add(&frames, &Activity::Running, Weight { samples: 3, wall_ns: 1, cpu_ns: 0 });
    let text = svg::render(&profile, evil, svg::Measure::Wall);
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("flames.svg");
    std::fs::write(&file, &text).expect("written");
    let mut php = Command::new(samovar_testkit::php::program("php"));
    let count = "$d = new DOMDocument; $d->load($argv[1]) || exit(1); \
                 echo $d->getElementsByTagName('script')->length, \
                 $d->getElementsByTagName('x')->length;";
    let run = php.args(["-r", count]).arg(&file).output().expect("PHP reads XML");
    assert_eq!(String::from_utf8_lossy(&run.stdout), "10");
    let line = collapsed::render(&profile);
    assert_eq!((line.lines().count(), line.matches(';').count()), (1, 1), "{line}");
    assert!(line.ends_with(" 3\n"), "{line}");
    let document: serde_json::Value =
        serde_json::from_str(&speedscope::render(&profile, evil)).expect("JSON");
    let name = document["shared"]["frames"][0]["name"].as_str().expect("a name");
    let other = document["shared"]["frames"][1]["name"].as_str().expect("a name");
    assert!(name.contains(evil) || other.contains(evil), "{document}");
}

#[test]
fn empty_profile_is_written() {
    let empty = Profile::new();
    assert_eq!(collapsed::render(&empty), "");
    assert!(svg::render(&empty, "", svg::Measure::Cpu).ends_with("</svg>\n"));
    assert!(pprof::render(&empty, SystemTime::now(), Duration::ZERO, 0).is_ok());
    assert!(speedscope::render(&empty, "").contains("\"samples\":[]"));
}

#[test]
fn deep_stacks_keep_both_ends() {
    let frames: Vec<_> = (0..10_000).map(|n| frame("", &format!("f{n}"), "/a.php", n)).collect();
    let mut profile = Profile::new();
    profile.add(&frames, &Activity::Running, Weight { samples: 1, wall_ns: 1, cpu_ns: 0 });
    let line = collapsed::render(&profile);
    assert!(line.starts_with("f9999;") && line.trim_end().ends_with(";f0 1"), "{line}");
    assert!(line.contains(";[calls left out];"));
    assert_eq!(line.split(';').count(), samovar_spy::profile::DEPTH_MAX + 1);
}
