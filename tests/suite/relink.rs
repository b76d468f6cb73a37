//! PHP with relinked code in memory: the behaviour is unchanged; only the calls between its
//! functions differ.

mod engine;
mod refusals;

use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::process::Command;

/// Uses many parts of libphp and its extensions. The results are always the same.
const PAGE: &str = r"<?php
    $booted = array_map(fn ($n) => str_repeat(chr(97 + $n % 26), $n), range(1, 200));
    HERE
    ob_start();
    $words = [];
    foreach ($booted as $n => $word) {
        $words[] = sprintf('%05.2f %s %s', $n / 3, md5($word), ucfirst(substr($word, 0, 3)));
    }
    usort($words, fn ($a, $b) => strcmp($b, $a));
    echo json_encode($words),
        preg_replace_callback('/[aeiou]+/', fn ($m) => strtoupper($m[0]), implode(' ', $words));
    echo mb_convert_case('grüße aus dem teehaus', MB_CASE_TITLE), date(DATE_ATOM, 86400 * 365),
        serialize(new DateTimeImmutable('@0'));
    try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo get_class($e), $e->getLine(); }
    $generate = (function () { yield from [1, 2, 3]; return 4; })();
    foreach ($generate as $n) { echo $n; }
    echo $generate->getReturn(), (new ReflectionFunction('array_map'))->getNumberOfParameters(),
        crc32(gzcompress('tea')), hash('sha256', 'tea');
    $doc = new DOMDocument(); $doc->loadXML('<cups><cup>1</cup></cups>'); echo $doc->saveXML();
    $fiber = new Fiber(function () { echo Fiber::suspend(7); });
    echo $fiber->start(); $fiber->resume(8);
    $lite = new PDO('sqlite::memory:');
    echo $lite->query('SELECT sum(1) FROM (SELECT 1 UNION ALL SELECT 2)')->fetchColumn();
    $all = ob_get_clean(); echo substr($all, -200), strlen($all), md5($all);
";

fn start(here: &str, relink: &str) -> Server {
    Server::script(&PAGE.replace("HERE", here)).workers(1).args(["--relink", relink]).start()
}

fn linking(server: &Server) -> Value {
    server.status()["linking"].clone()
}

/// KB of libphp's code in a worker that differ from the file.
fn own_code_kb(server: &Server) -> u64 {
    // The first worker may be about to leave.
    let smaps = eventually("a worker's memory", || {
        std::fs::read_to_string(format!("/proc/{}/smaps", server.worker_pid())).ok()
    });
    let both = smaps.lines().find(|line| line.contains(" rwx") && line.contains(".so"));
    assert_eq!(both, None, "a library's memory is writable or executable");
    let mut is_code = false;
    for line in smaps.lines() {
        if line.contains("libphp") {
            is_code = line.contains(" r-xp ");
        } else if let Some(size) = line.strip_prefix("Anonymous:").filter(|_| is_code) {
            return size.trim().trim_end_matches(" kB").parse().expect("a number");
        }
    }
    panic!("there is no code of libphp")
}

#[test]
fn relinked_pages_are_equal_and_calls_are_direct() {
    let (direct, built) = (start("", "true"), start("", "false"));
    let first = direct.get("/").text();
    assert!(first.contains("DivisionByZeroError"), "{first}");
    for _ in 0..3 {
        assert_eq!(direct.get("/").text(), first);
        assert_eq!(built.get("/").text(), first);
    }
    let said = linking(&direct);
    assert_eq!((&said["state"], &said["why"]), (&"direct".into(), &"".into()));
    let count = |key: &str| said[key].as_u64().expect("a number");
    assert!(count("calls") > 20_000 && count("loads") > 2_000 && count("libraries") > 1, "{said}");
    assert!(own_code_kb(&direct) > 1_000);
    assert_eq!(linking(&built)["state"], "off");
    assert_eq!(own_code_kb(&built), 0);
    let text = Command::new(binary()).arg("status").arg("--control").arg(direct.control()).output();
    let text = String::from_utf8_lossy(&text.expect("the binary runs").stdout).into_owned();
    assert!(
        !text.contains("not linked directly"),
        "all is well, so there is nothing to say: {text}"
    );
}

/// Code is not part of the memory that a rollback restores, and adds no cost to it.
#[test]
fn relinked_image_has_no_extra_cost() {
    let told = ["true", "false"].map(|relink| {
        let server = start("Samovar\\checkpoint();", relink);
        let first = server.get("/").text();
        let image = eventually("an image", || {
            let image = server.status()["image"].clone();
            (image["mode"] == "shared").then_some(image)
        });
        let before = own_code_kb(&server);
        for _ in 0..60 {
            assert_eq!(server.get("/").text(), first);
        }
        let status = server.status();
        assert_eq!(status["image"]["refork_total"], 0, "{status}");
        assert_eq!(own_code_kb(&server), before);
        image["bytes"].as_u64().expect("a number")
    });
    assert!(told[0].abs_diff(told[1]) < 1 << 20, "bytes of the image, with and without: {told:?}");
}

/// A deploy boots PHP again, and a console worker is also a fork of it.
#[test]
fn each_generation_and_console_worker_is_relinked() {
    let server = start("", "true");
    let first = server.get("/").text();
    server.reload().expect("nothing has changed");
    eventually("the former generation has left", || {
        let status = server.status();
        let workers = status["workers"].as_array()?;
        workers.iter().all(|worker| worker["generation"] == 2).then_some(())
    });
    assert_eq!(linking(&server)["state"], "direct");
    assert!(own_code_kb(&server) > 1_000);
    assert_eq!(server.get("/").text(), first);
}
