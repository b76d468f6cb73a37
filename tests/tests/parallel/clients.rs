//! Every client of PHP's waits beside its like.

use crate::peers::{MODELS, Peers, ask};

const CLIENTS: [&str; 18] = [
    "pdo_pgsql",
    "pgsql",
    "pdo_mysql",
    "mysqli",
    "redis",
    "memcached",
    "curl",
    "curl_multi",
    "http",
    "stream",
    "tls",
    "sockets",
    "flock",
    "child",
    "shell",
    "sleep",
    "select",
    "semaphore",
];

/// Each job is as long as it would be alone, or longer; all together are far shorter than one after another.
#[test]
fn jobs_of_each_client_wait_at_once() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).start();
        for client in CLIENTS {
            let told = ask(&server, &format!("/jobs?client={client}&count=8"));
            for i in 0..8 {
                assert_eq!(
                    told["answers"][format!("job {i}")],
                    format!("/{i}"),
                    "{model} {client}"
                );
            }
            let seconds = |name: &str| told[name].as_f64().expect("seconds");
            let (sum, wall) = (seconds("sum"), seconds("wall"));
            assert!(sum >= 0.75, "{model} {client}: each job waits: {told}");
            assert!(wall < sum / 2.0, "{model} {client}: {wall} s for jobs of {sum} s");
        }
        server.stop();
    }
}
