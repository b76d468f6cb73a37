//! The image from a request's point of view: its start, changes since the boot, and private state.

use crate::image::{image, mode, script, thrice};
use samovar_testkit::eventually;
use samovar_testkit::http::Request;

/// Data that the boot has read may have changed. The resume hook runs first in each request, so
/// that it can check this.
#[test]
fn resume_hook_runs_first_in_each_request() {
    let server = script(
        "$above = 'old'; $n = 0;
         Samovar\\checkpoint(function () use (&$above, &$n) {
             $n++; $above = $_GET['now'] ?? '-'; });
         echo \"$above $n\";",
    )
    .start();
    for now in ["a", "b", "c"] {
        assert_eq!(server.get(&format!("/?now={now}")).text(), format!("{now} 1"));
    }
    assert_eq!(mode(&server), "shared");
    assert_eq!(image(&server)["refork_total"], 0);
    let beside =
        "<?php Samovar\\checkpoint(function () { echo 'resumed '; return false; }); echo 'beside';";
    std::fs::write(server.folder().join("root/beside.php"), beside).expect("our own folder");
    assert_eq!(thrice(&server, "/beside.php"), "resumed beside", "once, where nothing is booted");
    server.stop();

    let start = script("require_once 'boot.inc'; $mine = 1; echo \"$seen $mine\";");
    let root = start.folder().join("root");
    std::fs::write(root.join("boot.inc"), "<?php $seen = 'above';").expect("our own folder");
    let resume = "<?php $seen = $_GET['seen']; if (isset($_GET['exit'])) { exit('over'); }
        if (isset($_GET['throw'])) { throw new Exception('no'); }";
    std::fs::write(root.join("resume.inc"), resume).expect("our own folder");
    let arguments = ["--checkpoint-after", "boot.inc", "--checkpoint-resume", "resume.inc"];
    let server = start.args(arguments).start();
    assert_eq!(thrice(&server, "/?seen=x"), "x 1");
    assert_eq!(thrice(&server, "/?seen=x&exit"), "over");
    let thrown = server.get("/?seen=x&throw").text();
    assert!(thrown.contains("Uncaught Exception: no") && !thrown.contains("x 1"), "{thrown}");
    assert_eq!(thrice(&server, "/?seen=y"), "y 1");
    assert_eq!(image(&server)["refork_total"], 0);
    let (code, log) = script("").args(["--checkpoint-resume", "nowhere.php"]).refuse();
    assert_eq!(code, Some(2), "{log}");
}

/// An outdated image serves no request: the request runs the whole script as in php-fpm, with all
/// its input.
#[test]
fn outdated_image_runs_whole_script() {
    let start = script(
        "$read = file_get_contents(__DIR__ . '/data'); $boot = getmypid();
         register_shutdown_function(function () {
             error_log('shutdown of ' . ($GLOBALS['below'] ?? 'the boot')); });
         class D { function __destruct() {
             error_log('destructor of ' . ($GLOBALS['below'] ?? 'the boot')); } }
         $d = new D(); echo 'head '; header('X-Above: 1'); ob_start();
         fopen(__DIR__ . '/lock', 'w+') and $lock = fopen(__DIR__ . '/lock', 'r+')
             and flock($lock, LOCK_SH);
         Samovar\\checkpoint(function () use ($read) {
             echo 'unseen '; header('X-Resume: ' . $read);
             return file_get_contents(__DIR__ . '/data') === $read;
         });
         $below = $_SERVER['REQUEST_METHOD'];
         $files = array_map(fn ($f) => [$f['name'], md5_file($f['tmp_name'])], $_FILES);
         echo $read, ' ', json_encode([$_GET, $_POST, $files]),
             strlen(file_get_contents('php://input'));",
    );
    let data = start.folder().join("root/data");
    std::fs::write(&data, "one").expect("our own folder");
    let server = start.start();
    eventually("a booted worker", || {
        (server.get("/").text().starts_with("head unseen one") && mode(&server) == "worker")
            .then_some(())
    });
    let upload = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"t.txt\"\r\n\r\n\
        LONG\r\n--b\r\nContent-Disposition: form-data; name=\"k\"\r\n\r\nv\r\n--b--\r\n"
        .replace("LONG", &"x".repeat(120_000));
    let long = format!("a={}", "y".repeat(100_000));
    for (kind, content_type, body, holds) in [
        ("GET", "", String::new(), "[{\"q\":\"1\"},[],[]]0".to_owned()),
        (
            "upload",
            "multipart/form-data; boundary=b",
            upload,
            "{\"k\":\"v\"},{\"f\":[\"t.txt\",".to_owned(),
        ),
        ("form", "application/x-www-form-urlencoded", long.clone(), "]100002".to_owned()),
        ("raw", "application/json", long, "[],[]]100002".to_owned()),
    ] {
        let request = || match kind {
            "GET" => Request::get("/?q=1"),
            _ => Request::post("/?q=1", content_type, body.as_str()),
        };
        let before = server.client().request(&request());
        let was = std::fs::read_to_string(&data).expect("our own file");
        std::fs::write(&data, format!("{was}+")).expect("our own file");
        let reforks = image(&server)["refork_reasons"]["stale"].as_u64().unwrap_or(0);
        let stale = server.client().request(&request());
        let (old, new) = (before.text(), stale.text());
        assert!(old.contains(&holds), "{kind}: {old}");
        // The whole script calls the hook, too. Its result `false` has no effect there.
        assert_eq!(
            new,
            old.replace(&format!("unseen {was} "), &format!("unseen {was}+ ")),
            "{kind}"
        );
        assert_eq!(stale.header("x-resume"), Some(format!("{was}+").as_str()));
        assert_eq!(stale.all("x-above").len(), 1);
        eventually("a worker that has booted anew", || {
            let all = &image(&server)["refork_reasons"]["stale"];
            (all.as_u64() == Some(reforks + 1)).then_some(())
        });
        assert!(server.get("/").text().contains(&format!("{was}+ ")));
    }
    let written = server.stop();
    assert!(!written.contains("of the boot"), "{written}");
    assert!(
        written.contains("shutdown of POST") && written.contains("destructor of POST"),
        "{written}"
    );
}

/// PHP writes the progress of an upload to its session before the request has started one.
#[test]
fn upload_progress_is_available_in_each_model() {
    let show = "session_id('tea'); session_start();
        echo $_SESSION['upload_progress_leaf']['bytes_processed'] ?? 'nothing',
            ' ', $_POST['k'] ?? '-';";
    let part = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nxyz\r\n";
    let fields = part("PHP_SESSION_UPLOAD_PROGRESS", "leaf") + file + &part("k", "v") + "--b--\r\n";
    let mut seen = Vec::new();
    for php in [
        show.to_owned(),
        format!("Samovar\\checkpoint(); {show}"),
        format!("Samovar\\serve(function () {{ {show} }});"),
        format!("Samovar\\serve(function () {{ {show} }}, 1);"),
    ] {
        let server = script(&php)
            .define("session.upload_progress.enabled", "1")
            .define("session.upload_progress.cleanup", "0")
            .start();
        for _ in 0..2 {
            let upload = Request::post("/", "multipart/form-data; boundary=b", fields.as_str());
            let response = server.client().request(&upload.header("Cookie", "PHPSESSID=tea"));
            seen.push(response.text());
        }
    }
    assert!(seen[0].ends_with(" v") && !seen[0].starts_with("nothing"), "{seen:?}");
    assert!(seen.iter().all(|text| *text == seen[0]), "{seen:?}");
}

/// A temporary file without a name, if shared, would pass data from one visitor to the next, across
/// workers.
#[test]
fn temporary_files_of_boot_are_private_to_each_worker() {
    let server = script(
        "$t = fopen('php://temp', 'w+'); fwrite($t, str_repeat('x', 3 << 20));
         $f = tmpfile(); fwrite($f, 'boot');
         Samovar\\checkpoint();
         if (isset($_GET['write'])) {
             foreach ([$t, $f] as $to) { rewind($to); fwrite($to, 'secret'); } }
         rewind($f); rewind($t);
         echo fread($f, 10), ' ', fread($t, 6), ' ', strlen(stream_get_contents($t));",
    )
    .workers(2)
    .start();
    for turn in 1..=2 {
        assert_eq!(thrice(&server, "/"), "boot xxxxxx 3145722");
        assert_eq!(server.get("/?write").text(), "secret secret 3145722");
        eventually("a fresh fork", || {
            (image(&server)["refork_reasons"]["descriptor"] == turn).then_some(())
        });
        for _ in 0..6 {
            assert_eq!(server.get("/").text(), "boot xxxxxx 3145722");
        }
    }
    assert_eq!((mode(&server), &image(&server)["refork_total"]), ("shared".into(), &2.into()));
}

/// A deploy that changes a symbolic link takes effect below the checkpoint after a path's time to
/// live, as without a checkpoint.
#[test]
fn changed_symlink_takes_effect_below_checkpoint() {
    let server = script(
        "foreach (['a', 'b'] as $d) { @mkdir(__DIR__ . \"/$d\"); }
         @symlink('a', __DIR__ . '/current'); $above = basename(realpath(__DIR__ . '/current'));
         Samovar\\checkpoint();
         echo $above, basename(realpath(__DIR__ . '/current'));",
    )
    .define("realpath_cache_ttl", "1")
    .start();
    assert_eq!(thrice(&server, "/"), "aa");
    for target in ["b", "a"] {
        let root = server.folder().join("root");
        std::os::unix::fs::symlink(target, root.join("next")).expect("our own folder");
        std::fs::rename(root.join("next"), root.join("current")).expect("our own folder");
        let expected = format!("a{target}");
        eventually("the link's new end", || (server.get("/").text() == expected).then_some(()));
        assert_eq!(thrice(&server, "/"), expected);
    }
    assert_eq!(image(&server)["refork_total"], 0);
}

/// Two strings that grow alternately, one of which is truncated at times. Each blocks the growth of
/// the other.
const IN_TURNS: &str = "
    for ($a = $b = '', $i = 0; $i < 2500; $i++) {
        $a .= str_repeat(chr(65 + $i % 26), 4096); $b .= str_repeat(chr(97 + $i % 26), 8192);
        if ($i % 700 === 699) { $a = substr($a, 0, 3000000); }
    }
    echo strlen($a), ' ', md5($a), ' ', strlen($b), ' ', md5($b);";

/// A string larger than a chunk of the heap (2 MiB) grows in place. Growth in small steps once
/// copied it at each step: 20 MB of `php://input` took 0.55 s, compared with 0.02 s as a script.
#[test]
fn large_string_grows_in_place() {
    let server = script(&format!(
        "Samovar\\checkpoint();
         function cpu() {{
             $u = getrusage(); return $u['ru_utime.tv_sec'] * 1e6 + $u['ru_utime.tv_usec']; }}
         function grow($megabytes) {{
             $step = str_repeat('0123456789abcdef', 256); $before = cpu();
             for ($s = '', $i = 0; $i < $megabytes * 256; $i++) {{ $s .= $step; }}
             return [cpu() - $before, $s];
         }}
         if (isset($_GET['turns'])) {{ {IN_TURNS} }} else {{ echo grow(8)[0], ' ', grow(64)[0]; }}"
    ))
    .args(["--php", "memory_limit=-1"])
    .start();
    let peer = script(IN_TURNS).args(["--php", "memory_limit=-1"]).start();
    assert_eq!(thrice(&server, "/?turns"), peer.get("/").text());
    peer.stop();
    // Eight times the size must take about eight times as long, not 64 times. The minimum of
    // several runs, because other processes compute, too.
    let (mut small, mut large) = (f64::MAX, f64::MAX);
    for _ in 0..7 {
        let text = server.get("/").text();
        let times: Vec<f64> = text.split(' ').map(|part| part.parse().expect("µs")).collect();
        (small, large) = (small.min(times[0]), large.min(times[1]));
    }
    assert!(large < 24.0 * small.max(500.0), "{large} µs for 64 MB, {small} for 8");
    server.stop();
}

/// If there is not enough memory, PHP ends its process with "Out of memory", as without a
/// checkpoint. A 32-bit chunk count once made the size look small, and the page wrote beyond it.
#[test]
fn impossible_growth_ends_with_out_of_memory() {
    let server = script(
        "Samovar\\checkpoint();
         $a = new SplFixedArray(300000);
         $a[299999] = 7;
         if (isset($_GET['far'])) { $a->setSize((1 << 49) + 393216); }
         echo $a[299999];",
    )
    .args(["--php", "memory_limit=-1"])
    .start();
    assert_eq!(server.get("/?far").status, 502);
    assert_eq!(server.get("/").text(), "7");
    let log = server.log();
    assert!(log.contains("Out of memory") && log.contains("worker exited with status 1"), "{log}");
    assert!(!log.contains("killed by signal"), "{log}");
    server.stop();
}
