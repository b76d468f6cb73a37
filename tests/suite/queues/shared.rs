//! Queues in a Redis that several servers share: deaths of servers, restarts of Redis, limits.

use super::{Site, eventually, figures, one, push, queue, scripts, wait_for_figure};
use samovar_testkit::{Redis, Server, Start};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A server whose jobs are in this Redis.
fn prepare(site: &Site, redis: &Redis, keys: &str) -> Start {
    let config = format!(
        "[jobs]\nredis = 'unix://{}'\nlease = '2s'\n\
         [[queue]]\nname = 'work'\nhandler = '{}'\nbackoff = '10ms'\nworkers = 1\n{keys}\n",
        redis.socket().display(),
        site.at("jobs/work.php").display(),
    );
    Server::at(site.at("public")).workers(2).config(&config)
}

pub(super) fn start(site: &Site, redis: &Redis, keys: &str) -> Server {
    prepare(site, redis, keys).start()
}

pub(super) fn ids(of: &[Value]) -> Vec<i64> {
    of.iter().filter_map(|job| job[0].as_i64()).collect()
}

#[test]
fn servers_share_jobs_and_run_each_once() {
    let (site, redis) = (scripts(), Redis::durable());
    let servers = [start(&site, &redis, ""), start(&site, &redis, "")];
    let waiting = [0, 1].map(|_| one(&servers[0], &json!({ "do": "wait" })));
    // Each server has one worker.
    let running = site.wait_for(2);
    assert_eq!(ids(&running).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(waiting));
    let many = push(&servers[1], "/?many=1", &json!((0..200).collect::<Vec<i32>>()));
    site.go();
    let expected: BTreeSet<i64> =
        many.as_array().expect("ids").iter().filter_map(Value::as_i64).chain(waiting).collect();
    wait_for_figure(&servers[0], "ready", 0);
    wait_for_figure(&servers[1], "running", 0);
    let ran = ids(&site.ran());
    assert_eq!(ran.len(), 202, "no job ran twice");
    assert_eq!(ran.into_iter().collect::<BTreeSet<_>>(), expected);
    let done = servers.each_ref().map(|server| figures(server)["done_total"].as_u64());
    assert_eq!(done.into_iter().flatten().sum::<u64>(), 202);
    for server in servers {
        server.stop();
    }
}

#[test]
fn jobs_of_a_killed_server_run_elsewhere_after_the_lease() {
    let (site, redis) = (scripts(), Redis::durable());
    let (first, second) = (start(&site, &redis, ""), start(&site, &redis, ""));
    let jobs = [0, 1].map(|_| one(&first, &json!({ "do": "wait" })));
    site.wait_for(2);
    first.perish();
    site.go();
    let ran = ids(&site.wait_for(3));
    wait_for_figure(&second, "running", 0);
    assert_eq!(site.ran().len(), 3, "only the job of the killed server ran twice");
    assert_eq!(ran.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from(jobs));
    second.wait_for_log("jobs whose lease has ended are ready again");
    second.stop();
}

#[test]
fn lease_of_a_long_job_is_extended() {
    let (site, redis) = (scripts(), Redis::durable());
    let servers = [start(&site, &redis, ""), start(&site, &redis, "")];
    one(&servers[0], &json!({ "do": "wait" }));
    site.wait_for(1);
    let lease = || -> f64 {
        let text = redis.ask(&["zrange", "{samovar}:leases", "0", "-1", "withscores"]);
        text.lines().nth(1).and_then(|line| line.parse().ok()).expect("a lease")
    };
    let first = lease();
    // Two extensions: the time of the lease has passed.
    eventually("extended leases", || (lease() > first + 2_500.0).then_some(()));
    assert_eq!(site.ran().len(), 1, "the other server did not run it");
    site.go();
    wait_for_figure(&servers[0], "running", 0);
    assert_eq!(site.ran().len(), 1);
    for server in servers {
        server.stop();
    }
}

/// A server is killed and Redis restarts while jobs with keys run on two servers.
#[test]
fn order_per_key_survives_a_killed_server_and_restarts_of_redis() {
    const KEYS: usize = 4;
    const JOBS: usize = 30;
    let (site, mut redis) = (scripts(), Redis::durable());
    let keys = "concurrency_per_key = 1\nbatch = 3";
    let servers = [start(&site, &redis, keys), start(&site, &redis, keys)];
    let mut pushed = 0;
    for job in 0..JOBS {
        for key in 0..KEYS {
            let arguments = json!({ "payload": [key, job], "key": format!("k{key}") });
            assert!(push(&servers[1], "/", &arguments).is_i64());
            pushed += 1;
        }
    }
    let [first, second] = servers;
    site.wait_for(10);
    redis.crash();
    redis.start_again();
    site.wait_for(30);
    // One job on each server when the first one dies.
    let waits = |job: &Value| job[4]["do"] == "wait";
    for server in 0..2 {
        let payload = json!({ "do": "wait" });
        push(
            &second,
            "/",
            &json!({ "payload": payload, "key": format!("w{server}"), "priority": 9 }),
        );
        eventually("it runs", || {
            (site.ran().iter().filter(|job| waits(job)).count() > server).then_some(())
        });
    }
    first.perish();
    site.go();
    redis.crash();
    redis.start_again();
    let all = || site.ran().iter().map(|job| job[0].clone()).collect::<Vec<Value>>();
    let count = || all().iter().filter_map(Value::as_i64).collect::<BTreeSet<_>>().len();
    eventually("all jobs", || (count() == pushed + 2).then_some(()));
    wait_for_figure(&second, "running", 0);
    assert_eq!(figures(&second)["ready"], 0);
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut repeated = site.ran().iter().filter(|job| waits(job)).count() - 2;
    for job in site.ran().into_iter().filter(|job| !waits(job)) {
        let (key, number) = (job[4][0].as_u64().expect("a key"), job[4][1].as_u64().expect("one"));
        match last.get(&key).copied() {
            // The server died before its result was stored.
            Some(before) if before == number => repeated += 1,
            Some(before) => assert_eq!(number, before + 1, "key {key}"),
            None => assert_eq!(number, 0, "key {key}"),
        }
        last.insert(key, number);
    }
    assert!(
        (1..=3).contains(&repeated),
        "only the batch of the killed server is repeated, not {repeated} jobs"
    );
    second.stop();
}

#[test]
fn pushes_fail_clearly_while_redis_is_down_and_no_stored_job_is_lost() {
    let (site, mut redis) = (scripts(), Redis::durable());
    let server = start(&site, &redis, "");
    let mut stored = BTreeSet::from([one(&server, &json!(1))]);
    site.wait_for(1);
    queue(&server, &["pause", "work"]);
    stored.insert(one(&server, &json!(2)));
    redis.crash();
    let refused = push(&server, "/", &json!({ "payload": 3 }));
    assert_eq!(refused[0], "RuntimeException", "{refused}");
    assert!(refused[1].as_str().is_some_and(|text| text.contains("no connection to Redis")));
    redis.start_again();
    stored.insert(one(&server, &json!(4)));
    eventually("the pause is known", || figures(&server)["paused"].as_bool().filter(|is| *is));
    queue(&server, &["resume", "work"]);
    site.wait_for(3);
    assert_eq!(ids(&site.ran()).into_iter().collect::<BTreeSet<_>>(), stored);
    server.stop();
}

#[test]
fn full_redis_refuses_pushes_and_still_runs_jobs() {
    let (site, redis) = (scripts(), Redis::durable());
    let server = start(&site, &redis, "");
    queue(&server, &["pause", "work"]);
    push(&server, "/?many=1", &json!((0..50).collect::<Vec<i32>>()));
    redis.ask(&["config", "set", "maxmemory", "1mb"]);
    let refused = push(&server, "/", &json!({ "payload": 3 }));
    assert_eq!(refused[0], "RuntimeException", "{refused}");
    assert!(refused[1].as_str().is_some_and(|text| text.contains("maxmemory")), "{refused}");
    queue(&server, &["resume", "work"]);
    wait_for_figure(&server, "done_total", 50);
    redis.ask(&["config", "set", "maxmemory", "0"]);
    one(&server, &json!(1));
    wait_for_figure(&server, "done_total", 51);
    server.stop();
}

#[test]
fn server_starts_without_redis_and_continues_with_it() {
    let (site, mut redis) = (scripts(), Redis::with(&["--requirepass", "se%cret"]));
    let password = |password: &str, redis: &Redis| {
        let url = format!("unix://:{password}@{}", redis.socket().display());
        prepare(&site, redis, "").env("SAMOVAR_JOBS_REDIS", &url)
    };
    redis.crash();
    let server = password("se%25cret", &redis).start();
    server.wait_for_log("no connection to Redis");
    assert_eq!(push(&server, "/", &json!({ "payload": 3 }))[0], "RuntimeException");
    redis.start_again();
    one(&server, &json!(1));
    wait_for_figure(&server, "done_total", 1);
    assert!(server.log().contains("Redis has no append-only file"), "{}", server.log());
    assert!(!server.log().contains("cret"), "{}", server.log());
    server.stop();
    let (code, refused) = password("wrong", &redis).refuse();
    assert_eq!(code, Some(1), "{refused}");
    assert!(refused.contains("WRONGPASS") && refused.contains("hint:"), "{refused}");
}

#[test]
fn dead_jobs_are_shown_retried_and_dropped_from_any_server() {
    let (site, redis) = (scripts(), Redis::durable());
    let keys = "attempts = 1";
    let (first, second) = (start(&site, &redis, keys), start(&site, &redis, keys));
    let dead = [0, 1].map(|_| one(&first, &json!({ "do": "throw" })));
    wait_for_figure(&second, "dead", 2);
    let shown = queue(&second, &["show", "work"]);
    assert!(
        shown.contains("this job is poison") && shown.contains("{\"do\":\"throw\"}"),
        "{shown}"
    );
    assert_eq!(queue(&second, &["retry", "work", &dead[0].to_string()]), "1 job\n");
    eventually("it has run again", || (site.ran().len() == 3).then_some(()));
    wait_for_figure(&first, "dead", 2);
    assert_eq!(queue(&first, &["forget", "work"]), "2 jobs\n");
    queue(&first, &["pause", "work"]);
    one(&second, &json!(1));
    assert_eq!(queue(&second, &["drop", "work"]), "1 job\n");
    assert_eq!(figures(&first)["ready"], 0);
    first.stop();
    second.stop();
}
