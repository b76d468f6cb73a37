//! Two PHP versions in one server. Started by hand: `make two-versions` finds or builds the second
//! version, which may be absent on a machine.

use super::{Sites, pool, workers};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};

/// Names the worker binary of a second PHP version.
const SECOND: &str = "SAMOVAR_SECOND_PHP";

/// The api with the other version's worker, in a model that differs from the shop's.
fn table(worker: &str) -> String {
    format!(
        "[[pool]]\nname = 'api'\nmatch = '/api/*'\nroot = 'FOLDER/api'\nworkers = 2\n\
         php_binary = '{worker}'\n\
         [pool.timeouts]\nanswer = '3s'\ngrace = '1s'\n"
    )
}

const TELLS: &str = "if (isset($_GET['loop'])) { while (true); }
    if (isset($_GET['die'])) { posix_kill(getmypid(), SIGKILL); }
    $n = 0; for ($i = 0; $i < 1000; $i++) { $n += strlen(md5((string) $i)); }
    echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION, ' ', $n, ' ', $_SERVER['REQUEST_URI'];";

fn version(server: &Server, path: &str) -> String {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{}", response.text());
    let text = response.text();
    let (version, rest) = text.split_once(' ').expect("words");
    assert_eq!(rest, format!("32000 {path}"));
    version.to_owned()
}

#[test]
#[ignore = "needs a second PHP: make two-versions"]
fn two_php_versions_run_in_one_server() {
    let second = std::env::var(SECOND).expect("the worker of another version");
    for (model, begin, end) in [
        ("script", "", ""),
        ("checkpoint", "Samovar\\checkpoint();", ""),
        ("resident", "Samovar\\serve(function () {", "});"),
    ] {
        let sites = Sites::new();
        sites.rewrite("shop/index.php", &format!("<?php {TELLS}"));
        sites.rewrite("api/index.php", &format!("<?php {begin} {TELLS} {end}"));
        let server = sites.server(&table(&second)).start();
        let (first, other) = (version(&server, "/x"), version(&server, "/api/x"));
        assert_ne!(first, other, "{model}");
        let status = server.status();
        let all = status["workers"].as_array().expect("workers").iter();
        let models: Vec<_> = all.filter(|worker| worker["pool"] == "api").collect();
        assert!(models.iter().any(|worker| worker["model"] == model), "{model}: {models:?}");
        // Faults in one version do not affect the other.
        let before = workers(&server, "default");
        for (target, status) in [("/api/x?loop", 504), ("/api/x?die", 502)] {
            let mut client = server.client();
            client.send(&Request::get(target).bytes());
            for _ in 0..20 {
                assert_eq!(version(&server, "/y"), first);
            }
            assert_eq!(client.read(false).status, status, "{model} {target}");
        }
        eventually("the other version", || (server.get("/api/x").status == 200).then_some(()));
        assert_eq!(workers(&server, "default"), before, "nobody was replaced");
        server.reload().expect("a reload of both");
        assert_eq!(
            (version(&server, "/x"), version(&server, "/api/x")),
            (first.clone(), other.clone())
        );
        server.upgrade([]).expect("an upgrade");
        server.wait_for_predecessor();
        assert_eq!((version(&server, "/x"), version(&server, "/api/x")), (first, other));
        assert_eq!(pool(&server, "api")["failed"], false);
        server.stop();
    }
}
