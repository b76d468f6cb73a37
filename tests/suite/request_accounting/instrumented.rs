//! Routes, timers and tags named by the application, with Samovar's functions and with those of the
//! pinba extension.

use crate::request_accounting::bench::{MODELS, figures, sample, serving, started};
use serde_json::{Value, json};

/// Statements of pinba.php.
fn probe() -> &'static str {
    include_str!("pinba.php").strip_prefix("<?php\n").expect("it is PHP")
}

#[test]
fn pinba_functions_return_results_of_extension() {
    for model in MODELS {
        let server = started(serving(model, probe()).workers(1), model);
        for round in 1..=3 {
            let (response, expected) = (server.get("/").text(), include_str!("pinba.txt"));
            for (ours, theirs) in response.lines().zip(expected.lines()) {
                assert_eq!(ours, theirs, "{model}, request {round}:\n{response}");
            }
            assert_eq!(response.lines().count(), expected.lines().count(), "{model}: {response}");
        }
        server.stop();
    }
}

const TIMERS: &str = r#"
    $do = $_GET['do'] ?? '';
    if ($do === 'ours') {
        Samovar\route('first');
        Samovar\route('ours');
        $timer = Samovar\timer(['group' => 'sql', 'b' => 2]);
        for ($i = 0; $i < 3; $i++) { $timer->start(); usleep(2000); $timer->stop(); }
        $timer->add(0.5, 4)->add(0.25);
        Samovar\timer(['group' => 'open'])->start();
        static $kept;
        $kept = Samovar\timer(['group' => 'running'])->start();
        for ($end = hrtime(true) + 2_000_000; hrtime(true) < $end;);
    } elseif ($do === 'pinba') {
        pinba_script_name_set('pinba');
        pinba_tag_set('color', 'red');
        $timer = pinba_timer_start(['group' => 'curl'], null, 3);
        usleep(1000);
        pinba_flush();
        pinba_timer_add(['group' => 'curl'], 0.5);
        pinba_timer_start(['group' => 'running']);
        pinba_timer_delete(pinba_timer_add(['group' => 'deleted'], 9));
    } elseif ($do === 'bad') {
        Samovar\route("bad \xff\xc3");
        Samovar\timer(["n\xff" => "v\xed\xa0\x80" . str_repeat('ä', 200)])->add(1);
        pinba_tag_set("t\xff", "\0\n");
        Samovar\timer(['long' => str_repeat('x', 300), 'longer' => str_repeat('y', 300)])->add(1);
        for ($i = 0; $i < 1000; $i++) { Samovar\timer(['n' => $i])->add(0.001); }
    } elseif ($do === 'wrong') {
        foreach ([[], ['x'], ['' => 'x'], ['x' => []]] as $tags) {
            try { Samovar\timer($tags); } catch (Error $e) { echo get_class($e), ' '; }
        }
        foreach ([[-1.0, 1], [NAN, 1], [1.0, -1]] as [$seconds, $hits]) {
            try {
                Samovar\timer(['a' => 'b'])->add($seconds, $hits);
            } catch (Error $e) { echo get_class($e), ' '; }
        }
    } else {
        Samovar\route('nothing');
        echo count(pinba_timers_get()), json_encode(pinba_tags_get());
    }
"#;

fn timer<'a>(figures: &'a Value, group: &str) -> &'a Value {
    let all = figures["timers"].as_array().expect("a list");
    let is_it = |timer: &&Value| {
        timer["tags"].as_array().is_some_and(|t| t.contains(&json!(["group", group])))
    };
    all.iter().find(is_it).unwrap_or_else(|| panic!("{group} is in {figures}"))
}

#[test]
fn timers_with_equal_tags_are_summed() {
    for model in MODELS {
        let server = started(serving(model, TIMERS).workers(1), model);
        for _ in 0..2 {
            server.get("/?do=ours");
            server.get("/?do=pinba");
        }
        let told = figures(&server, "ours", 2);
        let sql = timer(&told, "sql");
        assert_eq!((&sql["hits"], &sql["requests"]), (&json!(16), &json!(2)), "{model}: {told}");
        assert_eq!(sql["tags"][0], json!(["b", "2"]), "tags are in the order of their names");
        let wall = sql["wall_ns"].as_u64().expect("a number");
        // The sleeps may take longer; added time counts once.
        assert!((1_512_000_000..3_000_000_000).contains(&wall), "{model}: {told}");
        let running = timer(&told, "running");
        assert!(running["wall_ns"].as_u64() >= Some(4_000_000), "{model}: {told}");
        let cpu =
            running["user_ns"].as_u64().unwrap_or(0) + running["system_ns"].as_u64().unwrap_or(0);
        assert!(cpu >= 1_000_000, "it has burnt its time: {model}: {told}");
        assert_eq!(timer(&told, "open")["hits"], 2);

        let told = figures(&server, "pinba", 2);
        assert_eq!(timer(&told, "curl")["hits"], 8, "{model}: {told}");
        assert_eq!(timer(&told, "running")["hits"], 2, "{model}: {told}");
        assert!(!told.to_string().contains("deleted"), "{model}: {told}");
        assert!(told["tags"].to_string().contains("color"), "{model}: {told}");
        assert_eq!(server.get("/").text(), "0[]", "{model}: nothing is left for the next");
        server.stop();
    }
}

#[test]
fn unusual_names_of_application_break_no_report() {
    let server = started(serving("resident", TIMERS).workers(1), "resident");
    let said = server.get("/?do=wrong").text();
    assert_eq!(
        said,
        "ValueError ValueError ValueError TypeError ValueError ValueError ValueError "
    );
    server.get("/?do=bad");
    let told = figures(&server, "bad ??", 1);
    assert!(told.to_string().contains("n?"), "{told}");
    assert_eq!(sample(&server, "samovar_insight_reports_malformed_total"), 0);
    assert!(sample(&server, "samovar_insight_entries_dropped_total") >= 800);
    server.stop();
}
