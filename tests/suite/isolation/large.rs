//! Pages that large requests write and small ones in between do not. The worker expects writes to
//! the first and watches for writes to the others, based on earlier requests of the same kind.

use crate::isolation::memory::{ATTACKS, KERNELS, ask, image, start, word};
use samovar_testkit::Server;

/// Number of page faults of the worker so far.
fn faults(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.worker_pid()));
    let stat = stat.expect("the worker lives");
    let fields = stat.rsplit_once(')').expect("a name").1;
    fields.split_whitespace().nth(7).and_then(|n| n.parse().ok()).expect("minor faults")
}

/// Number of pages that a large request writes.
const LARGE: u64 = 2600;
const SIZES: &str = "$was = found(); $n = (int) ($_GET['n'] ?? 0);
    for ($i = 0; $i < $n; $i++) { w($i); }
    echo json_encode(['was' => $was]);";

fn take_turns(server: &Server, large: &str, turns: u32) {
    for _ in 0..turns {
        for target in [large, "/"] {
            assert_eq!(ask(server, target)["was"], true, "{target}");
        }
    }
}

/// Whether the kernel can watch pages; otherwise this feature is not used.
fn watches(server: &Server) -> bool {
    let folder = format!("/proc/{}/fd", server.worker_pid());
    let files = std::fs::read_dir(folder).expect("the worker lives").flatten();
    files
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .any(|to| to.ends_with("anon_inode:[userfaultfd]"))
}

#[test]
fn large_requests_are_predicted_by_kind() {
    let server = start(SIZES).start();
    let large = format!("/?n={LARGE}");
    take_turns(&server, &large, 4);
    if !watches(&server) {
        return;
    }
    let faults_of = |turns, large: &str| {
        let before = faults(&server);
        take_turns(&server, large, turns);
        faults(&server) - before
    };
    let expected = faults_of(8, &large);
    assert!(expected < 2 * LARGE, "none for each page that is written: {expected}");
    let hot = image(&server)["hot_pages"].as_u64().expect("a number");
    assert!(hot < LARGE / 2, "small requests do not copy them: {hot}");
    // These requests become small, and later large again. The prediction follows after some
    // repetitions.
    take_turns(&server, "/?n=1", 8);
    take_turns(&server, &large, 8);
    let again = faults_of(8, &large);
    assert!(again < 2 * LARGE, "{again}");
    server.stop();
}

#[test]
fn write_to_predicted_page_is_rolled_back() {
    let case = |(name, php): &(&str, &str)| format!("case '{}': {php} break;", word(name));
    let cases: Vec<_> = ATTACKS.iter().map(case).collect();
    let below = format!(
        "$address = $c->cast($c->type('word'), $block)->cdata;
         $aligned = fn ($p) => $block + ($p * 4096 + 4096 - $address % 4096);
         $p = (int) ($_GET['p'] ?? 0); $was = found();
         for ($i = 0; $i < (int) ($_GET['n'] ?? 0); $i++) {{ w($i); }}
         ob_start(); switch ($_GET['do'] ?? '') {{ {} }} ob_end_clean();
         echo json_encode(['was' => $was]);",
        cases.join("\n")
    );
    let server = start(&below).start();
    for (name, _) in ATTACKS {
        let do_it = word(name);
        take_turns(&server, &format!("/?n={LARGE}&do=&p="), 4);
        // As large as predicted, or not large at all.
        for (n, p) in [(LARGE, 5), (LARGE, 2700), (0, 5), (0, 2700), (LARGE, 400), (1, 401)] {
            let response = ask(&server, &format!("/?n={n}&do={do_it}&p={p}"));
            assert_eq!(response["was"], true, "before {name} of page {p} in {n}");
            for _ in 0..2 {
                assert_eq!(ask(&server, "/")["was"], true, "after {name} of page {p} in {n}");
            }
        }
    }
    server.stop();
}

/// Kinds of requests that nearly always have the same size, and one with an unpredictable size.
#[test]
fn wrong_size_prediction_restores_image() {
    const REQUESTS: u32 = 200;
    let below = "mt_srand((int) $_GET['seed']); $was = found();
        $kind = (int) substr($_SERVER['QUERY_STRING'], 1, 1);
        $count = mt_rand(0, 9) < 8
            ? [0, 1, 40, 2000, PAGES, mt_rand(0, PAGES)][$kind] : mt_rand(0, PAGES);
        $from = $kind > 3 ? mt_rand(0, PAGES - 1) : 0;
        for ($i = 0; $i < $count; $i++) { w(($from + $i) % PAGES, mt_rand(0, 3) ? 'b' : 'a'); }
        echo json_encode(['was' => $was]);";
    for (kernel, change) in KERNELS {
        let server = change(start(below)).start();
        for n in 0..REQUESTS {
            let seed = n.wrapping_mul(2_654_435_761) >> 3;
            let kind = seed % 6;
            let response = ask(&server, &format!("/?k{kind}=&seed={seed}"));
            assert_eq!(response["was"], true, "before request {n}, {kernel}");
        }
        let status = image(&server);
        assert_eq!(status["refork_total"], 0, "{kernel}: {status}");
        server.stop();
    }
}
