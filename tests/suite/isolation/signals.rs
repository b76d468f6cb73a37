//! Signals and their mask at the end of a request, in all models.

use crate::isolation::outside::script;
use samovar_testkit::{Server, eventually};

/// Models by their name in the status. `page()` responds.
const MODELS: [(&str, &str); 4] = [
    ("script", "page();"),
    ("checkpoint", "Samovar\\checkpoint(); page();"),
    ("resident", "Samovar\\serve(function () { page(); });"),
    ("checkpoint", "Samovar\\serve(function () { page(); }, 1);"),
];

/// State of signals that a visitor can see.
const STATE: &str = r"
    function state(): string {
        $status = file('/proc/self/status');
        return implode(preg_grep('~^(?:SigPnd|ShdPnd|SigBlk)~', $status));
    }
";

fn booted(model: &str, php: &str) -> Server {
    let server = script(php).start();
    eventually("the model", || (server.status()["workers"][0]["model"] == model).then_some(()));
    server
}

/// The end of ext/pcntl restores the default disposition, which ends the process, and unblocks the
/// signal.
#[test]
fn signal_raised_while_blocked_does_not_end_request() {
    for (model, serve) in MODELS {
        for signal in ["SIGUSR1", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGRTMIN"] {
            let server = booted(
                model,
                &format!(
                    "{STATE}
                     function page() {{
                         if (isset($_GET['raise'])) {{
                             file_put_contents(__DIR__ . '/ran', 'x', FILE_APPEND);
                             pcntl_signal({signal}, function () {{ echo 'handled'; }});
                             pcntl_sigprocmask(SIG_BLOCK, [{signal}]);
                             for ($n = 0; $n < 3; $n++) {{ posix_kill(getmypid(), {signal}); }}
                             exit('raised');
                         }}
                         echo state();
                     }}
                     {serve}"
                ),
            );
            let first = server.get("/").text();
            let response = server.get("/?raise");
            let what = format!("{signal}, {serve}: {}", server.log());
            assert_eq!((response.status, response.text().as_str()), (200, "raised"), "{what}");
            assert_eq!(server.get("/").text(), first, "{what}");
            let ran = std::fs::read_to_string(server.folder().join("root/ran"));
            assert_eq!(ran.expect("it ran"), "x", "once: {what}");
            assert_eq!(server.status()["worker_restarts_total"], 0, "{what}");
            server.stop();
        }
    }
}

/// Signals that were blocked above are blocked below, and a request that unblocks them is alone
/// with that.
#[test]
fn mask_of_boot_is_that_of_each_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let connection = format!("$s = stream_socket_client('tcp://127.0.0.1:{port}');");
    for (model, serve) in &MODELS[1..] {
        for boot in ["", &connection] {
            let server = booted(
                model,
                &format!(
                    "{boot} pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1, SIGCHLD]);
                     function page() {{
                         switch ($_GET['do'] ?? '') {{
                             case 'all': pcntl_sigprocmask(SIG_SETMASK, []); break;
                             case 'one': pcntl_sigprocmask(SIG_UNBLOCK, [SIGUSR1]); break;
                             case 'more': pcntl_sigprocmask(SIG_BLOCK, [SIGWINCH]); break;
                         }}
                         $mask = preg_grep('~^SigBlk:~', file('/proc/self/status'));
                         echo substr(trim(current($mask)), -16);
                     }}
                     {serve}"
                ),
            );
            for (change, mask) in [("all", "0"), ("one", "10000"), ("more", "8010200")] {
                for _ in 0..3 {
                    assert_eq!(server.get("/").text(), "0000000000010200", "{serve} {boot}");
                }
                let changed = server.get(&format!("/?do={change}")).text();
                assert_eq!(changed, format!("{mask:0>16}"), "{serve} {boot}");
                assert_eq!(server.get("/").text(), "0000000000010200", "after {change}: {serve}");
            }
            server.stop();
        }
    }
}

/// The handler is of the boot, and so is the mask: no request changes either.
#[test]
fn signal_blocked_and_handled_by_boot_does_not_end_request() {
    let server = booted(
        "checkpoint",
        &format!(
            "{STATE}
             pcntl_signal(SIGUSR1, function () {{ echo 'handled'; }});
             pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1]);
             Samovar\\checkpoint();
             if (isset($_GET['raise'])) {{ posix_kill(getmypid(), SIGUSR1); exit('raised'); }}
             echo state(), getmypid();"
        ),
    );
    let first = server.get("/").text();
    for _ in 0..3 {
        let response = server.get("/?raise");
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "raised"),
            "{}",
            server.log()
        );
        assert_eq!(server.get("/").text(), first, "{}", server.log());
    }
    server.stop();
}
