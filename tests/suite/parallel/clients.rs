//! Every client library of PHP waits concurrently with others of the same kind.

use crate::parallel::peers::{Crowd, MODELS, Peers, ask};
use samovar_testkit::Server;
use serde_json::Value;

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

/// A web server that handles eight requests at once gets eight.
const CROWDS: [&str; 20] = [
    "pdo_pgsql",
    "pgsql",
    "pgsql_tls",
    "pdo_pgsql_tls",
    "pdo_mysql",
    "mysqli",
    "redis",
    "memcached",
    "ldap",
    "curl",
    "curl_multi",
    "http",
    "stream",
    "sockets",
    "flock",
    "child",
    "pipes",
    "sleep",
    "select",
    "semaphore",
];
const CROWD: usize = 100;
/// Each job waits for a tenth of a second at its peer. In a sequence, no job would end this soon
/// after the previous one.
const SOON_S: f64 = 0.08;
/// Minimum number of such jobs, even on a busy machine.
const SOON_MIN: usize = 25;
/// The machine may be very busy at times. Sequential jobs never pass in any attempt.
const ATTEMPTS_MAX: usize = 6;

/// The shortest timeout, less the difference between clocks.
const LIMIT_S_MIN: f64 = 0.45;
/// An ignored timeout would end after twenty seconds at the earliest.
const PATIENCE_S: f64 = 15.0;

/// Each job takes at least as long as alone, and all have begun before the first one ends. In a
/// sequence, each would begin after the end of the previous one. Durations prove nothing: on a busy
/// machine, the work of all jobs between their waits takes longer than the waits.
#[test]
fn jobs_of_each_client_wait_concurrently() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).start();
        for client in CLIENTS {
            let told = ask(&server, &format!("/jobs?client={client}&count=8"));
            each_has_its_own(&told, 8, &format!("{model} {client}"));
            assert!(seconds(&told, "sum") >= 0.75, "{model} {client}: each job waits: {told}");
            let (begins, ends) = (moments(&told, "begins"), moments(&told, "ends"));
            let are_concurrent = begins.iter().all(|begin| *begin < ends[0]);
            assert!(are_concurrent && begins.len() == 8, "{model} {client}: {told}");
        }
        server.stop();
    }
}

fn seconds(told: &Value, name: &str) -> f64 {
    told[name].as_f64().expect("seconds")
}

fn moments(told: &Value, name: &str) -> Vec<f64> {
    let moments = told[name].as_array().expect("moments");
    moments.iter().map(|moment| moment.as_f64().expect("a moment")).collect()
}

fn each_has_its_own(told: &Value, count: usize, what: &str) {
    for i in 0..count {
        assert_eq!(told["answers"][format!("job {i}")], format!("/{i}"), "{what}");
    }
}

/// A hundred jobs of a tenth of a second each, in one request.
#[test]
fn hundred_jobs_of_each_client_wait_concurrently() {
    let (peers, crowd) = (Peers::start(), Crowd::start());
    let servers = MODELS.map(|model| crowd.asked_by(peers.asked_by(model)).start());
    for (i, client) in CROWDS.iter().enumerate() {
        let which = i % MODELS.len();
        let soon = most_that_end_soon(&servers[which], client, MODELS[which]);
        assert!(soon >= SOON_MIN, "{client}: {soon} of {CROWD} jobs ended soon after another");
    }
    for server in servers {
        server.stop();
    }
}

fn most_that_end_soon(server: &Server, client: &str, model: &str) -> usize {
    let mut most = 0;
    for _ in 0..ATTEMPTS_MAX {
        let told = ask(server, &format!("/jobs?client={client}&count={CROWD}"));
        each_has_its_own(&told, CROWD, &format!("{model} {client}"));
        let ends = moments(&told, "ends");
        let soon = ends.windows(2).filter(|pair| pair[1] - pair[0] < SOON_S).count();
        println!("{client:>13} {:.3} s, {soon} soon ({model})", seconds(&told, "wall"));
        most = most.max(soon);
        if most >= SOON_MIN {
            break;
        }
    }
    most
}

/// Clients time out at a silent peer in the same way as without tasks: not earlier, and with the
/// same message.
#[test]
fn timeouts_of_each_client_apply() {
    let peers = Peers::start();
    std::thread::scope(|scope| {
        for model in MODELS {
            let start = peers.asked_by(model);
            scope.spawn(move || limits_are_kept(&start.start(), model));
        }
    });
}

fn limits_are_kept(server: &Server, model: &str) {
    let told = ask(server, "/rule?name=limits+of+clients");
    let alone = told["alone"].as_object().expect("what each has said");
    for (client, said) in alone {
        let beside = &told["beside"][client];
        assert_eq!(said[0], beside[0], "{model} {client}: {told}");
        let (alone, beside) = (said[1].as_f64(), beside[1].as_f64());
        let (alone, beside) = alone.zip(beside).expect("seconds");
        assert!(beside >= LIMIT_S_MIN, "{model} {client}: after {beside} s: {told}");
        assert!(beside < alone + PATIENCE_S, "{model} {client}: after {beside} s: {told}");
    }
}
